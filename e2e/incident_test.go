package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// finding is what these tests read of a line of the findings log: their own
// type, so that a renamed field does not go unseen.
type finding struct {
	ID         string `json:"id"`
	State      string `json:"state"`
	Kind       string `json:"kind"`
	Confidence string `json:"confidence"`
	Recipient  struct {
		Tenant   string `json:"tenant"`
		Exchange string `json:"exchange"`
	} `json:"recipient"`
	Donor struct {
		Tenant   string `json:"tenant"`
		Exchange string `json:"exchange"`
	} `json:"donor"`
}

// finals returns the lines of the final findings, sorted.
func finals(t *testing.T, log string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(log) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("a line of the findings log: %v", err)
		}
		if f.State == "final" {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// leaks returns how many findings of an incident are leaks. All of them must be
// of alice's prompts in bob's answers.
func leaks(t *testing.T, finals []string) int {
	t.Helper()
	n := 0
	for _, line := range finals {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f.Kind != "prompt_leak" && f.Kind != "suspect" || f.Donor.Tenant != "alice" || f.Recipient.Tenant != "bob" || !strings.HasPrefix(f.Donor.Exchange, "a-") {
			t.Errorf("a finding that is not alice's prompt in bob's answer: %s", line)
		}
		if f.Kind == "prompt_leak" {
			n++
		}
	}
	return n
}

// stage is an engine with a sidecar in front of it, each a process of its own.
type stage struct {
	engine, sidecar   *process
	url, admin        string
	findings, capture string
	key               string
}

// small is the incident at 1/512 of its size: a window of 2,048 tokens, a
// prefill pool of 1,330.
func newStage(t *testing.T, engine ...string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{findings: filepath.Join(dir, "findings.ndjson"), capture: filepath.Join(dir, "capture.ndjson"), key: filepath.Join(dir, "key")}
	s.engine = start(t, append([]string{"sim", "--listen", "127.0.0.1:0", "--divisor", "512"}, engine...)...)
	s.serve(t)
	return s
}

// serve starts a sidecar before the engine.
func (s *stage) serve(t *testing.T, flags ...string) {
	t.Helper()
	s.sidecar = start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--upstream", s.engine.field(t, "url"), "--id-header", "X-Request-Id",
		"--findings", s.findings, "--capture", s.capture, "--key-file", s.key}, flags...)...)
	s.url, s.admin = s.sidecar.field(t, "traffic"), s.sidecar.field(t, "admin")
}

