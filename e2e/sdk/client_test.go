package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// ask is one request, whatever the API.
type ask struct {
	id        string   // for X-Request-Id; "" leaves it to the engine
	system    string   // "" for none
	turns     []string // of user and assistant in turn, the user's first
	n         int      // answers; 0 is 1
	maxTokens int
}

// reply is what a library made of the response to one request.
type reply struct {
	Text, Reason []string // by choice
	Usage        []int64  // prompt, completion and, where the API says it, total
	ID           []string // of the response, each different one once
	// Events are those of a stream, by choice, each as JSON without times; the
	// last list holds those that are of no choice.
	Events [][]string
	// Err is what the library returned, and Details are the fields of its own
	// error type.
	Err     string
	Details []any
	// Wire is what the library's transport saw.
	Wire wire

	err error // for errors.Is
}

// wire is a response as it came to the library.
type wire struct {
	Status   int
	Header   http.Header // without Date, and without Content-Length if that depends on the time
	Refusal  string      // the body, if the status is one of an error
	Requests int         // requests sent for one call
}

func (r *reply) say(choice int, text, reason string) {
	for len(r.Text) <= choice {
		r.Text, r.Reason = append(r.Text, ""), append(r.Reason, "")
	}
	r.Text[choice] += text
	if reason != "" {
		r.Reason[choice] = reason
	}
}

func (r *reply) event(choice int, raw string, times ...string) {
	for len(r.Events) <= choice {
		r.Events = append(r.Events, nil)
	}
	r.Events[choice] = append(r.Events[choice], without(raw, times...))
}

func (r *reply) id(id string) {
	if id != "" && !slices.Contains(r.ID, id) {
		r.ID = append(r.ID, id)
	}
}

// without returns a JSON object without some fields.
func without(raw string, fields ...string) string {
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		return raw
	}
	maps.DeleteFunc(v, func(name string, _ json.RawMessage) bool { return slices.Contains(fields, name) })
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return string(b)
}

// client is one library, set up for one address and one tenant's key.
type client interface {
	// whole asks for an answer in one piece.
	whole(context.Context, ask) reply
	// stream asks for events and calls each after every one.
	stream(ctx context.Context, a ask, each func()) reply
}

// sdk is a library, or one way to use it.
type sdk struct {
	name    string
	dialect string // as the sidecar calls it
	open    func(t *testing.T, url, key string, h *http.Client) client
	many    bool // knows of several answers
	timed   bool // a body holds a duration, and so is longer or shorter by some digits
}

var sdks = []sdk{
	{name: "openai", dialect: "openai-chat", open: newOpenAI("/v1"), many: true},
	{name: "openai by account", dialect: "openai-chat", open: newOpenAI("/client/v4/accounts/{key}/ai/v1"), many: true},
	{name: "openai completions", dialect: "openai-completions", open: newOpenAICompletions, many: true},
	{name: "anthropic", dialect: "anthropic-messages", open: newAnthropic("")},
	{name: "anthropic by account", dialect: "anthropic-messages", open: newAnthropic("/client/v4/accounts/{key}/ai")},
	{name: "gemini", dialect: "gemini", open: newGemini, many: true},
	{name: "gemini array", dialect: "gemini", open: newGeminiArray, many: true},
	{name: "ollama chat", dialect: "ollama", open: newOllama(true), timed: true},
	{name: "ollama generate", dialect: "ollama", open: newOllama(false), timed: true},
	{name: "sglang", dialect: "generate", open: newSGLang, many: true, timed: true},
}

// covered holds the sidecar to having audited n exchanges whole. Those of OpenAI's
// library are among them, which leaves at [DONE] or at an error without waiting
// for the end of the response.
func (d *sdk) covered(t *testing.T, m map[string]float64, n int) {
	t.Helper()
	whole := m[`auditproxy_responses_total{coverage="whole"}`]
	rest := total(m, "auditproxy_responses_total{") - whole
	if whole != float64(n) || rest != 0 {
		t.Errorf("of %d exchanges, %v were audited whole; the others: %v", n, whole, only(m, "auditproxy_unaudited_total{"))
	}
	for name, v := range only(m, "auditproxy_requests_total{") {
		if !strings.Contains(name, `dialect="`+d.dialect+`"`) {
			t.Errorf("%v exchanges of another dialect: %s", v, name)
		}
	}
	if got := total(m, "auditproxy_requests_total{"); got != float64(n) {
		t.Errorf("of %d exchanges, %v were counted", n, got)
	}
}

// connect opens a library's client for a tenant. Each has connections of its
// own.
func (d *sdk) connect(t *testing.T, s *stage, key string) *watched {
	t.Helper()
	w := &watched{key: key, timed: d.timed, next: &http.Transport{}}
	t.Cleanup(w.next.CloseIdleConnections)
	w.client = d.open(t, s.url, key, &http.Client{Transport: w})
	return w
}

// watched is a client whose wire is watched. It is used by one goroutine.
type watched struct {
	client
	key   string
	timed bool
	next  *http.Transport
	id    string
	wire  wire
}

// RoundTrip implements http.RoundTripper. It names the request, gives it the
// tenant's key where the library has no way to, and notes the response.
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if w.id != "" {
		r.Header.Set("X-Request-Id", w.id)
	}
	if len(r.Header["Authorization"]) == 0 && len(r.Header["X-Api-Key"]) == 0 && len(r.Header["X-Goog-Api-Key"]) == 0 {
		r.Header.Set("Authorization", "Bearer "+w.key)
	}
	w.wire.Requests++
	res, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.wire.Status, w.wire.Header = res.StatusCode, res.Header.Clone()
	w.wire.Header.Del("Date")
	if w.timed {
		w.wire.Header.Del("Content-Length")
	}
	if res.StatusCode >= 400 {
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			return nil, err
		}
		w.wire.Refusal = string(body)
		res.Body = io.NopCloser(bytes.NewReader(body))
	}
	return res, nil
}

func (w *watched) whole(ctx context.Context, a ask) reply {
	w.id, w.wire = a.id, wire{}
	return w.seal(w.client.whole(ctx, a))
}

func (w *watched) stream(ctx context.Context, a ask, each func()) reply {
	w.id, w.wire = a.id, wire{}
	return w.seal(w.client.stream(ctx, a, each))
}

func (w *watched) seal(r reply) reply {
	r.Wire = w.wire
	if r.err != nil {
		r.Err = r.err.Error()
	}
	return r
}

func (a ask) answers() int { return max(a.n, 1) }

// text is the ask as one text, for APIs without turns.
func (a ask) text() string { return strings.Join(a.turns, "\n\n") }
