package fingerprint

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dchest/siphash"
)

// benchText shuffles the sentences of one sample into half a megabyte.
func benchText(b *testing.B, name string) string {
	for _, s := range samples {
		if s.name != name {
			continue
		}
		r := rand.New(rand.NewPCG(1, 2))
		words := vocabulary(b, s)
		var text strings.Builder
		for text.Len() < 1<<19 {
			text.WriteString(words[r.IntN(len(words))])
			if !s.wide {
				text.WriteByte(' ')
			}
		}
		return text.String()
	}
	b.Fatalf("no sample %s", name)
	return ""
}

// BenchmarkShingler reads whole texts and texts in pieces of the size of a
// streamed delta.
func BenchmarkShingler(b *testing.B) {
	for _, name := range []string{"english", "code", "russian", "chinese", "korean"} {
		text := benchText(b, name)
		for _, piece := range []struct {
			name string
			size int
		}{{"whole", len(text)}, {"deltas", 6}} {
			b.Run(name+"/"+piece.name, func(b *testing.B) {
				h := NewScheme(testKey).Shingler()
				dst := h.Append(nil, text)
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					dst = dst[:0]
					for rest := text; len(rest) > 0; {
						n := min(piece.size, len(rest))
						dst = h.Append(dst, rest[:n])
						rest = rest[n:]
					}
					dst = h.Finish(dst)
				}
			})
		}
	}
}

// BenchmarkReference hashes the same bytes with SipHash-2-4, once: the floor
// for any keyed reading of them.
func BenchmarkReference(b *testing.B) {
	for _, name := range []string{"english", "chinese"} {
		text := []byte(benchText(b, name))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				siphash.Hash(1, 2, text)
			}
		})
	}
}
