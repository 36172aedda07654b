package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/store"
)

var zero = time.Date(2026, 9, 8, 10, 0, 0, 0, time.UTC)

func at(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }

type sink struct {
	mu       sync.Mutex
	findings []detectors.Finding
	order    []string // exchanges as they ended
}

func (s *sink) Finding(f detectors.Finding, _ bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings = append(s.findings, f)
}

func (s *sink) Exchange(x audit.Summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, x.ID)
}

func engine(t *testing.T) (*audit.Engine, *sink) {
	t.Helper()
	ix, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{}
	e, err := audit.New(fingerprint.NewScheme(fingerprint.Key{3}), ix, audit.Options{Sinks: []audit.Sink{s}})
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

func record(id, tenant string, start, end int, prompt, answer string) *audit.Record {
	body := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return b
	}
	return &audit.Record{
		ID: id, Tenant: tenant, Start: at(start), End: at(end), Method: "POST", Path: "/v1/chat/completions",
		RequestHeader:  map[string]string{"content-type": "application/json"},
		RequestBody:    body(map[string]any{"model": "m", "messages": []any{map[string]string{"role": "user", "content": prompt}}}),
		Status:         200,
		ResponseHeader: map[string]string{"content-type": "application/json"},
		ResponseBody:   body(map[string]any{"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": answer}}}}),
	}
}

