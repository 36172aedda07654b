package sim

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/auditproxy/auditproxy/gpukv"
)

func newEngine(t *testing.T, o Options) *Engine {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// ask submits a prompt and returns its stream with the channel that wakes.
func ask(t *testing.T, e *Engine, text string, maxNew int) (*stream, chan struct{}) {
	t.Helper()
	tenant, _ := e.tenant("a")
	wake := make(chan struct{}, 1)
	s, err := e.submit(tenant, e.encode(tenant, textPrompt(text, false)), maxNew, wake)
	if err != nil {
		t.Fatal(err)
	}
	return s, wake
}

func finished(s *stream, wake chan struct{}) ([]gpukv.Token, gpukv.Finish) {
	for {
		if tokens, f := s.from(0); f != nil {
			return tokens, *f
		}
		<-wake
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string // part of the error
	}{
		{Options{Divisor: -1}, "divisor: -1 is negative"},
		{Options{MaxNew: -2}, "max new: -2 is negative"},
		{Options{MaxLabels: -1}, "max labels"},
		{Options{MaxBody: -1}, "max body"},
		{Options{DecodeRate: -1}, "decode rate"},
		{Options{PrefillRate: math.NaN()}, "prefill rate"},
		{Options{Divisor: 1 << 20}, "cluster"},
		{Options{Cluster: gpukv.Config{Faults: []gpukv.Fault{"gremlins"}}}, "gremlins"},
	} {
		e, err := New(tt.o)
		if err == nil {
			e.Close()
			t.Errorf("%+v is accepted, want an error with %q", tt.o, tt.want)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %q, want one with %q", tt.o, err, tt.want)
		}
	}
	e := newEngine(t, Options{Divisor: 64})
	s := e.Stats()
	if s.Window != 16_384 || s.Prefill.MaxTotalTokens != 10_624 || s.Decode.MaxTotalTokens != 32_768 || s.PageSize != 64 {
		t.Errorf("sizes divided by 64: %+v", s)
	}
	if e.Model() != "@cf/zai-org/glm-5.3" {
		t.Errorf("model %q", e.Model())
	}
}

func TestAnswersDependOnTheSeedAlone(t *testing.T) {
	say := func(seed uint64) string {
		e := newEngine(t, Options{Divisor: 64, Cluster: gpukv.Config{Seed: seed}})
		s, wake := ask(t, e, "What is the tide table for "+passage+"?", 80)
		tokens, f := finished(s, wake)
		if f.Status != 200 || len(tokens) == 0 {
			t.Fatalf("finish %+v after %d tokens", f, len(tokens))
		}
		return e.vocabulary.Decode(tokens)
	}
	if a, b := say(1), say(1); a != b {
		t.Errorf("one seed, two answers: %q and %q", a, b)
	}
	if say(1) == say(2) {
		t.Error("two seeds, one answer")
	}
}

func TestEndOfTextIsNeverSaid(t *testing.T) {
	e := newEngine(t, Options{Divisor: 64})
	stops := 0
	for range 40 {
		s, wake := ask(t, e, "Is it late?", 400)
		tokens, f := finished(s, wake)
		if f.Reason == "stop" {
			stops++
		}
		if len(tokens) < shortestAnswer {
			t.Errorf("an answer of %d tokens", len(tokens))
		}
		for _, tok := range tokens {
			if tok == endToken || tok == 0 {
				t.Fatalf("token %d in an answer", tok)
			}
		}
	}
	if stops < 20 {
		t.Errorf("%d of 40 answers end by themselves", stops)
	}
}

func TestCloseEndsRequests(t *testing.T) {
	e := newEngine(t, Options{Divisor: 64, DecodeRate: 5})
	s, wake := ask(t, e, "Tell me everything.", 4000)
	for {
		if tokens, _ := s.from(0); len(tokens) > 0 {
			break
		}
		<-wake
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(e.Close)
	}
	wg.Wait()
	if _, f := finished(s, wake); f.Status != 503 || f.Reason != "abort" {
		t.Errorf("finish %+v", f)
	}
	if _, err := e.submit(1, []gpukv.Token{firstPiece}, 1, wake); !errors.Is(err, errClosed) {
		t.Errorf("submit after Close: %v", err)
	}
	e.cancel(s) // does nothing, and returns
	if n := e.pending.Load(); n != 0 {
		t.Errorf("%d requests pending", n)
	}
}

func TestPendingIsBounded(t *testing.T) {
	e := newEngine(t, Options{Divisor: 64, MaxPending: 2, DecodeRate: 0.001})
	a, wakeA := ask(t, e, "One", 10)
	b, wakeB := ask(t, e, "Two", 10)
	if _, err := e.submit(1, []gpukv.Token{firstPiece}, 1, nil); !errors.Is(err, errBusy) {
		t.Errorf("a third request: %v", err)
	}
	e.Close()
	finished(a, wakeA)
	finished(b, wakeB)
}

func TestTenantsAreBounded(t *testing.T) {
	e := newEngine(t, Options{Divisor: 1024, MaxTenants: 2})
	for _, name := range []string{"a", "b", "a"} {
		if _, ok := e.tenant(name); !ok {
			t.Errorf("tenant %s is turned away", name)
		}
	}
	if _, ok := e.tenant("c"); ok {
		t.Error("a third tenant is let in")
	}
}

// TestRates checks how long answers take by a clock that only moves when
// everybody waits.
func TestRates(t *testing.T) {
	for _, tt := range []struct {
		name             string
		prefill, decode  float64
		prompt, answer   int
		first, firstMost time.Duration // until the first token
		whole, wholeMost time.Duration
	}{
		{"none", 0, 0, 3000, 50, 0, 0, 0, 0},
		{"decode", 0, 10, 20, 50, 0, time.Second, 4900 * time.Millisecond, 6 * time.Second},
		{"prefill", 1000, 0, 3000, 50, 8 * time.Second, 9 * time.Second, 8 * time.Second, 9 * time.Second},
		// 3000 prompt tokens at 500 a second, then 50 tokens at 20 a second.
		{"both", 500, 20, 3000, 50, 5 * time.Second, 7500 * time.Millisecond, 8 * time.Second, 10500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := New(Options{Divisor: 64, PrefillRate: tt.prefill, DecodeRate: tt.decode})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				start := time.Now()
				s, wake := ask(t, e, strings.Repeat("word ", tt.prompt), tt.answer)
				for {
					if tokens, f := s.from(0); len(tokens) > 0 || f != nil {
						break
					}
					<-wake
				}
				if d := time.Since(start); d < tt.first || d > tt.firstMost {
					t.Errorf("first token after %v, want %v to %v", d, tt.first, tt.firstMost)
				}
				tokens, _ := finished(s, wake)
				if d := time.Since(start); len(tokens) == tt.answer && d < tt.whole || d > tt.wholeMost {
					t.Errorf("%d tokens after %v, want %v to %v", len(tokens), d, tt.whole, tt.wholeMost)
				}
			})
		})
	}
}

func TestFirstTokenOfAnOversizedPromptComesTooSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{
			Divisor: 64, PrefillRate: 1000, DecodeRate: 20,
			Cluster: gpukv.Config{Faults: []gpukv.Fault{gpukv.StalePages}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		start := time.Now()
		s, wake := ask(t, e, strings.Repeat("word ", 12_000), 20)
		if _, f := finished(s, wake); f.Status != 200 || f.PromptTokens < 12_000 {
			t.Errorf("finish %+v", f)
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("12,000 tokens at 1,000 a second were answered after %v, as if they had been read", d)
		}
	})
}

func TestAwait(t *testing.T) {
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	if !await(context.Background(), wake) {
		t.Error("a wake-up is not seen")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if await(ctx, wake) {
		t.Error("a client that left is not seen")
	}
}