// ask sends a chat completion as a tenant and returns the status and body.
func (s *stage) ask(t *testing.T, id, tenant, prompt string, stream bool) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"model": "m", "stream": stream, "max_tokens": 500,
		"messages": []any{map[string]string{"role": "user", "content": prompt}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/client/v4/accounts/"+tenant+"/ai/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", id)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// letter is a private text of n words, of four syllables each.
func letter(rnd *rand.Rand, n int) string {
	w := make([]string, n)
	for i := range w {
		for range 4 {
			w[i] += string("bdfgklmnprstvz"[rnd.IntN(14)]) + string("aeiou"[rnd.IntN(5)])
		}
	}
	return strings.Join(w, " ")
}

// oversized is how many prompts larger than the pool an incident has.
const oversized = 8

// incident is the filling, then the oversized prompts.
func (s *stage) incident(t *testing.T) (outcomes []string) {
	t.Helper()
	rnd := seeded(t)
	s.fill(t, rnd)
	return s.oversized(t, rnd)
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// fill sends ordinary prompts of one tenant until the pool has gone round.
func (s *stage) fill(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	for i := range 40 {
		if status, _ := s.ask(t, fmt.Sprintf("a-%d", i), "alice", letter(rnd, 300), i%2 == 0); status != http.StatusOK {
			t.Fatalf("an ordinary prompt got %d", status)
		}
	}
}

// oversized sends prompts of another tenant that are larger than the prefill
// pool. It returns what became of them: "answered", or "refused" by status or,
// in a stream that has begun, by an error event.
func (s *stage) oversized(t *testing.T, rnd *rand.Rand) (outcomes []string) {
	t.Helper()
	for i := range oversized {
		status, body := s.ask(t, fmt.Sprintf("b-%d", i), "bob", letter(rnd, 1500), i%2 == 0)
		outcome := "answered"
		if status == http.StatusBadRequest || strings.Contains(body, `"code":400`) {
			outcome = "refused"
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

var (
	finalLine  = regexp.MustCompile(`"state":"final"`)
	selfTested = regexp.MustCompile(`(?m)^auditproxy_selftest_last_success_timestamp_seconds [1-9]`)
)

// Two tenants, two processes: the leak stands in the findings log and in the
// metrics within a second, beside the self-test's success, the score against the
// engine's own ground truth is perfect, and a replay of the capture finds the
// same.
func TestIncidentBetweenTwoTenants(t *testing.T) {
	s := newStage(t, "--fault", "stale_pages")
	outcomes := s.incident(t)
	answered := time.Now()
	if diff := cmp.Diff(slices.Repeat([]string{"answered"}, oversized), outcomes); diff != "" {
		t.Errorf("prompts larger than the pool (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var metrics string
	seen := func() bool {
		log, err := os.ReadFile(s.findings)
		if err != nil {
			t.Fatal(err)
		}
		metrics = get(t, s.admin+"/metrics")
		return finalLine.Match(log) && selfTested.MatchString(metrics) && strings.Contains(metrics, `auditproxy_leaks_total{model=`) &&
			strings.Contains(metrics, fmt.Sprintf("auditproxy_responses_total{coverage=\"whole\"} %d\n", 40+oversized))
	}
	for tick := time.NewTicker(10 * time.Millisecond); !seen(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("all responses audited whole, with leaks in log and metrics, did not show:\n%s", metrics)
		}
	}
	t.Logf("the last answer came, and its leak stood in log and metrics %v later", time.Since(answered))
	labels := filepath.Join(t.TempDir(), "labels.ndjson")
	if err := os.WriteFile(labels, []byte(get(t, s.engine.field(t, "url")+"/sim/labels")), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := s.sidecar.stop(t); code != 0 {
		t.Errorf("the sidecar ended with status %d", code)
	}
	log, err := os.ReadFile(s.findings)
	if err != nil {
		t.Fatal(err)
	}
	live := finals(t, string(log))
	leaks(t, live)
	stdout, stderr, code := run(t, "replay", "--key-file", s.key, "--labels", labels, s.capture)
	if code != 1 {
		t.Errorf("replay ended with status %d, want 1 for leaks", code)
	}
	if diff := cmp.Diff(live, finals(t, stdout)); diff != "" {
		t.Errorf("(-live +replay):\n%s", diff)
	}
	// An answer whose pieces are all too short to be legible counts as clean.
	score := regexp.MustCompile(`caught (\d) of (\d), missed 0, false 0 of`).FindStringSubmatch(stderr)
	if score == nil || score[1] != score[2] || score[1] == "0" {
		t.Errorf("the score is not perfect:\n%s", stderr)
	}
}

// Each fix that covers the fault brings the leaks to none.
func TestFixes(t *testing.T) {
	for fix, want := range map[string]string{
		"door_check": "refused", "retire_after_forward": "refused",
		"length_check_strict": "refused", "length_check_fail_open": "refused",
		"kv_checksum": "refused", "zero_on_alloc": "answered",
	} {
		t.Run(fix, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "--fault", "stale_pages", "--fix", fix)
			if diff := cmp.Diff(slices.Repeat([]string{want}, oversized), s.incident(t)); diff != "" {
				t.Errorf("prompts larger than the pool (-want +got):\n%s", diff)
			}
			if code := s.sidecar.stop(t); code != 0 {
				t.Errorf("the sidecar ended with status %d", code)
			}
			log, err := os.ReadFile(s.findings)
			if err != nil || len(log) > 0 {
				t.Errorf("findings with the fix on (%v):\n%s", err, log)
			}
		})
	}
}

// An upstream that dies while it streams is seen by the client as a broken
// stream, and the part that came is audited.
func TestUpstreamDiesMidStream(t *testing.T) {
	s := newStage(t, "--decode-rate", "50")
	body := `{"model":"m","stream":true,"max_tokens":4000,"messages":[{"role":"user","content":"tell me a story about the sea and the people who live by it"}]}`
	res, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 64)
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	if err := s.engine.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("the stream ended as if it were whole, after %d bytes", len(rest))
	}
	if code := s.sidecar.stop(t); code != 0 {
		t.Errorf("the sidecar ended with status %d", code)
	}
	capture, err := os.ReadFile(s.capture)
	if err != nil || !bytes.Contains(capture, []byte(`"cut":"upstream_broken"`)) {
		t.Errorf("the capture does not say that the upstream broke (%v)", err)
	}
}

// Damage of every kind passes through, is counted, and breaks nothing.
func TestBadInput(t *testing.T) {
	s := newStage(t)
	huge := strings.Repeat("x ", 25<<20)
	for name, body := range map[string]string{
		"not JSON":      "hello",
		"empty":         "",
		"wrong types":   `{"messages":7,"model":[]}`,
		"invalid UTF-8": "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}",
		"50 MB":         `{"messages":[{"role":"user","content":"` + huge + `"}]}`,
		"deep":          strings.Repeat(`{"a":`, 100_000),
	} {
		direct, err := http.Post(s.engine.field(t, "url")+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(direct.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = direct.Body.Close()
		through, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(through.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = through.Body.Close()
		if through.StatusCode != direct.StatusCode || through.StatusCode >= 400 && !bytes.Equal(want, got) {
			t.Errorf("%s: %d through the sidecar, %d without", name, through.StatusCode, direct.StatusCode)
		}
	}
	res, err := http.Get(s.url + "/no/such/path")
	if err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown path: %v, %v", res.StatusCode, err)
	}
	_ = res.Body.Close()
	if code := s.sidecar.stop(t); code != 0 {
		t.Errorf("the sidecar ended with status %d", code)
	}
}
