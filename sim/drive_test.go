package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/auditproxy/auditproxy/gpukv"
)

// recorder keeps what went over the wire: each request's texts that aren't the
// assistant's, and each response's body.
type recorder struct {
	next http.RoundTripper

	mu      sync.Mutex
	prompts map[string][]string // by request id
	bodies  map[string]*bytes.Buffer
}

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	var p struct {
		Prompt   string `json:"prompt"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	texts := []string{p.Prompt}
	for _, m := range p.Messages {
		if m.Role != "assistant" {
			texts = append(texts, m.Content)
		}
	}
	id := q.Header.Get("X-Request-Id")
	got := new(bytes.Buffer)
	r.mu.Lock()
	r.prompts[id], r.bodies[id] = texts, got
	r.mu.Unlock()
	res, err := r.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(res.Body, got), res.Body}
	return res, nil
}

// answerText returns the text of a recorded response: every string of it that a
// client shows.
func answerText(t *testing.T, body string) string {
	t.Helper()
	var b strings.Builder
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(k, x)
			}
		case []any:
			for _, x := range v {
				walk(key, x)
			}
		case string:
			if key == "response" || key == "content" || key == "text" {
				b.WriteString(v)
			}
		}
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		if line == "" || line == "[DONE]" {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return b.String() // cut off by a client that left
		}
		walk("", v)
	}
	return b.String()
}

// day drives a workload against an engine and returns what came of it.
func day(t *testing.T, o Options, w Workload, concurrency int) (*apiServer, *recorder, []Result) {
	t.Helper()
	s := serveAPI(t, o)
	tr := &http.Transport{MaxIdleConnsPerHost: concurrency, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	rec := &recorder{next: tr, prompts: map[string][]string{}, bodies: map[string]*bytes.Buffer{}}
	var results []Result
	err := w.Drive(t.Context(), &http.Client{Transport: rec}, s.url, concurrency, func(r Result) { results = append(results, r) })
	if err != nil {
		t.Fatal(err)
	}
	for range results {
		<-s.left // a client that left is gone before its handler is
	}
	return s, rec, results
}

func TestDrive(t *testing.T) {
	w := Workload{Seed: 5, Divisor: 64, Ordinary: 260, Oversized: 12, TenantHeader: "X-Tenant"}
	o := Options{Divisor: 64, Cluster: gpukv.Config{Seed: 5, Faults: []gpukv.Fault{gpukv.StalePages}}}
	s, rec, results := day(t, o, w, 4)

	if len(results) != 272 {
		t.Fatalf("%d results", len(results))
	}
	labels := make(map[string]Label)
	for _, l := range s.Labels() {
		labels[l.Exchange] = l
	}
	if len(labels) != len(results) {
		t.Errorf("%d labels of %d responses", len(labels), len(results))
	}
	ofTenant := make(map[string][]*concordance) // all that a tenant sent
	for _, r := range results {
		if r.Oversized {
			continue // it never reached a page
		}
		for _, text := range rec.prompts[r.ID] {
			ofTenant[r.Tenant] = append(ofTenant[r.Tenant], newConcordance(text))
		}
	}
	oversized, legible, left := 0, 0, 0
	for _, r := range results {
		l, ok := labels[r.ID]
		if !ok || l.Tenant != r.Tenant || l.Oversized != r.Oversized {
			t.Errorf("result %+v is labelled %+v", r, l)
			continue
		}
		switch {
		case r.Aborted:
			left++
			if r.Err != nil || r.Oversized {
				t.Errorf("client left: %+v", r)
			}
		case r.Err != nil || r.Status != 200 || r.Refused || l.Status != 200:
			t.Errorf("result %+v, label %+v", r, l)
		case r.PromptTokens != l.PromptTokens || r.CompletionTokens < 1 || r.FirstByte <= 0 || r.Latency < r.FirstByte:
			t.Errorf("result %+v, label %+v", r, l)
		}
		if !r.Oversized {
			// What a label allows is no claim: the words of an answer may stand in
			// another tenant's prompt though none was read from it.
			if l.ForeignTokens > 0 || len(l.Expect) > 0 {
				t.Errorf("an ordinary answer is labelled %+v", l)
			}
			continue
		}
		oversized++
		if len(l.Expect) > 0 {
			legible++
		}
		words := plainWords(answerText(t, rec.bodies[r.ID].String()))
		for _, leak := range l.Expect {
			shared := 0
			for _, sent := range ofTenant[leak.Donor] {
				shared = max(shared, sent.longest(words))
			}
			if leak.Kind != promptLeak || leak.Donor == r.Tenant || shared < 30 {
				t.Errorf("%s: the answer shares %d words in a row with %s", r.ID, shared, leak.Donor)
			}
		}
	}
	if oversized != 12 || legible < 10 || left == 0 {
		t.Errorf("%d oversized, %d of them legible; %d clients left", oversized, legible, left)
	}
}

// TestDriveWithoutTheFault is the same day of a correct engine.
func TestDriveWithoutTheFault(t *testing.T) {
	w := Workload{Seed: 6, Divisor: 64, Ordinary: 160, Oversized: 9}
	s, _, results := day(t, Options{Divisor: 64}, w, 3)
	for _, l := range s.Labels() {
		if l.ForeignTokens > 0 || len(l.Expect) > 0 {
			t.Errorf("label %+v", l)
		}
	}
	refused := 0
	for _, r := range results {
		if r.Refused != r.Oversized || r.Err != nil || r.Oversized && r.CompletionTokens > 0 {
			t.Errorf("result %+v", r)
		}
		if r.Refused {
			refused++
		}
	}
	if refused != 9 {
		t.Errorf("%d refused", refused)
	}
}

func TestDriveGoesNowhereElse(t *testing.T) {
	w := &Workload{Divisor: 64, Ordinary: 3, Oversized: -1}
	for _, base := range []string{"http://example.com", "http://10.0.0.8:80", "https://192.0.2.1", "ftp://127.0.0.1", "127.0.0.1:80", "http://127.0.0.1.example.com", "://"} {
		err := w.Drive(t.Context(), http.DefaultClient, base, 1, func(Result) { t.Errorf("%s: a request was sent", base) })
		if err == nil || !strings.HasPrefix(err.Error(), "drive: ") {
			t.Errorf("%s: error %v", base, err)
		}
	}
	for _, base := range []string{"http://127.0.0.1:8080/", "http://[::1]:80", "https://localhost"} {
		if got, err := loopback(base); err != nil || got != strings.TrimSuffix(base, "/") {
			t.Errorf("loopback(%s) = %q, %v", base, got, err)
		}
	}
	// Not by a redirect either.
	srv := httptest.NewServer(http.RedirectHandler("http://example.com/", http.StatusTemporaryRedirect))
	defer srv.Close()
	n := 0
	err := w.Drive(t.Context(), srv.Client(), srv.URL, 1, func(r Result) {
		if n++; r.Status != http.StatusTemporaryRedirect {
			t.Errorf("result %+v", r)
		}
	})
	if err != nil || n != 3 {
		t.Errorf("%d results, %v", n, err)
	}
	if err := w.Drive(t.Context(), srv.Client(), srv.URL, 0, nil); err == nil {
		t.Error("a concurrency of 0 is accepted")
	}
	if err := (&Workload{Divisor: -3}).Drive(t.Context(), srv.Client(), srv.URL, 1, nil); err == nil {
		t.Error("a divisor of -3 is accepted")
	}
}

func TestDriveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		cancel()
		<-r.Context().Done()
	}))
	defer srv.Close()
	w := &Workload{Divisor: 64, Ordinary: 500, Oversized: -1}
	n := 0
	err := w.Drive(ctx, srv.Client(), srv.URL, 4, func(r Result) {
		if n++; r.Err == nil {
			t.Errorf("result %+v", r)
		}
	})
	if !errors.Is(err, context.Canceled) || n > 8 {
		t.Errorf("%d results, %v", n, err)
	}
}

func TestDriveReportsTrouble(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // of the error
		refused bool
	}{
		{"cut stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"response\":\"a\"}\n\n")
		}, "ended before its end", false},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "can't be read", false},
		{"refusal", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, "", true},
		{"refusal in the stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"error\":{\"code\":400}}\n\ndata: [DONE]\n\n")
		}, "", true},
		{"too slow", func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				<-r.Context().Done()
			}
		}, context.DeadlineExceeded.Error(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(tt.handler)
			defer srv.Close()
			w := &Workload{Divisor: 64, Ordinary: 1, Oversized: -1, Timeout: 100 * time.Millisecond}
			err := w.Drive(t.Context(), srv.Client(), srv.URL, 1, func(r Result) {
				if r.Refused != tt.refused || (r.Err == nil) != (tt.want == "") || r.Err != nil && !strings.Contains(r.Err.Error(), tt.want) {
					t.Errorf("result %+v, want error %q", r, tt.want)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// BenchmarkDay drives the default workload, divided by 64, and reports how many
// of the 155 oversized answers hold foreign words legibly.
func BenchmarkDay(b *testing.B) {
	for n := range b.N {
		seed := uint64(n + 1)
		e, err := New(Options{Divisor: 64, Cluster: gpukv.Config{Seed: seed, Faults: []gpukv.Fault{gpukv.StalePages}}})
		if err != nil {
			b.Fatal(err)
		}
		srv := httptest.NewServer(e.Handler())
		w := Workload{Seed: seed, Divisor: 64}
		tr := &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true}
		if err := w.Drive(b.Context(), &http.Client{Transport: tr}, srv.URL, 8, func(Result) {}); err != nil {
			b.Fatal(err)
		}
		legible, foreign := 0, 0
		for _, l := range e.Labels() {
			switch {
			case len(l.Expect) > 0:
				legible++
			case !l.Oversized && l.ForeignTokens > 0:
				foreign++
			}
		}
		b.ReportMetric(float64(legible), "legible/op")
		b.ReportMetric(float64(foreign), "ordinary-foreign/op")
		tr.CloseIdleConnections()
		srv.Close()
		e.Close()
	}
}
