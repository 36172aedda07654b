package audit

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/auditproxy/auditproxy/detectors"
)

// The tenants of the self-test. No rule of the proxy gives a tenant such a
// name.
const (
	selfTestDonor     = "auditproxy self-test donor"
	selfTestRecipient = "auditproxy self-test recipient"
)

// Sizes of the self-test, in words. The leak is as short as what is guaranteed
// to be found.
const (
	selfTestPrompt = 90
	selfTestLeak   = 30
)

// SelfTest proves that the engine isn't blind: a tenant that doesn't exist
// sends a prompt of random words, another gets a run of them in a streamed
// answer, and the leak must be found, with its donor; then a clean answer must
// stay clean. Both pass through the same queue of events, index and detectors
// as the traffic, and no sink is told of them. The error says what went wrong.
func (e *Engine) SelfTest(now time.Time) error {
	text := strings.Fields(randomWords(3 * selfTestPrompt))
	prompt, ask, other := text[:selfTestPrompt], text[selfTestPrompt:2*selfTestPrompt], text[2*selfTestPrompt:]
	leak := prompt[selfTestLeak : 2*selfTestLeak]
	id := "self-test-" + randomWords(1)

	donor, err := e.selfTest(id+"-donor", selfTestDonor, prompt, now)
	if err != nil {
		return err
	}
	clean, err := e.selfTest(id+"-clean", selfTestRecipient, ask, now, other)
	if err != nil {
		return err
	}
	leaked, err := e.selfTest(id+"-leak", selfTestRecipient, ask, now, other[:selfTestLeak], leak, other[selfTestLeak:])
	switch {
	case err != nil:
		return err
	case len(donor)+len(clean) != 0:
		return fmt.Errorf("self-test: %d findings in clean exchanges, want none", len(donor)+len(clean))
	case len(leaked) != 1:
		return fmt.Errorf("self-test: %d findings of a planted leak of %d words, want 1", len(leaked), selfTestLeak)
	case leaked[0].Donor.Exchange != id+"-donor":
		return errors.New("self-test: the planted leak has the wrong donor")
	}
	return nil
}

// selfTest runs one exchange and returns its final findings.
func (e *Engine) selfTest(id, tenant string, prompt []string, now time.Time, answer ...[]string) ([]detectors.Finding, error) {
	body, err := json.Marshal(map[string]any{
		"model": "self-test", "stream": true,
		"messages": []any{map[string]string{"role": "user", "content": strings.Join(prompt, " ")}},
	})
	if err != nil {
		return nil, err
	}
	t := e.Begin(Exchange{ID: id, Tenant: tenant, Method: "POST", Path: "/v1/chat/completions", Header: headerOf("application/json")})
	var s collector
	t.sinks = []Sink{&s}
	t.Request(body, now, "")
	t.Response(200, headerOf("text/event-stream"))
	for _, words := range answer {
		for _, w := range words {
			event, err := json.Marshal(map[string]any{"choices": []any{
				map[string]any{"index": 0, "delta": map[string]string{"content": w + " "}},
			}})
			if err != nil {
				return nil, err
			}
			t.Append(fmt.Appendf(nil, "data: %s\n\n", event), now)
		}
	}
	t.Append([]byte("data: [DONE]\n\n"), now)
	t.Finish(now, "")
	if s.summary.Coverage != Whole {
		return nil, fmt.Errorf("self-test: coverage %q, reasons %q", s.summary.Coverage, s.summary.Reasons)
	}
	return s.final, nil
}

// collector is the sink of one exchange of a self-test.
type collector struct {
	final   []detectors.Finding
	summary Summary
}

func (c *collector) Finding(f detectors.Finding, _ bool) {
	if f.State == detectors.Final {
		c.final = append(c.final, f)
	}
}

func (c *collector) Exchange(s Summary) { c.summary = s }

// headerOf is a header with a content type alone, or with nothing.
type headerOf string

func (h headerOf) Get(name string) string {
	if strings.EqualFold(name, "content-type") {
		return string(h)
	}
	return ""
}

// randomWords makes n words that nobody else has.
func randomWords(n int) string {
	var b strings.Builder
	var word [10]byte
	for i := range n {
		_, _ = rand.Read(word[:]) // never fails
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ToLower(base32.StdEncoding.EncodeToString(word[:])))
	}
	return b.String()
}
