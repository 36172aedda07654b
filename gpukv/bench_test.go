package gpukv

import (
	"math/rand/v2"
	"testing"
	"time"
)

// prose returns n tokens with the frequencies of words: the first is one in
// twenty or so.
func prose(seed uint64, n int) []Token {
	z := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.07, 3, 50_000)
	p := make([]Token, n)
	for i := range p {
		p[i] = Token(1 + z.Uint64())
	}
	return p
}

const long = 700_000

// roomy holds a prompt of 700,000 tokens in both pools.
func roomy() Config { return Config{PrefillTokens: 1 << 20, Ranks: 1} }

// BenchmarkAdmit measures a prompt of 700,000 tokens from Submit to its first
// token: chunked prefill, transfer, commit.
func BenchmarkAdmit(b *testing.B) {
	prompt := prose(1, long)
	r := newRig(b, roomy(), Induction{Background: noise(2000)})
	var events []Event
	id := uint64(0)
	for b.Loop() {
		id++
		if err := r.Submit(Request{ID: id, Prompt: prompt, MaxNew: 1}); err != nil {
			b.Fatal(err)
		}
		for !r.Idle() {
			events = r.Step(events[:0])
		}
	}
}

// BenchmarkDecode measures a step of one request that attends to 700,000 slots
// and more, and the longest step, in which it looks for a source.
func BenchmarkDecode(b *testing.B) {
	for _, bb := range []struct {
		name string
		cfg  Config
	}{
		{"own", roomy()},
		{"stale", Config{Faults: []Fault{StalePages}, Ranks: 1}},
		{"zeroed", Config{Faults: []Fault{StalePages}, Fixes: []Fix{ZeroOnAlloc}, Ranks: 1}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := newRig(b, bb.cfg, Induction{Background: noise(2000)})
			var events []Event
			id := uint64(0)
			submit := func(n, answer int) {
				id++
				if err := r.Submit(Request{ID: id, Tenant: uint32(id), Prompt: prose(id, n), MaxNew: answer}); err != nil {
					b.Fatal(err)
				}
			}
			for range 4 {
				submit(600_000, 1)
				for !r.Idle() {
					events = r.Step(events[:0])
				}
			}
			var longest time.Duration
			for b.Loop() {
				if r.Stats().Decode.Running == 0 {
					b.StopTimer()
					submit(long, 300_000)
					for r.Stats().Decode.Running == 0 {
						events = r.Step(events[:0])
					}
					b.StartTimer()
				}
				start := time.Now()
				events = r.Step(events[:0])
				longest = max(longest, time.Since(start))
			}
			b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
		})
	}
}

// BenchmarkSource measures one look for a source among 700,000 slots.
func BenchmarkSource(b *testing.B) {
	c := over(prose(1, long), long-1000, 1)
	m := Induction{}
	for b.Loop() {
		c.n = long - c.rnd.IntN(1000) // another end to match
		m.source(c)
	}
}

// BenchmarkNew measures the allocation of both pools.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Config{}, small); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBatch measures a step of 32 requests of ordinary size.
func BenchmarkBatch(b *testing.B) {
	r := newRig(b, Config{Ranks: 1}, Induction{Background: noise(2000)})
	b.ReportAllocs()
	var events []Event
	id := uint64(0)
	for b.Loop() {
		for len(r.live) < 32 {
			id++
			if err := r.Submit(Request{ID: id, Tenant: uint32(id), Prompt: prose(id, 800), MaxNew: 400}); err != nil {
				b.Fatal(err)
			}
		}
		events = r.Step(events[:0])
	}
}
