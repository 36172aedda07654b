package gpukv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// covering are the fixes that close the path of the stale pages.
var covering = []Fix{RetireAfterForward, DoorCheck, LengthCheck, LengthCheckFailOpen, KVChecksum, ZeroOnAlloc}

// runs calls f with n seeds, after a base that the log names.
func runs(t *testing.T, n int, f func(t *testing.T, seed uint64)) {
	t.Helper()
	base := rand.Uint64()
	t.Logf("seeds %d to %d", base, base+uint64(n)-1)
	for i := range n {
		f(t, base+uint64(i))
		if t.Failed() {
			t.Fatalf("seed %d", base+uint64(i))
		}
	}
}

func TestCorrectEngineNeverReadsForeignSlots(t *testing.T) {
	for _, fixes := range [][]Fix{nil, {DeferredRelease}, Fixes()} {
		cfg := Config{Fixes: fixes}
		t.Run(describe(cfg), func(t *testing.T) {
			runs(t, 500, func(t *testing.T, seed uint64) {
				if n := chaos(t, seed, cfg).foreign(); n != 0 {
					t.Errorf("%d foreign reads", n)
				}
			})
		})
	}
}

func TestCoveringFixesNeverReadForeignSlots(t *testing.T) {
	for _, fix := range covering {
		cfg := Config{Faults: []Fault{StalePages}, Fixes: []Fix{fix}}
		t.Run(describe(cfg), func(t *testing.T) {
			runs(t, 200, func(t *testing.T, seed uint64) {
				if n := chaos(t, seed, cfg).foreign(); n != 0 {
					t.Errorf("%d foreign reads", n)
				}
			})
		})
	}
}

func TestStalePagesLeak(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{Fixes: []Fix{DeferredRelease}},
		{Fixes: []Fix{LengthCheckFailOpen}, OldPrefill: true},
	} {
		cfg.Faults = []Fault{StalePages}
		t.Run(describe(cfg), func(t *testing.T) {
			leaky, reads := 0, 0
			runs(t, 200, func(t *testing.T, seed uint64) {
				n := chaos(t, seed, cfg).foreign()
				if reads += n; n > 0 {
					leaky++
				}
			})
			t.Logf("%d foreign reads in %d of 200 runs", reads, leaky)
			if leaky < 20 {
				t.Errorf("only %d of 200 runs leak", leaky)
			}
		})
	}
}

// TestNothingLeaksBeforeTheWrap follows each run step by step: as long as no
// allocator has gone round, no slot can be stale.
func TestNothingLeaksBeforeTheWrap(t *testing.T) {
	before, after := 0, 0
	runs(t, 100, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{
			PageSize: 8, Window: 400, PrefillTokens: 160, DecodeTokens: 1600,
			Faults: []Fault{StalePages}, Seed: seed,
		}
		r := newRig(t, cfg, small)
		for id := uint64(1); id <= 40; id++ {
			n := 1 + rnd.IntN(100)
			if rnd.IntN(4) == 0 {
				n = 155 + rnd.IntN(200)
			}
			r.submit(Request{ID: id, Tenant: uint32(id), Prompt: words(id, n), MaxNew: 20})
			for range rnd.IntN(12) {
				r.step()
				s := r.Stats()
				n := r.foreign()
				if s.Prefill.Wraps+s.Decode.Wraps > 0 {
					after += n
				} else if before += n; n > 0 {
					t.Fatalf("%d foreign reads before any wrap", n)
				}
			}
		}
		r.drain()
	})
	if after == 0 {
		t.Error("nothing leaks after the wrap")
	}
}

