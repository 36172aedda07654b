package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

func value(t testing.TB, c prometheus.Collector) float64 {
	t.Helper()
	return testutil.ToFloat64(c)
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// TestStuckAuditDelaysNothing stops every audit inside its first response
// bytes, and has the traffic go on: more of it than there may be audits.
func TestStuckAuditDelaysNothing(t *testing.T) {
	const clients, audits = 40, 16
	s := newStuck()
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for i := range 20 {
			fmt.Fprintf(w, "chunk %d\n", i)
			w.(http.Flusher).Flush()
		}
	})
	g := newRig(t, upstream, setup{
		options: Options{MaxAudits: audits, MaxBacklog: 50},
		engine:  audit.Options{Dialects: []dialect.Dialect{s}, Patience: time.Millisecond},
	})
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			res, got, err := g.do("POST", "/stuck", strings.NewReader("prompt"))
			if err != nil || res.StatusCode != 200 || !bytes.HasSuffix(got, []byte("chunk 19\n")) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
	wg.Wait() // each of them to its end, while no audit moves
	for range audits {
		await(t, "audit", s.entered)
	}
	if got := value(t, g.proxy.metrics.dropped); got <= 0 {
		t.Error("no dropped bytes are counted")
	}
	// Those beyond the limit have already been counted as not audited.
	for range clients - audits {
		if sum := g.summary(); sum.Coverage == audit.Whole || len(sum.Reasons) == 0 || sum.Reasons[0] != audit.ReasonOverload {
			t.Errorf("beyond the limit: %+v", sum)
		}
	}

	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := g.proxy.Shutdown(short)
	if want := fmt.Sprintf("proxy: %d audits left: context deadline exceeded", audits); err == nil || err.Error() != want {
		t.Errorf("shutdown: got %v, want %s", err, want)
	}
	close(s.release)
	if err := g.proxy.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	for range audits {
		rec := g.record()
		if rec.ResponseCut != audit.ReasonOverload || !bytes.HasPrefix(rec.ResponseBody, []byte("chunk 0\n")) {
			t.Errorf("audit saw %q, cut %q; want a part of it, cut by overload", rec.ResponseBody, rec.ResponseCut)
		}
		if sum := g.summary(); sum.Coverage != audit.Part {
			t.Errorf("counted as %+v", sum)
		}
	}
	if n := len(g.sink.records); n > 0 {
		t.Errorf("%d records of exchanges that were not audited", n)
	}
}

// TestBacklogIsTakenWhole holds an audit up and lets it catch up: within the
// backlog nothing is lost, however many pieces there were.
func TestBacklogIsTakenWhole(t *testing.T) {
	s := newStuck()
	var want bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&want, "data: piece %d\n\n", i)
	}
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for b := range bytes.SplitAfterSeq(want.Bytes(), []byte("\n\n")) {
			w.Write(b)
			w.(http.Flusher).Flush()
		}
	})
	g := newRig(t, upstream, setup{engine: audit.Options{Dialects: []dialect.Dialect{s}}})
	if _, got := g.must("GET", "/stuck", nil); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("client got %d bytes, want %d", len(got), want.Len())
	}
	close(s.release)
	if rec := g.record(); !bytes.Equal(rec.ResponseBody, want.Bytes()) || rec.ResponseCut != "" {
		t.Errorf("audit saw %d bytes, cut %q; want %d", len(rec.ResponseBody), rec.ResponseCut, want.Len())
	}
}

// TestUncounted sticks even those audits that only count.
func TestUncounted(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 100)
	g := newRig(t, serve(t, func(http.ResponseWriter, *http.Request) {}), setup{
		options: Options{MaxAudits: 2},
		engine:  audit.Options{Sinks: []audit.Sink{blockingSink{entered, release}}},
	})
	g.proxy.maxTallies = 2
	for range 10 {
		if res, _ := g.must("POST", "/x", strings.NewReader("prompt")); res.StatusCode != 200 {
			t.Errorf("got %d", res.StatusCode)
		}
	}
	for range 4 {
		await(t, "stuck audit", entered)
	}
	if got := value(t, g.proxy.metrics.uncounted); got != 6 {
		t.Errorf("%v exchanges uncounted, want 6", got)
	}
	close(release)
}

type blockingSink struct{ entered, release chan struct{} }

func (blockingSink) Finding(detectors.Finding, bool) {}
func (b blockingSink) Exchange(audit.Summary) {
	b.entered <- struct{}{}
	<-b.release
}

// TestPanicIsContained has the capture panic.
func TestPanicIsContained(t *testing.T) {
	g := newRig(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "ok")
	}), setup{options: Options{Record: func(*audit.Record) { panic("of the test") }}})
	for range 3 {
		if _, got := g.must("POST", "/x", strings.NewReader("prompt")); string(got) != "ok" {
			t.Errorf("got %q", got)
		}
	}
	if err := g.proxy.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := value(t, g.proxy.metrics.panics); got != 3 {
		t.Errorf("%v panics counted, want 3", got)
	}
}

