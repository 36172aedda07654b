package sim

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// wordsOf returns the hashes of a text's words.
func wordsOf(text string) []uint64 {
	v := NewVocabulary(0)
	return v.words(nil, v.Encode(nil, text))
}

// runsOf returns the hashes of a text's runs of words.
func runsOf(text string) []uint64 {
	var w window
	var out []uint64
	for _, h := range wordsOf(text) {
		if h != 0 && w.add(h) {
			out = append(out, w.hash)
		}
	}
	return out
}

const passage = "the quick brown fox jumps over one lazy dog while seven grey geese watch from a distant pond"

func TestOrigins(t *testing.T) {
	const a, b, c = 1, 2, 3
	for _, tt := range []struct {
		name   string
		enter  func(*origins)
		sole   map[uint32]bool // whose alone the passage is
		common bool            // held by three and more
	}{
		{"nobody's", func(*origins) {}, nil, false},
		{"one tenant's", func(o *origins) { o.addPrompt(a, wordsOf(passage)) }, map[uint32]bool{a: true}, false},
		{"one tenant's, twice", func(o *origins) {
			o.addPrompt(a, wordsOf(passage))
			o.addPrompt(a, wordsOf("Well: "+strings.ToUpper(passage)+"!"))
		}, map[uint32]bool{a: true}, false},
		{"two tenants'", func(o *origins) { o.addPrompt(a, wordsOf(passage)); o.addPrompt(b, wordsOf(passage)) }, nil, false},
		{"three tenants'", func(o *origins) {
			for _, x := range []uint32{a, b, c} {
				o.addPrompt(x, wordsOf(passage))
			}
		}, nil, true},
		{"the engine's before a tenant's", func(o *origins) { o.addAnswer(wordsOf(passage)); o.addPrompt(a, wordsOf(passage)) }, nil, false},
		{"a tenant's before the engine's", func(o *origins) { o.addPrompt(a, wordsOf(passage)); o.addAnswer(wordsOf(passage)) }, map[uint32]bool{a: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOrigins(0)
			tt.enter(o)
			runs := runsOf(passage)
			if len(runs) != len(strings.Fields(passage))-runWords+1 {
				t.Fatalf("%d runs", len(runs))
			}
			for _, r := range runs {
				got, _ := o.find(r)
				for _, x := range []uint32{a, b, c} {
					if got.sole(x) != tt.sole[x] {
						t.Errorf("sole(%d) = %v", x, got.sole(x))
					}
				}
				if (got.more == several) != tt.common {
					t.Errorf("common = %v, want %v", got.more == several, tt.common)
				}
			}
		})
	}
}

// TestOriginsSkipNothing compares the record, which skips chunks that a tenant
// has sent before, with a plain one, over texts that overlap in many ways.
func TestOriginsSkipNothing(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	words := make([]uint64, 60)
	for i := range words {
		words[i] = wordHash(invent(rnd, 2))
	}
	words[0] &^= chunkMask << 32 // ends a chunk
	var texts [][]uint64
	for range 120 {
		var text []uint64
		for range 1 + rnd.IntN(6) {
			if len(texts) > 0 && rnd.IntN(2) == 0 {
				old := pick(rnd, texts)
				from := rnd.IntN(len(old))
				text = append(text, old[from:from+rnd.IntN(len(old)-from)+1]...)
				continue
			}
			for range rnd.IntN(200) {
				text = append(text, pick(rnd, words))
			}
		}
		texts = append(texts, append(text, 0, words[1]))
	}
	o := newOrigins(0)
	plain := make(map[uint64]origin)
	for _, text := range texts {
		tenant := uint32(1 + rnd.IntN(4))
		o.addPrompt(tenant, text)
		var w window
		for _, h := range text {
			if h == 0 || !w.add(h) {
				continue
			}
			have, ok := plain[w.hash]
			switch {
			case !ok:
				have.first = tenant
			case have.first == tenant || have.more == tenant || have.more == several:
			case have.more == 0:
				have.more = tenant
			default:
				have.more = several
			}
			plain[w.hash] = have
		}
	}
	if len(plain) < 1000 {
		t.Fatalf("only %d runs", len(plain))
	}
	for run, want := range plain {
		if got, ok := o.find(run); !ok || got != want {
			t.Fatalf("run %x: got %v, %v, want %v", run, got, ok, want)
		}
	}
}

func TestOriginsStayBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 0))
	o := newOrigins(2000)
	for i := range 300 {
		text := make([]uint64, 100)
		for j := range text {
			text[j] = rnd.Uint64() | 1
		}
		o.addPrompt(uint32(i%5+1), text)
		o.addPrompt(1, wordsOf(passage))
		if n := len(o.young.runs) + len(o.old.runs); n > 2*(2000+chunkWords) {
			t.Fatalf("%d runs after %d texts", n, i+1)
		}
	}
	if o.dropped.Load() == 0 {
		t.Error("nothing was dropped, or not counted")
	}
	for _, r := range runsOf(passage) {
		if got, ok := o.find(r); !ok || !got.sole(1) {
			t.Error("text that is sent all the time was forgotten")
		}
	}
	// Texts too short for a run must not fill the table of chunks either.
	for i := range 5000 {
		o.addPrompt(1, []uint64{uint64(i) | 1})
		if n := len(o.young.chunks) + len(o.old.chunks); n > 2*(2000/chunkShare+2) {
			t.Fatalf("%d chunks after %d short texts", n, i+1)
		}
	}
}

func TestWindowNeedsDifferentWords(t *testing.T) {
	for text, want := range map[string]bool{
		"na na na na na na na na na na na": false,
		"a b c d a b c d a b c":            false,
		"a b c d e a b c d e a":            true,
	} {
		var w window
		for _, h := range wordsOf(text) {
			w.add(h)
		}
		if got := w.distinct(); got != want {
			t.Errorf("distinct after %q = %v", text, got)
		}
	}
}