func TestSameSeedSameEvents(t *testing.T) {
	for _, cfg := range []Config{{}, {Faults: []Fault{StalePages}}, {Faults: []Fault{StalePages}, Fixes: Fixes()}} {
		runs(t, 30, func(t *testing.T, seed uint64) {
			a, b := chaos(t, seed, cfg), chaos(t, seed, cfg)
			if diff := cmp.Diff(a.events, b.events); diff != "" {
				t.Errorf("events differ (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(a.truth.reads, b.truth.reads); diff != "" {
				t.Errorf("reads differ (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(a.Stats(), b.Stats()); diff != "" {
				t.Errorf("gauges differ (-first +second):\n%s", diff)
			}
		})
	}
	a := chaos(t, 1, Config{})
	b := chaos(t, 2, Config{})
	if cmp.Equal(a.events, b.events) {
		t.Error("two seeds give the same events")
	}
}

// TestMaxRunning: the batch fills up and no further.
func TestMaxRunning(t *testing.T) {
	r := newRig(t, Config{MaxRunning: 3}, at(0))
	for id := uint64(1); id <= 10; id++ {
		r.submit(Request{ID: id, Prompt: words(id, 20), MaxNew: 30})
	}
	most := 0
	for !r.Idle() {
		r.step()
		most = max(most, r.Stats().Decode.Running)
	}
	if most != 3 {
		t.Errorf("%d requests ran at once, want 3", most)
	}
	r.drain()
}

// TestOrderOfArrival: a request that waits for room is not overtaken by those
// that would fit.
func TestOrderOfArrival(t *testing.T) {
	r := newRig(t, Config{PageSize: 4, Window: 200, PrefillTokens: 80, DecodeTokens: 100, Ranks: 1}, at(0))
	r.submit(Request{ID: 1, Prompt: words(1, 40), MaxNew: 20})
	r.submit(Request{ID: 2, Prompt: words(2, 60), MaxNew: 20})
	for id := uint64(3); id <= 6; id++ {
		r.submit(Request{ID: id, Prompt: words(id, 2), MaxNew: 2})
	}
	r.drain()
	var first []uint64
	for _, e := range r.events {
		if !slices.Contains(first, e.Request) {
			first = append(first, e.Request)
		}
	}
	if len(first) != 6 || first[0] != 1 || first[1] != 2 {
		t.Errorf("first tokens in the order %v", first)
	}
}

// TestPressure keeps far more requests waiting than the pools hold.
func TestPressure(t *testing.T) {
	runs(t, 4, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		r := newRig(t, Config{PageSize: 4, Window: 200, PrefillTokens: 64, DecodeTokens: 96, MaxRunning: 3, Seed: seed}, small)
		for id := uint64(1); id <= 120; id++ {
			r.submit(Request{ID: id, Tenant: uint32(id % 3), Prompt: words(id, 1+rnd.IntN(57)), MaxNew: 1 + rnd.IntN(60)})
		}
		r.drain()
		for id, e := range r.ends {
			if e.Kind != Finished || len(r.answers[id]) != e.Finish.CompletionTokens {
				t.Errorf("request %d: %+v after %d tokens", id, e, len(r.answers[id]))
			}
		}
	})
}

func TestSubmitRejects(t *testing.T) {
	r := newRig(t, Config{}, at(0))
	r.submit(Request{ID: 1, Prompt: words(1, 3)})
	for _, tt := range []struct {
		name string
		q    Request
		want string
		is   error
	}{
		{"empty", Request{ID: 2}, "request 2: prompt is empty", nil},
		{"negative", Request{ID: 2, Prompt: words(2, 1), MaxNew: -1}, "request 2: -1 new tokens is negative", nil},
		{"live", Request{ID: 1, Prompt: words(1, 1)}, "request 1: id is taken", ErrLive},
	} {
		err := r.Submit(tt.q)
		if err == nil || err.Error() != tt.want || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	r.drain()
	if err := r.Submit(Request{ID: 1, Prompt: words(1, 1)}); err != nil {
		t.Errorf("an id that has ended without foreign reads: %v", err)
	}
}

func TestForget(t *testing.T) {
	r := incident(t, nil, 3)
	if len(r.Reads(3)) == 0 {
		t.Fatal("no foreign reads")
	}
	if err := r.Submit(Request{ID: 3, Prompt: words(3, 1)}); !errors.Is(err, ErrLive) {
		t.Errorf("an id with reads that were not forgotten: %v", err)
	}
	r.Forget(3)
	if got := r.Reads(3); len(got) != 0 {
		t.Errorf("%d reads after Forget", len(got))
	}
	if err := r.Submit(Request{ID: 3, Prompt: words(3, 1)}); err != nil {
		t.Errorf("a forgotten id: %v", err)
	}
}

// TestFinish checks how answers end and what they count.
func TestFinish(t *testing.T) {
	const stop = 99
	saying := func(toks ...Token) Model {
		return modelFunc(func(c *Context) (Token, int) { return toks[min(c.Gap(), len(toks)-1)], -1 })
	}
	for _, tt := range []struct {
		name   string
		model  Model
		q      Request
		want   Finish
		answer []Token
	}{
		{"length", saying(7), Request{MaxNew: 3}, Finish{Reason: "length", Status: 200, PromptTokens: 5, CompletionTokens: 3}, []Token{7, 7, 7}},
		{"one token", saying(7), Request{MaxNew: 1}, Finish{Reason: "length", Status: 200, PromptTokens: 5, CompletionTokens: 1}, []Token{7}},
		{"stop", saying(7, 8, stop), Request{MaxNew: 9, Stop: stop}, Finish{Reason: "stop", Status: 200, PromptTokens: 5, CompletionTokens: 3}, []Token{7, 8}},
		{"stop at once", saying(stop), Request{MaxNew: 9, Stop: stop}, Finish{Reason: "stop", Status: 200, PromptTokens: 5, CompletionTokens: 1}, nil},
		{"no stop", saying(7, stop), Request{MaxNew: 3}, Finish{Reason: "length", Status: 200, PromptTokens: 5, CompletionTokens: 3}, []Token{7, stop, stop}},
		{"default", saying(7), Request{}, Finish{Reason: "length", Status: 200, PromptTokens: 5, CompletionTokens: 128}, nil},
		// The window leaves 1,000 - 1 - 5 - 1 tokens.
		{"cut", saying(7), Request{MaxNew: 1 << 40}, Finish{Reason: "length", Status: 200, PromptTokens: 5, CompletionTokens: 993}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, Config{Window: 1000, PrefillTokens: 4096, DecodeTokens: 4096}, tt.model)
			tt.q.ID, tt.q.Prompt = 1, words(1, 5)
			if diff := cmp.Diff(tt.want, r.run(tt.q)); diff != "" {
				t.Errorf("finish (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.answer, r.answers[1]); tt.answer != nil && diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCancel cancels a request after each number of steps of its life.
func TestCancel(t *testing.T) {
	for _, fixes := range [][]Fix{nil, {DeferredRelease}} {
		for after := range 20 {
			t.Run(fmt.Sprint(fixes, after), func(t *testing.T) {
				r := newRig(t, Config{PageSize: 4, Window: 100, PrefillTokens: 80, DecodeTokens: 120, ChunkTokens: 8, Ranks: 1, Fixes: fixes}, at(0))
				r.submit(Request{ID: 1, Tenant: 1, Prompt: words(1, 30), MaxNew: 50})
				for range after {
					r.step()
				}
				said := len(r.answers[1])
				inFlight := len(r.live[1].room.writes)
				r.Cancel(1)
				r.Cancel(1)
				r.step()
				want := Event{Request: 1, Kind: Finished, Finish: Finish{Reason: "abort", Status: 499, PromptTokens: 30, CompletionTokens: said}}
				if diff := cmp.Diff(want, r.ends[1]); diff != "" {
					t.Errorf("end (-want +got):\n%s", diff)
				}
				if len(r.answers[1]) != said {
					t.Error("a token after the cancel")
				}
				s := r.Stats()
				for role, used := range map[string]int{"prefill": s.Prefill.UsedPages, "decode": s.Decode.UsedPages} {
					if want := fixes != nil && inFlight > 0; used > 0 != want {
						t.Errorf("%s holds pages: got %v, want %v", role, used > 0, want)
					}
				}
				r.audit()
				r.drain()
				if s := r.Stats(); s.Cancelled != 1 || s.Finished != 0 {
					t.Errorf("gauges: %+v", s)
				}
			})
		}
	}
}

// TestChunks follows a long prompt that shares its first forward: every chunk but
// the last is of whole pages, and decode is told when all have come.
func TestChunks(t *testing.T) {
	r := newRig(t, Config{PageSize: 8, Window: 200, PrefillTokens: 160, DecodeTokens: 160, ChunkTokens: 32, Ranks: 1}, at(0))
	r.submit(Request{ID: 1, Prompt: words(1, 5), MaxNew: 1})
	r.submit(Request{ID: 2, Prompt: words(2, 78), MaxNew: 1})
	type chunk struct{ Filled, Sent, Running int }
	var got []chunk
	for r.live[2] != nil && !r.live[2].p.gone {
		x := r.live[2]
		r.step()
		if c := (chunk{x.p.filled, x.room.sent, r.Stats().Prefill.Running}); c.Running > 0 {
			got = append(got, c)
		}
	}
	// 32-5 tokens are three pages; then four pages; then 22 tokens.
	want := []chunk{{24, 3, 2}, {56, 7, 1}, {78, 10, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("chunks (-want +got):\n%s", diff)
	}
	r.drain()
}

// FuzzCluster lets bytes drive the engine: what must always hold, holds.
func FuzzCluster(f *testing.F) {
	f.Add([]byte{0}, uint64(1))
	f.Add([]byte{1, 30, 2, 200, 3, 4, 5, 1, 90, 0, 0, 7, 255, 255, 6}, uint64(2))
	f.Fuzz(func(t *testing.T, ops []byte, seed uint64) {
		if len(ops) > 300 {
			return
		}
		all := Fixes()
		cfg := Config{PageSize: 1 + int(seed%9), Window: 150, PrefillTokens: 100, DecodeTokens: 300, ChunkTokens: 1 + int(seed%50), Seed: seed}
		if seed&1 != 0 {
			cfg.Faults = []Fault{StalePages}
		}
		for i, fix := range all {
			if seed>>(8+i)&1 != 0 {
				cfg.Fixes = append(cfg.Fixes, fix)
			}
		}
		r := newRig(t, cfg, small)
		var id uint64
		for i, op := range ops {
			switch op % 4 {
			case 0:
				r.step()
			case 1:
				r.Cancel(uint64(op / 4))
			default:
				id++
				r.submit(Request{ID: id, Tenant: uint32(op % 5), Prompt: words(id, 1+int(op)*(i%3)/2), MaxNew: int(op % 30)})
			}
		}
		r.drain()
		n := r.foreign()
		safe := len(cfg.Faults) == 0
		for _, fix := range covering {
			safe = safe || r.fixed[fix]
		}
		if safe && n > 0 {
			t.Errorf("%d foreign reads with %s", n, describe(cfg))
		}
	})
}