// TestRecord looks at a whole record.
func TestRecord(t *testing.T) {
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Cf-Ray", "8f-AMS")
		w.Header().Set("Set-Cookie", "session=secret")
		io.WriteString(w, "0123456789")
	})
	g := newRig(t, upstream, setup{options: Options{
		IDHeader: "x-request-id", Instance: "decode-3", MaxRecordBody: 8,
		Tenants: TenantRules{TrustedHeader: "X-Tenant"},
	}})
	before := time.Now()
	g.must("POST", "/v1/x?api_key=secret", strings.NewReader("a longer prompt"),
		"X-Request-Id", "r-1", "Authorization", "Bearer secret", "Cookie", "secret", "X-Api-Key", "secret",
		"Content-Type", "text/plain", "User-Agent", "test", "X-Tenant", "acme")
	rec := g.record()
	if rec.Start.Before(before) || rec.End.Before(rec.Start) || rec.End.After(time.Now()) {
		t.Errorf("start %v, end %v", rec.Start, rec.End)
	}
	got := fmt.Sprintf("%s %s %q %s %s %s %v %q %q %d %v %q %q %t", rec.ID, rec.Tenant, rec.User, rec.Instance, rec.Method, rec.Path,
		rec.RequestHeader, rec.RequestBody, rec.RequestCut, rec.Status, rec.ResponseHeader, rec.ResponseBody, rec.ResponseCut, rec.Aborted)
	const want = `r-1 acme "" decode-3 POST /v1/x map[content-type:text/plain user-agent:test x-request-id:r-1] "a longer" "too_large" 200 map[cf-ray:8f-AMS content-type:text/plain] "01234567" "too_large" false`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if strings.Contains(fmt.Sprintf("%+v", rec), "secret") {
		t.Error("the record holds a credential")
	}
}

// askedHeader notes which headers are asked for.
type askedHeader struct {
	contentType string
	asked       map[string]bool
}

func (h askedHeader) Get(name string) string {
	h.asked[http.CanonicalHeaderKey(name)] = true
	if http.CanonicalHeaderKey(name) == "Content-Type" {
		return h.contentType
	}
	return ""
}

// TestRecordHoldsWhatReadersAsk keeps a replay reading what the live audit
// read: every header that a dialect asks for is in a record.
func TestRecordHoldsWhatReadersAsk(t *testing.T) {
	h := askedHeader{asked: map[string]bool{}}
	for _, d := range dialect.All() {
		for _, h.contentType = range []string{
			"", "application/json", "text/event-stream", "application/x-ndjson", "text/plain", "multipart/form-data",
			"application/octet-stream", "application/vnd.amazon.eventstream",
		} {
			p, _ := d.Prompt([]byte("{}"), "/v1/chat/completions", h) // what it reads is of no interest
			decoder := d.Decoder(p, h)
			decoder.Finish(decoder.Append(nil, []byte("{}")))
		}
	}
	for name := range h.asked {
		if !slices.Contains(recordedHeaders[:], name) {
			t.Errorf("a dialect reads %s, which no record holds", name)
		}
	}
	if len(h.asked) < 3 {
		t.Errorf("only %d headers were asked for", len(h.asked))
	}
}

func TestExchangeIDs(t *testing.T) {
	g := newRig(t, serve(t, func(http.ResponseWriter, *http.Request) {}), setup{options: Options{IDHeader: "X-Request-Id"}})
	seen := map[string]bool{}
	for _, tt := range []struct {
		values []string
		kept   bool
	}{
		{nil, false},
		{[]string{"req_01"}, true},
		{[]string{""}, false},
		{[]string{"has space"}, false},
		{[]string{"caf\u00e9"}, false},
		{[]string{strings.Repeat("x", 128)}, true},
		{[]string{strings.Repeat("x", 129)}, false},
		{[]string{"one", "two"}, false},
		{nil, false},
	} {
		var header []string
		for _, v := range tt.values {
			header = append(header, "X-Request-Id", v)
		}
		g.must("GET", "/", nil, header...)
		rec := g.record()
		if tt.kept && rec.ID != tt.values[0] || !tt.kept && len(rec.ID) != 26 || seen[rec.ID] {
			t.Errorf("header %q: id %q", tt.values, rec.ID)
		}
		seen[rec.ID] = true
	}
}

// TestMetrics looks at the metrics' form, and at what simple traffic makes of
// them.
func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	inside := make(chan struct{})
	leave := make(chan struct{})
	g := newRig(t, serve(t, func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	}), setup{options: Options{Registerer: reg}})
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := g.do("GET", "/", nil)
		done <- err
	}()
	await(t, "request", inside)
	expect := func(when, want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want),
			"auditproxy_inflight_requests", "auditproxy_inflight_audits", "auditproxy_unknown_tenant_total"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	const text = `
# HELP auditproxy_inflight_audits Exchanges whose audit has not ended.
# TYPE auditproxy_inflight_audits gauge
auditproxy_inflight_audits %d
# HELP auditproxy_inflight_requests Requests being forwarded, upgraded connections among them.
# TYPE auditproxy_inflight_requests gauge
auditproxy_inflight_requests %d
# HELP auditproxy_unknown_tenant_total Requests whose tenant only their address tells.
# TYPE auditproxy_unknown_tenant_total counter
auditproxy_unknown_tenant_total 1
`
	expect("in flight", fmt.Sprintf(text, 1, 1))
	leave <- struct{}{}
	if err := await(t, "response", done); err != nil {
		t.Fatal(err)
	}
	g.server.Close() // waits for the handler
	if err := g.proxy.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("after", fmt.Sprintf(text, 0, 0))
	if n, err := testutil.GatherAndCount(reg, "auditproxy_added_latency_seconds"); n != 1 || err != nil {
		t.Errorf("added latency: %d series, %v", n, err)
	}
	if _, err := New(Options{Upstream: g.proxy.o.Upstream, Engine: g.engine, Registerer: reg}); err == nil {
		t.Error("a second proxy on the same registry is no error")
	}
}
