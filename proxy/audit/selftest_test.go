package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/store"
)

// A self-test succeeds on an engine that works, again and again, and leaves no
// trace in the sinks.
func TestSelfTest(t *testing.T) {
	e, s := newEngine(t, Options{})
	for i := range 20 {
		if err := e.SelfTest(at(float64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.findings)+len(s.exchanges) != 0 {
		t.Errorf("%d findings and %d exchanges in the sinks, want none", len(s.findings), len(s.exchanges))
	}
}

// blind finds nothing.
type blind struct{}

func (blind) Name() string                                 { return "blind" }
func (blind) Scan(*detectors.Exchange, int) detectors.Scan { return blind{} }
func (blind) Append(dst []detectors.Finding, _ detectors.Delta) []detectors.Finding {
	return dst
}
func (blind) Finish(dst []detectors.Finding, _ time.Time) []detectors.Finding { return dst }

// wolf finds a leak in everything.
type wolf struct{ blind }

func (w wolf) Scan(*detectors.Exchange, int) detectors.Scan { return w }
func (wolf) Finish(dst []detectors.Finding, _ time.Time) []detectors.Finding {
	return append(dst, detectors.Finding{State: detectors.Final})
}

// A self-test fails where the engine is blind, cries wolf, or breaks.
func TestSelfTestFails(t *testing.T) {
	for _, c := range []struct {
		name string
		d    detectors.Detector
		want string
	}{
		{"blind", blind{}, "0 findings of a planted leak"},
		{"wolf", wolf{}, "findings in clean exchanges"},
		{"panics", bomb{}, `coverage "none", reasons ["panic"]`},
	} {
		e, _ := newEngine(t, Options{Detectors: []detectors.Detector{c.d}})
		if err := e.SelfTest(at(1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	e, _ := newEngine(t, Options{})
	e.index, _ = store.New(store.Options{Horizon: time.Second, Epochs: 1})
	e.index.Advance(at(9e6)) // all that arrives is beyond the horizon
	if err := e.SelfTest(at(1)); err == nil {
		t.Error("no error from an index that takes nothing")
	}
}

// The control sees a prompt that holds what another tenant was answered, and
// by then it is no leak; what a tenant was answered itself, what it says
// again, and what many were answered is nothing.
func TestControl(t *testing.T) {
	rnd := seeded(t)
	said := words(rnd, 120)
	ask := chat(user("a recipe please"))
	tell := func(text string) []byte { return chat(user(words(rnd, 30) + " " + text)) }
	for _, c := range []struct {
		name string
		run  func(e *Engine)
		want []detectors.Confidence
	}{
		{"one run", func(e *Engine) {
			e.exchange("p", "B", 3, tell(part(said, 20, 40)), jsonHeader, answer("ok"))
		}, []detectors.Confidence{detectors.Probable}},
		{"two runs", func(e *Engine) {
			e.exchange("p", "B", 3, tell(part(said, 0, 40)+" "+words(rnd, 40)+" "+part(said, 70, 40)), jsonHeader, answer("ok"))
		}, []detectors.Confidence{detectors.Confirmed}},
		{"its own answer", func(e *Engine) {
			e.exchange("p", "A", 3, tell(part(said, 20, 40)), jsonHeader, answer("ok"))
		}, nil},
		{"answered to others too", func(e *Engine) {
			e.exchange("ex-2", "C", 2, ask, jsonHeader, answer(said))
			e.exchange("p", "B", 4, tell(part(said, 20, 40)), jsonHeader, answer("ok"))
		}, nil},
		{"a second time", func(e *Engine) {
			e.exchange("ex-2", "B", 2, tell(said), jsonHeader, answer("ok"))
			e.exchange("p", "B", 4, tell(said), jsonHeader, answer("ok"))
		}, nil},
		{"other text", func(e *Engine) {
			e.exchange("p", "B", 3, tell(words(rnd, 40)), jsonHeader, answer("ok"))
		}, nil},
	} {
		e, s := newEngine(t, Options{})
		e.exchange("ex-1", "A", 1, ask, jsonHeader, answer(said))
		c.run(e)
		last := s.exchanges[len(s.exchanges)-1]
		if len(last.Control) != len(c.want) || len(c.want) > 0 && last.Control[0] != c.want[0] {
			t.Errorf("%s: control %v, want %v", c.name, last.Control, c.want)
		}
		if len(s.findings) != 0 {
			t.Errorf("%s: %d findings, want none", c.name, len(s.findings))
		}
	}
}
