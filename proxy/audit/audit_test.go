package audit

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/proxy/dialect"
	"github.com/auditproxy/auditproxy/store"
)

var zero = time.Date(2026, 9, 8, 10, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }

// seen is a sink that keeps everything.
type seen struct {
	mu        sync.Mutex
	findings  []detectors.Finding
	news      int
	exchanges []Summary
}

func (s *seen) Finding(f detectors.Finding, news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Prints = nil
	s.findings = append(s.findings, f)
	if news {
		s.news++
	}
}

func (s *seen) Exchange(x Summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges = append(s.exchanges, x)
}

// final returns the final findings as "recipient exchange<donor exchange".
func (s *seen) final() []string {
	var out []string
	for _, f := range s.findings {
		if f.State == detectors.Final && f.Leak() {
			out = append(out, f.Recipient.Exchange+"<"+f.Donor.Exchange)
		}
	}
	slices.Sort(out)
	return out
}

func newEngine(t testing.TB, o Options) (*Engine, *seen) {
	t.Helper()
	ix, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{}
	o.Sinks = append(o.Sinks, s)
	e, err := New(fingerprint.NewScheme(fingerprint.Key{7}), ix, o)
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func words(rnd *rand.Rand, n int) string {
	w := make([]string, n)
	for i := range w {
		w[i] = fmt.Sprintf("w%x", rnd.Uint64()>>20)
	}
	return strings.Join(w, " ")
}

func part(text string, from, n int) string {
	return strings.Join(strings.Fields(text)[from:from+n], " ")
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func jsonOf(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func chat(messages ...message) []byte {
	return jsonOf(map[string]any{"model": "m", "messages": messages})
}

func user(text string) message      { return message{"user", text} }
func assistant(text string) message { return message{"assistant", text} }

func answer(text string) []byte {
	return jsonOf(map[string]any{"id": "x", "model": "m", "choices": []any{
		map[string]any{"index": 0, "message": message{"assistant", text}, "finish_reason": "stop"},
	}})
}

func sse(rnd *rand.Rand, text string) []byte {
	var b bytes.Buffer
	for len(text) > 0 {
		n := min(1+rnd.IntN(12), len(text))
		fmt.Fprintf(&b, "data: %s\n\n", jsonOf(map[string]any{"choices": []any{
			map[string]any{"index": 0, "delta": map[string]string{"content": text[:n]}},
		}}))
		text = text[n:]
	}
	b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	return b.Bytes()
}

var (
	jsonHeader = fields{"content-type": "application/json"}
	sseHeader  = fields{"content-type": "text/event-stream"}
)

const chatPath = "/v1/chat/completions"

func (e *Engine) begin(id, tenant string) *Transaction {
	return e.Begin(Exchange{ID: id, Tenant: tenant, Method: "POST", Path: chatPath, Header: jsonHeader})
}

// exchange runs one whole exchange.
func (e *Engine) exchange(id, tenant string, start float64, request []byte, h fields, response []byte) {
	t := e.begin(id, tenant)
	t.Request(request, at(start), "")
	t.Response(200, h)
	t.Append(response, at(start+0.5))
	t.Finish(at(start+1), "")
}

func TestLeakIsNamed(t *testing.T) {
	rnd := seeded(t)
	e, s := newEngine(t, Options{})
	secret := words(rnd, 200)
	donor := e.begin("ex-1", "A")
	donor.Request(chat(message{"system", "be brief"}, user(secret)), at(1), "")
	donor.Finish(at(2), ReasonClientGone) // aborted: no response at all
	e.exchange("ex-2", "B", 3, chat(user("a recipe please")), sseHeader, sse(rnd, "Here it is: "+part(secret, 40, 60)+" and enjoy."))
	if len(s.findings) < 2 || s.findings[0].State != detectors.Open || s.news != 1 {
		t.Fatalf("%d lines, %d of them news; want an open and a final one, the first news", len(s.findings), s.news)
	}
	f := s.findings[len(s.findings)-1]
	want := detectors.Finding{
		ID: f.ID, Time: at(4), State: detectors.Final, Kind: detectors.PromptLeak,
		Confidence: detectors.Probable, Severity: detectors.High,
		Recipient: f.Recipient, Evidence: f.Evidence,
		Donor: detectors.Donor{Tenant: "A", Exchange: "ex-1", Part: "prompt"},
		Model: "m", Detector: "passages",
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.Recipient.Tenant != "B" || f.Recipient.Exchange != "ex-2" || f.Recipient.Channel != "content" {
		t.Errorf("recipient %+v", f.Recipient)
	}
	if line := string(jsonOf(f)); strings.Contains(line, strings.Fields(secret)[60]) {
		t.Error("the finding holds text")
	}
}

// The first owner keeps a text, whatever happens to it afterwards.
func TestFirstOwner(t *testing.T) {
	rnd := seeded(t)
	secret, other := words(rnd, 120), words(rnd, 120)
	leak := part(secret, 20, 60)
	ask := chat(user("a recipe please"))
	for _, c := range []struct {
		name string
		run  func(e *Engine)
		want []string
	}{
		{"a leak", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b", "B", 3, ask, jsonHeader, answer(leak))
		}, []string{"b<a"}},
		{"a leak that comes back as history", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b1", "B", 3, ask, jsonHeader, answer(leak))
			e.exchange("b2", "B", 5, chat(user("a recipe please"), assistant(leak), user("go on")), jsonHeader, answer(leak))
		}, []string{"b1<a", "b2<a"}},
		{"a leak that is asked about", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b1", "B", 3, ask, jsonHeader, answer(leak))
			e.exchange("b2", "B", 5, chat(user("what is this: "+leak)), jsonHeader, answer(leak))
		}, []string{"b1<a", "b2<a"}},
		{"a leak to many does not become common", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			for i := range 6 {
				id := fmt.Sprint("b", i)
				e.exchange(id+"-1", id, float64(3+4*i), ask, jsonHeader, answer(leak))
				e.exchange(id+"-2", id, float64(5+4*i), chat(user(leak)), jsonHeader, answer("thanks"))
			}
		}, []string{"b0-1<a", "b1-1<a", "b2-1<a", "b3-1<a", "b4-1<a", "b5-1<a"}},
		{"own text", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b", "B", 3, chat(user(secret)), jsonHeader, answer(leak))
		}, nil},
		{"own text of an earlier exchange", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b1", "B", 3, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b2", "B", 5, ask, jsonHeader, answer(leak))
		}, nil},
		{"text of three tenants", func(e *Engine) {
			for i, id := range []string{"A", "B", "C"} {
				e.exchange(id, id, float64(1+2*i), chat(user(secret)), jsonHeader, answer("fine"))
			}
			e.exchange("d", "D", 9, ask, jsonHeader, answer(leak))
		}, nil},
		{"text of two tenants comes out to a third", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b", "B", 3, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("c", "C", 5, ask, jsonHeader, answer(leak))
		}, []string{"c<a"}},
		{"the model said it before the donor sent it", func(e *Engine) {
			e.exchange("c", "C", 1, ask, jsonHeader, answer(secret))
			e.exchange("a", "A", 3, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b", "B", 5, ask, jsonHeader, answer(leak))
		}, nil},
		{"its own answer, quoted", func(e *Engine) {
			e.exchange("b1", "B", 1, ask, jsonHeader, answer(secret))
			e.exchange("a", "A", 3, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("b2", "B", 5, chat(user("a recipe please"), assistant(secret), user("again")), jsonHeader, answer(secret))
		}, nil},
		{"the donor arrives while the answer runs", func(e *Engine) {
			b := e.begin("b", "B")
			b.Request(ask, at(1), "")
			b.Response(200, jsonHeader)
			e.exchange("a", "A", 2, chat(user(secret)), jsonHeader, answer("fine"))
			b.Append(answer(leak), at(5))
			b.Finish(at(6), "")
		}, []string{"b<a"}},
		{"the donor arrives after the end", func(e *Engine) {
			e.exchange("b", "B", 1, ask, jsonHeader, answer(leak))
			e.exchange("a", "A", 3, chat(user(secret)), jsonHeader, answer("fine"))
		}, nil},
		{"pieces too short to tell came out to others before", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			for i := range 20 {
				id := fmt.Sprint("c", i)
				e.exchange(id, id, float64(3+2*i), ask, jsonHeader, answer(part(secret, 20+i, 11)))
			}
			e.exchange("b", "B", 50, ask, jsonHeader, answer("so: "+part(secret, 20, 30)+" and so on"))
		}, []string{"b<a"}},
		{"two donors", func(e *Engine) {
			e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
			e.exchange("c", "C", 2, chat(user(other)), jsonHeader, answer("fine"))
			e.exchange("b", "B", 5, ask, jsonHeader, answer(leak+" "+part(other, 10, 50)))
		}, []string{"b<a", "b<c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, s := newEngine(t, Options{})
			c.run(e)
			if diff := cmp.Diff(c.want, s.final()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What was told early is withdrawn when the text turns out to be common before
// the response ends, and the last lines are those of a replay.
func TestWithdrawn(t *testing.T) {
	rnd := seeded(t)
	e, s := newEngine(t, Options{})
	secret := words(rnd, 80)
	e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
	b := e.begin("b", "B")
	b.Request(chat(user("hi")), at(2), "")
	b.Response(200, sseHeader)
	b.Append(sse(rnd, secret), at(3))
	for i, tenant := range []string{"C", "D"} {
		e.exchange(tenant, tenant, 4+float64(i), chat(user(secret)), jsonHeader, answer("fine"))
	}
	b.Finish(at(8), "")
	var states []detectors.State
	for _, f := range s.findings {
		states = append(states, f.State)
	}
	if diff := cmp.Diff([]detectors.State{detectors.Open, detectors.Withdrawn}, states); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Random traffic gives the same final findings live, with bytes in random
// pieces and exchanges interleaved, and from its records, in any order of
// those that the records' times allow.
func TestLiveIsReplay(t *testing.T) {
	rnd := seeded(t)
	for round := range 20 {
		live, liveSeen := newEngine(t, Options{})
		var records []*Record
		type running struct {
			rec  *Record
			tx   *Transaction
			left []byte
		}
		var open []*running
		var texts []string
		now := 0.0
		tick := func() time.Time { now += 0.001; return at(now) }
		end := func(i int) {
			x := open[i]
			open = slices.Delete(open, i, i+1)
			x.rec.End = x.tx.Finish(tick(), x.rec.ResponseCut)
			records = append(records, x.rec)
		}
		for n := range 120 {
			switch k := rnd.IntN(4); {
			case k == 0 || len(open) == 0: // a request arrives
				text := words(rnd, 5+rnd.IntN(120))
				if len(texts) > 0 && rnd.IntN(3) == 0 {
					text += " " + texts[rnd.IntN(len(texts))]
				}
				texts = append(texts, text)
				reply := words(rnd, rnd.IntN(30))
				for range 1 + rnd.IntN(2) {
					reply += " " + texts[rnd.IntN(len(texts))]
				}
				r := &Record{
					ID: fmt.Sprint("ex-", n), Tenant: string(rune('A' + rnd.IntN(6))), Method: "POST", Path: chatPath,
					RequestHeader: jsonHeader, RequestBody: chat(user(text), assistant(texts[rnd.IntN(len(texts))])),
					Status: 200, ResponseHeader: sseHeader, ResponseBody: sse(rnd, reply),
				}
				if rnd.IntN(4) == 0 {
					r.ResponseHeader, r.ResponseBody = jsonHeader, answer(reply)
				}
				if rnd.IntN(6) == 0 { // the client leaves
					r.ResponseBody = r.ResponseBody[:rnd.IntN(len(r.ResponseBody))]
					r.ResponseCut = ReasonClientGone
				}
				x := &running{rec: r, tx: live.begin(r.ID, r.Tenant), left: r.ResponseBody}
				r.Start = x.tx.Request(r.RequestBody, tick(), "")
				x.tx.Response(r.Status, fields(r.ResponseHeader))
				open = append(open, x)
			default: // some bytes of a response come
				i := rnd.IntN(len(open))
				x := open[i]
				k := min(1+rnd.IntN(3000), len(x.left))
				x.tx.Append(x.left[:k], tick())
				if x.left = x.left[k:]; len(x.left) == 0 {
					end(i)
				}
			}
		}
		for len(open) > 0 {
			open[0].tx.Append(open[0].left, tick())
			end(0)
		}
		again, againSeen := newEngine(t, Options{})
		type event struct {
			at  time.Time
			run func()
		}
		var events []event
		for _, r := range records {
			var tx *Transaction
			events = append(events,
				event{r.Start, func() { tx = again.Arrive(r) }},
				event{r.End, func() { again.Leave(tx, r) }})
		}
		slices.SortFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
		for _, x := range events {
			x.run()
		}
		want, got := finals(liveSeen), againSeen.findings
		slices.SortFunc(got, func(a, b detectors.Finding) int { return strings.Compare(a.ID, b.ID) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("round %d (-live +replay):\n%s", round, diff)
		}
		if round == 0 && len(want) == 0 {
			t.Error("no findings: the test proves nothing")
		}
	}
}

func finals(s *seen) []detectors.Finding {
	var out []detectors.Finding
	for _, f := range s.findings {
		if f.State == detectors.Final {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b detectors.Finding) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// cutOff loses the last third of a body.
func cutOff(b []byte) []byte { return b[:len(b)*2/3] }

func TestCoverage(t *testing.T) {
	rnd := seeded(t)
	zipped := func(b []byte) []byte {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		_, _ = z.Write(b)
		_ = z.Close()
		return buf.Bytes()
	}
	text := words(rnd, 60)
	type header = fields
	for _, c := range []struct {
		name               string
		method, path       string
		requestHeader      header
		request            []byte
		requestCut         dialect.Reason
		status             int
		responseHeader     header
		response           []byte
		cut                dialect.Reason
		want               Coverage
		reasons            []dialect.Reason
		found, unseenOwner bool
	}{
		{name: "json", want: Whole, found: true},
		{name: "stream", responseHeader: sseHeader, response: sse(rnd, text), want: Whole, found: true},
		{name: "gzip", responseHeader: header{"content-type": "application/json", "content-encoding": "gzip"}, response: zipped(answer(text)), want: Whole, found: true},
		{name: "gzip request", requestHeader: header{"content-type": "application/json", "content-encoding": "gzip"}, request: zipped(chat(user("hi"))), want: Whole, found: true},
		{name: "gzip cut off", responseHeader: header{"content-type": "text/event-stream", "content-encoding": "gzip"}, response: cutOff(zipped(sse(rnd, text+" "+words(rnd, 500)))), cut: ReasonUpstreamBroken, want: Part, reasons: []dialect.Reason{ReasonEncoding, ReasonUpstreamBroken}, found: true},
		{name: "unknown coding", responseHeader: header{"content-type": "application/json", "content-encoding": "rot13"}, want: None, reasons: []dialect.Reason{ReasonEncoding}},
		{name: "unknown path", method: "GET", path: "/v1/models", want: None, reasons: []dialect.Reason{dialect.ReasonNoDialect}},
		{name: "unknown API", method: "POST", path: "/odd", want: Part, reasons: []dialect.Reason{dialect.ReasonGeneric}, found: true, unseenOwner: true},
		{name: "not JSON", response: []byte("<html>"), want: None, reasons: []dialect.Reason{dialect.ReasonNotJSON}},
		{name: "wrong types", response: []byte(`{"choices":7}`), want: None, reasons: []dialect.Reason{dialect.ReasonShape}},
		{name: "another media type", responseHeader: header{"content-type": "image/png"}, want: None, reasons: []dialect.Reason{dialect.ReasonMIME, dialect.ReasonMedia}},
		{name: "client gone", responseHeader: sseHeader, response: cutOff(sse(rnd, text+" "+words(rnd, 100))), cut: ReasonClientGone, want: Part, reasons: []dialect.Reason{ReasonClientGone, dialect.ReasonTruncated}, found: true},
		{name: "prompt is not JSON", request: []byte("hi"), want: Part, reasons: []dialect.Reason{dialect.ReasonNotJSON}, found: true, unseenOwner: true},
		{name: "prompt cut", requestCut: ReasonTooLarge, want: Part, reasons: []dialect.Reason{ReasonTooLarge}, found: true, unseenOwner: true},
		{name: "upgrade of an unknown path", method: "GET", path: "/ws", status: 101, response: []byte{}, responseHeader: header{}, cut: ReasonUpgrade, want: None, reasons: []dialect.Reason{ReasonUpgrade}},
		{name: "upgrade", status: 101, response: []byte{}, responseHeader: header{}, cut: ReasonUpgrade, want: None, reasons: []dialect.Reason{ReasonUpgrade}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, s := newEngine(t, Options{})
			e.exchange("a", "A", 1, chat(user(text)), jsonHeader, answer("fine"))
			x := Exchange{ID: "b", Tenant: "B", Method: "POST", Path: chatPath, Header: jsonHeader}
			if c.path != "" {
				x.Method, x.Path = c.method, c.path
			}
			if c.requestHeader != nil {
				x.Header = c.requestHeader
			}
			if c.request == nil {
				c.request = chat(user("hi"))
			}
			if c.responseHeader == nil {
				c.responseHeader = jsonHeader
			}
			if c.response == nil {
				c.response = answer(text)
			}
			if c.status == 0 {
				c.status = 200
			}
			tx := e.Begin(x)
			tx.Request(c.request, at(3), c.requestCut)
			tx.Response(c.status, c.responseHeader)
			tx.Append(c.response, at(4))
			tx.Finish(at(5), c.cut)
			got := s.exchanges[len(s.exchanges)-1]
			if got.Coverage != c.want {
				t.Errorf("coverage %q, want %q", got.Coverage, c.want)
			}
			slices.Sort(got.Reasons)
			slices.Sort(c.reasons)
			if diff := cmp.Diff(c.reasons, []dialect.Reason(got.Reasons)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			all := finals(s)
			if found := len(all) > 0; found != c.found {
				t.Errorf("found %v, want %v", found, c.found)
			}
			for _, f := range all {
				if f.Evidence.PromptUnseen != c.unseenOwner {
					t.Errorf("prompt unseen %v, want %v", f.Evidence.PromptUnseen, c.unseenOwner)
				}
			}
		})
	}
}

// A finding in an answer to a prompt that was not read is probable at most.
func TestUnreadPromptIsNeverConfirmed(t *testing.T) {
	rnd := seeded(t)
	e, s := newEngine(t, Options{})
	secret := words(rnd, 300)
	e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
	leak := part(secret, 10, 40) + " and then " + part(secret, 200, 40)
	e.exchange("b", "B", 3, chat(user("hi")), jsonHeader, answer(leak))
	e.exchange("c", "C", 5, []byte("garbage"), jsonHeader, answer(leak))
	all := finals(s)
	got := map[string]detectors.Confidence{}
	for _, f := range all {
		got[f.Recipient.Exchange] = f.Confidence
	}
	want := map[string]detectors.Confidence{"b": detectors.Confirmed, "c": detectors.Probable}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// bomb panics in every scan.
type bomb struct{}

func (bomb) Name() string                                 { return "bomb" }
func (bomb) Scan(*detectors.Exchange, int) detectors.Scan { return bomb{} }
func (bomb) Finish([]detectors.Finding, time.Time) []detectors.Finding {
	panic("text of a prompt")
}

func (bomb) Append([]detectors.Finding, detectors.Delta) []detectors.Finding {
	panic("text of a prompt")
}

// A panic ends the audit of its exchange alone.
func TestPanicIsContained(t *testing.T) {
	e, s := newEngine(t, Options{Detectors: []detectors.Detector{bomb{}}})
	for i := range 3 {
		e.exchange(fmt.Sprint(i), "A", float64(i), chat(user("hi")), jsonHeader, answer("hello"))
	}
	if len(s.exchanges) != 3 {
		t.Fatalf("%d summaries, want 3", len(s.exchanges))
	}
	for _, x := range s.exchanges {
		if x.Coverage != None || !slices.Contains(x.Reasons, ReasonPanic) {
			t.Errorf("coverage %s for %v, want none for panic", x.Coverage, x.Reasons)
		}
	}
}

// Coverage adds up: whole + part + none = responses, in the metrics too.
func TestMetricsAddUp(t *testing.T) {
	rnd := seeded(t)
	ix, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewPedanticRegistry()
	m, err := NewMetrics(reg, ix)
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{}
	e, err := New(fingerprint.NewScheme(fingerprint.Key{7}), ix, Options{Sinks: []Sink{m, s}})
	if err != nil {
		t.Fatal(err)
	}
	secret := words(rnd, 100)
	e.exchange("a", "A", 0, chat(user(secret)), jsonHeader, answer("fine"))
	said := words(rnd, 60)
	e.exchange("b", "A", 1, chat(user("more")), jsonHeader, answer(said))
	e.exchange("c", "C", 1, chat(user(said)), jsonHeader, answer("fine"))
	responses := 3
	for i := range 200 {
		tx := e.begin(fmt.Sprint("x", i), "B")
		if rnd.IntN(5) == 0 {
			tx.x.Path, tx.dialect = "/odd", nil
		}
		tx.Request(chat(user("hi")), at(float64(2+i)), "")
		if rnd.IntN(5) > 0 {
			responses++
			tx.Response(200, sseHeader)
			body := sse(rnd, "well "+secret)
			tx.Append(body[:rnd.IntN(len(body)+1)], at(float64(2+i)))
		}
		tx.Finish(at(float64(2+i)), "")
	}
	sum := 0.0
	for _, c := range Coverages() {
		sum += testutil.ToFloat64(m.responses.WithLabelValues(string(c)))
	}
	if int(sum) != responses {
		t.Errorf("coverage adds up to %v of %d responses", sum, responses)
	}
	leaks := testutil.ToFloat64(m.leaks.WithLabelValues("m"))
	if want := len(s.final()); int(leaks) != want || want == 0 {
		t.Errorf("leaks_total %v, want %d", leaks, want)
	}
	if n := testutil.ToFloat64(m.control.WithLabelValues("probable")); n != 1 {
		t.Errorf("control_matches_total %v, want 1", n)
	}
	if testutil.ToFloat64(m.lastLeak) == 0 {
		t.Error("no time of the last leak")
	}
	if n, err := testutil.GatherAndCount(reg, "auditproxy_index_prints"); err != nil || n != 1 {
		t.Errorf("index_prints: %d series, %v", n, err)
	}
}

// Many exchanges at once: the race detector is the judge, and every leak is
// found.
func TestConcurrent(t *testing.T) {
	rnd := seeded(t)
	e, s := newEngine(t, Options{})
	secrets := make([]string, 8)
	for i := range secrets {
		secrets[i] = words(rnd, 100)
		e.exchange(fmt.Sprint("a", i), fmt.Sprint("A", i), 0, chat(user(secrets[i])), jsonHeader, answer("fine"))
	}
	bodies := make([][]byte, len(secrets))
	for i := range bodies {
		bodies[i] = sse(rnd, part(secrets[i], 10, 60))
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			e.exchange(fmt.Sprint("b", i), fmt.Sprint("B", i), 1, chat(user("hi")), sseHeader, bodies[i%8])
		})
	}
	wg.Wait()
	if n := len(s.final()); n != 64 {
		t.Errorf("%d leaks, want 64", n)
	}
}

// Event times are unique and rise, whatever the clock does.
func TestEventTimes(t *testing.T) {
	e, _ := newEngine(t, Options{})
	var last time.Time
	for _, s := range []float64{5, 5, 3, 5, 6, 1} {
		turn := e.turn(at(s))
		e.take(turn, func(time.Time) {})
		got := turn.at
		if !got.After(last) || got.Before(at(s)) {
			t.Errorf("an event at %v after one at %v took %v", at(s), last, got)
		}
		last = got
	}
}

// Events are taken in the order in which they happen, however late their work
// is done: a donor whose prompt takes long to read is there in time, and one
// that arrives after an answer has ended is none, though it is read before.
func TestEventOrder(t *testing.T) {
	rnd := seeded(t)
	e, s := newEngine(t, Options{})
	early, late := words(rnd, 100), words(rnd, 100)
	b := e.begin("b", "B")
	b.Request(chat(user("hi")), at(1), "")
	b.Response(200, jsonHeader)
	b.Append(answer(early+" "+late), at(4))

	a := e.begin("a", "A")
	a.Arrived(at(2)) // in time
	b.Ended(at(5))
	c := e.begin("c", "C")
	c.Arrived(at(6)) // after the end

	var wg sync.WaitGroup
	wg.Go(func() {
		c.Request(chat(user(late)), at(0), "")
		c.Finish(at(9), "")
	})
	wg.Go(func() { b.Finish(at(0), "") })
	wg.Go(func() {
		a.Request(chat(user(early)), at(0), "")
		a.Finish(at(8), "")
	})
	wg.Wait()
	if diff := cmp.Diff([]string{"b<a"}, s.final()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !b.end.at.Equal(at(5)) || !a.start.Equal(at(2)) {
		t.Errorf("a arrived at %v, b ended at %v; want the times at which they did", a.start, b.end.at)
	}
}

// An exchange whose audit hangs does not stop those of the others.
func TestHungAudit(t *testing.T) {
	e, s := newEngine(t, Options{Patience: time.Millisecond})
	hung := e.begin("hung", "A")
	hung.Arrived(at(1))
	for i := range 3 {
		e.exchange(fmt.Sprint(i), "B", 2, chat(user("hi")), jsonHeader, answer("hello"))
	}
	if len(s.exchanges) != 3 || e.OutOfOrder() != 1 {
		t.Errorf("%d exchanges ended, %d events out of order; want 3, 1", len(s.exchanges), e.OutOfOrder())
	}
	hung.Request(chat(user("hi")), at(1), "")
	hung.Finish(at(9), "")
	if len(s.exchanges) != 4 || e.OutOfOrder() != 1 {
		t.Errorf("%d exchanges ended, %d events out of order; want 4, 1", len(s.exchanges), e.OutOfOrder())
	}
}

// An arrival that is never read holds up nobody once its exchange is over.
func TestUnreadArrival(t *testing.T) {
	e, s := newEngine(t, Options{})
	a := e.begin("a", "A")
	a.Arrived(at(1))
	a.Finish(at(2), ReasonClientGone)
	e.exchange("b", "B", 3, chat(user("hi")), jsonHeader, answer("hello"))
	if len(s.exchanges) != 2 {
		t.Errorf("%d exchanges ended, want 2", len(s.exchanges))
	}
}

func TestLogIsNDJSON(t *testing.T) {
	var buf bytes.Buffer
	l := NewLog(&buf)
	f := detectors.Finding{ID: "f-1", Prints: []fingerprint.Print{{Hi: 1}}}
	l.Finding(f, true)
	l.Finding(f, false)
	dec := json.NewDecoder(&buf)
	for range 2 {
		var got detectors.Finding
		if err := dec.Decode(&got); err != nil || got.ID != "f-1" || got.Prints != nil {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if l.Err() != nil {
		t.Error(l.Err())
	}
}

// Every coding is undone, one in another too, and what came of a cut body is
// kept.
func TestInflate(t *testing.T) {
	text := bytes.Repeat([]byte("a body, now and then "), 5000)
	pack := map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	}
	packed := func(coding string, b []byte) []byte {
		var buf bytes.Buffer
		z := pack[coding](&buf)
		if _, err := z.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	for coding := range pack {
		if out, err := inflate(" "+strings.ToUpper(coding), packed(coding, text), 1<<20); err != nil || !bytes.Equal(out, text) {
			t.Errorf("%s: %d bytes, %v", coding, len(out), err)
		}
		for other := range pack {
			if out, err := inflate(coding+", "+other, packed(other, packed(coding, text)), 1<<20); err != nil || !bytes.Equal(out, text) {
				t.Errorf("%s in %s: %d bytes, %v", coding, other, len(out), err)
			}
		}
		if out, err := inflate(coding, packed(coding, text), 1000); err == nil || len(out) != 1000 {
			t.Errorf("%s over the limit: %d bytes, %v; want the limit and an error", coding, len(out), err)
		}
	}
	whole := packed("gzip", text)
	if out, err := inflate("gzip", whole[:len(whole)-6], 1<<20); err == nil || !bytes.Equal(out, text) {
		t.Errorf("gzip without its trailer: %d bytes, %v; want all of them and an error", len(out), err)
	}
}

// The answer to a batch that is fetched later is held against the prompt that
// was sent before.
func TestQueuedAnswer(t *testing.T) {
	rnd := seeded(t)
	secret := words(rnd, 100)
	run := func(quoted string) []string {
		e, s := newEngine(t, Options{})
		e.exchange("a", "A", 1, chat(user(secret)), jsonHeader, answer("fine"))
		const path = "/client/v4/accounts/B/ai/run/@cf/m"
		step := func(id string, start float64, request, response []byte) {
			tx := e.Begin(Exchange{ID: id, Tenant: "B", Method: "POST", Path: path, Header: jsonHeader})
			tx.Request(request, at(start), "")
			tx.Response(200, jsonHeader)
			tx.Append(response, at(start))
			tx.Finish(at(start+0.5), "")
		}
		own := "own words " + words(rnd, 50)
		step("submit", 3, jsonOf(map[string]any{"requests": []any{map[string]string{"prompt": own}}}),
			[]byte(`{"result":{"status":"queued","request_id":"q-1","model":"m"},"success":true}`))
		if quoted == "own" {
			ix, err := store.New(store.Options{}) // the index has lost what B sent
			if err != nil {
				t.Fatal(err)
			}
			e.index = ix
			e.exchange("c", "C", 4, chat(user(own)), jsonHeader, answer("fine"))
			quoted = own
		}
		step("poll", 5, []byte(`{"request_id":"q-1"}`),
			jsonOf(map[string]any{"success": true, "result": map[string]any{"responses": []any{
				map[string]any{"id": 0, "success": true, "result": map[string]string{"response": quoted}},
			}}}))
		return s.final()
	}
	if diff := cmp.Diff([]string{"poll<a"}, run(part(secret, 10, 60))); diff != "" {
		t.Errorf("a leak in a fetched answer (-want +got):\n%s", diff)
	}
	if got := run("own"); len(got) > 0 {
		t.Errorf("the batch's own text, quoted in the fetched answer, is a leak: %v", got)
	}
}

// Nothing of ours can be made to inflate a body without bound.
func TestInflateIsBounded(t *testing.T) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, _ = z.Write(make([]byte, 10<<20))
	_ = z.Close()
	out, err := inflate("gzip", buf.Bytes(), 1<<20)
	if err == nil || len(out) != 1<<20 {
		t.Errorf("%d bytes, %v; want the limit and an error", len(out), err)
	}
}