func capture(records ...*audit.Record) []byte {
	var buf bytes.Buffer
	c := NewCapture(&buf)
	for _, r := range records {
		c.Write(r)
	}
	if err := c.Err(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

func words(seed uint64, n int) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := make([]string, n)
	for i := range w {
		w[i] = fmt.Sprintf("w%x", rnd.Uint64()>>20)
	}
	return strings.Join(w, " ")
}

// What is written is read back to the byte and the nanosecond.
func TestCaptureRoundTrip(t *testing.T) {
	for _, r := range []*audit.Record{
		record("a", "A", 1, 2, "hi", "<b>&amp;</b> \u2028 \x00 \u00e9 \U0001f600"),
		{ID: "b", Tenant: "B", User: "u", Instance: "i", Start: at(1).Add(7), End: at(2).Add(9), Method: "POST", Path: "/x%2Fy", RequestBody: []byte{0xff, 0xfe, 0}, RequestCut: "too_large", Aborted: true},
		{ID: "c", Tenant: "C", Start: at(1), End: at(1), Method: "GET", Path: "/", Status: 502, ResponseBody: []byte("{\"a\": 1}\n"), ResponseCut: "upstream_broken"},
	} {
		got, err := parseCapture(bytes.TrimSpace(capture(r)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
	}
}

// A body may stand in the capture as the JSON that it is.
func TestBodyAsJSON(t *testing.T) {
	r, err := parseCapture([]byte(`{"v":1,"id":"a","tenant":"A","start":"2026-09-08T10:00:00Z","request":{"method":"POST","path":"/","body":{"x": [1, 2]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.RequestBody); got != `{"x": [1, 2]}` || !r.End.Equal(r.Start) || r.Status != 0 {
		t.Errorf("got body %q, %+v", got, r)
	}
}

func TestBadLines(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{`, "not JSON at byte 1"},
		{`[]`, "a JSON array, want an object"},
		{`{"v":2}`, "v: version 2, want 1"},
		{`{"v":1}`, "id: missing"},
		{`{"v":1,"id":"a"}`, "tenant: missing"},
		{`{"v":1,"id":"a","tenant":"t"}`, "start: missing"},
		{`{"v":1,"id":"a","tenant":"t","start":"2026-09-08T10:00:00Z"}`, "request: missing"},
		{`{"v":1,"id":7}`, "id: a JSON number, want string"},
		{`{"v":1,"id":"a","tenant":"t","start":"yesterday SECRET"}`, "not a capture line"},
		{`{"v":1,"id":"a","tenant":"t","start":"2026-09-08T10:00:01Z","end":"2026-09-08T10:00:00Z","request":{}}`, "end: before start"},
		{`{"v":1,"id":"a","tenant":"t","start":"2026-09-08T10:00:01Z","request":{"body_base64":"SECRET!"}}`, "request: body_base64: illegal base64 data at input byte 6"},
		{`{"v":1,"id":"a","tenant":"t","start":"2026-09-08T10:00:01Z","request":{"body_base64":"QQ==","body":"SECRET"}}`, "request: both body and body_base64"},
		{`{"v":1,"id":"a","tenant":"t","start":"2026-09-08T10:00:01Z","request":{},"response":{}}`, "response: status 0 is none"},
	} {
		_, err := parseCapture([]byte(c.line))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.line, err, c.want)
		}
	}
}

// A bad line costs that line, is named by file, line and byte, and is counted.
func TestBadLinesAreSkipped(t *testing.T) {
	good := capture(record("a", "A", 1, 2, "hi", "ho"), record("b", "B", 3, 4, "hi", "ho"))
	first, second, _ := bytes.Cut(good, []byte("\n"))
	log := string(first) + "\n\n{oops\n" + string(second)
	name := filepath.Join(t.TempDir(), "log.ndjson")
	if err := os.WriteFile(name, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	e, s := engine(t)
	var bad []string
	got, err := Run(e, []string{name}, nil, Options{Bad: func(err error) { bad = append(bad, err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Result{Records: 2, Bad: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{fmt.Sprintf("%s: line 3 (byte %d): not JSON at byte 2", name, len(first)+2)}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(s.order) != 2 {
		t.Errorf("%d exchanges ended, want 2", len(s.order))
	}
}

// Events happen in the order of their times, whatever the order of the lines,
// and over several files.
func TestOrder(t *testing.T) {
	secret := words(1, 200)
	leak := strings.Join(strings.Fields(secret)[20:70], " ")
	donor := record("donor", "A", 10, 11, secret, "fine")
	early := record("early", "B", 1, 9, "hi", strings.Join(strings.Fields(secret)[120:170], " ")) // ends before the donor arrives
	during := record("during", "C", 5, 20, "hi", leak)                                            // runs while it does
	after := record("after", "D", 30, 31, "hi", leak)
	for _, files := range [][]string{
		{string(capture(early, donor, during, after))},
		{string(capture(after, during, donor, early))},
		{string(capture(after)), string(capture(during, early)), string(capture(donor))},
	} {
		var names []string
		for i, text := range files {
			name := filepath.Join(t.TempDir(), fmt.Sprint(i))
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		e, s := engine(t)
		if _, err := Run(e, names, nil, Options{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"early", "donor", "during", "after"}, s.order); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		var got []string
		for _, f := range s.findings {
			if f.State == detectors.Final {
				got = append(got, f.Recipient.Exchange)
			}
		}
		if diff := cmp.Diff([]string{"during", "after"}, got); diff != "" {
			t.Errorf("leaks (-want +got):\n%s", diff)
		}
	}
}

// Records that come after their window are audited all the same, and counted.
func TestWindow(t *testing.T) {
	log := capture(record("a", "A", 0, 1, "hi", "ho"), record("b", "A", 100, 101, "hi", "ho"), record("late", "A", 2, 3, "hi", "ho"))
	e, s := engine(t)
	got, err := Run(e, []string{"-"}, bytes.NewReader(log), Options{Window: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got.Records != 3 || len(s.order) != 3 {
		t.Errorf("%d records audited, %d ended, want 3", got.Records, len(s.order))
	}
	if got.Late != 0 {
		t.Errorf("%d late: the window of the newest record still holds b", got.Late)
	}
	e, _ = engine(t)
	log = append(log, capture(record("c", "A", 200, 201, "hi", "ho"), record("later", "A", 2, 3, "hi", "ho"))...)
	if got, err = Run(e, []string{"-"}, bytes.NewReader(log), Options{Window: 10 * time.Second}); err != nil || got.Records != 5 || got.Late != 1 {
		t.Errorf("got %+v, %v; want 5 records, 1 late", got, err)
	}
	e, _ = engine(t)
	if got, err = Run(e, []string{"-"}, bytes.NewReader(log), Options{WindowBytes: 1}); err != nil || got.Records != 5 || got.Late != 2 {
		t.Errorf("with no room to wait: got %+v, %v; want 5 records, 2 late", got, err)
	}
}

func TestCompression(t *testing.T) {
	plain := capture(record("a", "A", 1, 2, "hi", "ho"))
	zip := func(w func(io.Writer) io.WriteCloser) []byte {
		var buf bytes.Buffer
		z := w(&buf)
		if _, err := z.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	gz := zip(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	zst := zip(func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return z
	})
	for name, log := range map[string][]byte{"plain": plain, "gzip": gz, "zstd": zst, "gzip twice over": append(bytes.Clone(gz), gz...)} {
		e, _ := engine(t)
		got, err := Run(e, []string{"-"}, bytes.NewReader(log), Options{})
		want := 1
		if name == "gzip twice over" {
			want = 2
		}
		if err != nil || got.Records != want || got.Bad != 0 {
			t.Errorf("%s: %+v, %v; want %d records", name, got, err, want)
		}
	}
	e, _ := engine(t)
	got, err := Run(e, []string{"-"}, bytes.NewReader(gz[:len(gz)-9]), Options{})
	if err != nil || got.Bad == 0 {
		t.Errorf("a cut file: %+v, %v; want its end to be counted as bad", got, err)
	}
	if _, err := Run(e, []string{filepath.Join(t.TempDir(), "missing")}, nil, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestScore(t *testing.T) {
	finding := func(exchange, donor string, s detectors.State) detectors.Finding {
		return detectors.Finding{
			State: s, Kind: detectors.PromptLeak, Confidence: detectors.Probable,
			Recipient: detectors.Recipient{Exchange: exchange, Channel: "content"}, Donor: detectors.Donor{Tenant: donor},
		}
	}
	labels, err := ReadLabels(strings.NewReader(`
{"exchange":"caught","expect":[{"kind":"prompt_leak","donor":"A"}]}
{"exchange":"missed","expect":[{"kind":"prompt_leak","donor":"A"}]}
{"exchange":"half","expect":[{"donor":"A"},{"donor":"B"}],"allow":[{"donor":"C"}]}
{"exchange":"allowed","allow":[{"kind":"prompt_leak","donor":"A"}],"other":"field"}
{"exchange":"wrong donor","expect":[{"donor":"A","confidence":"probable","channel":"content"}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := Compare(labels, []detectors.Finding{
		finding("caught", "A", detectors.Open), finding("caught", "A", detectors.Final),
		finding("missed", "A", detectors.Withdrawn),
		finding("half", "A", detectors.Final), finding("half", "C", detectors.Final),
		finding("allowed", "A", detectors.Final),
		finding("wrong donor", "B", detectors.Final),
		finding("clean", "A", detectors.Final),
	}, 10)
	want := Score{
		Leaks: 4, Caught: 1, Clean: 6, False: 2, Expected: 5, Found: 2,
		Missing: []string{"half:  of B", "missed: prompt_leak of A", "wrong donor:  of A"},
		Wrong:   []string{"clean: prompt_leak of A", "wrong donor: prompt_leak of B"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Perfect() {
		t.Error("a perfect score")
	}
	for _, bad := range []string{`{}`, `{"exchange":1}`, `x`} {
		if _, err := ReadLabels(strings.NewReader(bad)); err == nil {
			t.Errorf("labels %s: no error", bad)
		}
	}
}

func FuzzCapture(f *testing.F) {
	f.Add(bytes.TrimSpace(capture(record("a", "A", 1, 2, "hi", "ho"))))
	f.Add([]byte(`{"v":1,"id":"a","tenant":"A","start":"2026-09-08T10:00:00Z","request":{"method":"POST","path":"/","body":{"x":1}},"response":{"status":200,"body_base64":"aGk="}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseCapture(line)
		if err != nil {
			return
		}
		again, err := parseCapture(bytes.TrimSpace(capture(r)))
		if err != nil {
			t.Fatalf("what was read can't be read again: %v", err)
		}
		if diff := cmp.Diff(r, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
