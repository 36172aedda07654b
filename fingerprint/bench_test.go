package fingerprint

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/dchest/siphash"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Texts are of 64 MB, which is more than the caches hold: a hash that does
// nothing but read them then runs at the speed of memory, and it is that speed
// which the shingler is measured against. From a cache, xxh3 is five times as
// fast and the shingler no faster.
//
// BenchmarkRatio compares: it goes through a text in parts so short that few
// are interrupted, gives them to the shingler and the references in turn, and
// reports by how much the median speeds differ. That holds on a busy machine,
// where the speeds themselves mean little.

const (
	benchBytes = 64 << 20

	// deltaBytes is the size of a streamed delta: a token's.
	deltaBytes = 6
)

// benchTexts are the texts to read: corpora, or without them the words of a
// text of ours in random order.
var benchTexts = []struct {
	name, lang string
	corpora    []string
	words      func(b *testing.B) []string
}{
	{"english", "en", []string{"long_books"}, englishWords},
	{"go", "", nil, nil},
	{"french", "fr", []string{"vigogne_oasst_fr", "mt_bench_multilingual", "public_handbook"}, sampleWords("french")},
	{"chinese", "zh", []string{"llmzoo_en_zh", "mt_bench_multilingual", "public_handbook"}, sampleWords("chinese")},
}

func englishWords(b *testing.B) []string {
	text, err := os.ReadFile("testdata/english.txt")
	if err != nil {
		b.Fatal(err)
	}
	return strings.Fields(string(text))
}

func sampleWords(name string) func(b *testing.B) []string {
	return func(b *testing.B) []string {
		i := slices.IndexFunc(samples, func(s sample) bool { return s.name == name })
		if samples[i].wide {
			return strings.Split(samples[i].text, "")
		}
		return strings.Fields(samples[i].text)
	}
}

// eachText runs f for each text as a benchmark of its own.
func eachText(b *testing.B, f func(b *testing.B, text string)) {
	for _, t := range benchTexts {
		b.Run(t.name, func(b *testing.B) {
			var once string
			switch _, err := os.Stat(corpus); {
			case t.name == "go":
				once = goSource(b)
			case err == nil:
				for _, name := range t.corpora {
					once += strings.Join(corpusTexts(b, name, t.lang, 1000), "\n")
				}
			default:
				once = shuffled(t.words(b), t.name == "chinese")
			}
			f(b, strings.Repeat(once, benchBytes/len(once)+1)[:benchBytes])
		})
	}
}

// goSource returns the source of this repository.
func goSource(b *testing.B) string {
	var text strings.Builder
	for _, pattern := range []string{"*.go", "../*/*.go", "../*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			b.Fatal(err)
		}
		for _, file := range files {
			if filepath.Base(file) == "fold_table.go" {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			text.Write(source)
		}
	}
	return text.String()
}

// shuffled draws two megabytes of words.
func shuffled(words []string, wide bool) string {
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < 2<<20 {
		text.WriteString(words[r.IntN(len(words))])
		if !wide {
			text.WriteByte(' ')
		}
	}
	return text.String()
}

// reader returns a function that reads the next part of a text. Prints are
// dropped after each part, as if they had been looked up.
func reader() func(part string) {
	h := NewScheme(testKey).Shingler()
	dst := make([]Print, 0, pieceBytes)
	return func(part string) { dst = h.Append(dst[:0], part) }
}

// BenchmarkShingler reads texts that come in large pieces, and texts in chunks
// of the size of a streamed delta.
func BenchmarkShingler(b *testing.B) {
	eachText(b, func(b *testing.B, text string) {
		for _, chunk := range []struct {
			name string
			size int
		}{{"whole", pieceBytes}, {"chunks", deltaBytes}} {
			b.Run(chunk.name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				read := reader()
				for b.Loop() {
					for part := range parts(text, chunk.size) {
						read(part)
					}
				}
			})
		}
	})
}

// parts cuts a text into parts of one size.
func parts(text string, size int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := min(size, len(text))
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// reference is something else to do with a text, a function of its parts. What
// is slow gets parts of the size of a usual prompt, which few interruptions
// hit, and fewer of them.
type reference struct {
	name  string
	part  int // bytes
	start func() func(part string)
}

const promptBytes = 8 << 10

var sink uint64

var references = append([]reference{
	// Words and their hashes, without selection.
	{"tokenise", pieceBytes, func() func(part string) {
		h := NewScheme(testKey).Shingler()
		return func(part string) {
			for i := h.resume(part); i < len(part); {
				i = h.words(part, i)
				if h.win.fresh = h.win.n; h.win.n > windowFull {
					h.win.shift()
				}
			}
			h.pos += uint32(len(part))
		}
	}},
	// The same passages in the usual way: golang.org/x/text makes a normal form,
	// fields are words, and each run of words is searched.
	{"fold", promptBytes, func() func(part string) {
		fold := cases.Fold()
		return func(part string) {
			var hashes []uint64
			for _, w := range strings.FieldsFunc(fold.String(norm.NFKC.String(part)), func(c rune) bool {
				return !unicode.IsLetter(c) && !unicode.IsNumber(c)
			}) {
				hashes = append(hashes, siphash.Hash(1, 2, []byte(w)))
			}
			for i := 0; i+PassageWords <= len(hashes); i++ {
				run := hashes[i : i+PassageWords]
				if least := slices.Min(run); least != run[0] && least != run[stride] {
					continue
				}
				var value []byte
				for _, h := range run {
					value = binary.LittleEndian.AppendUint64(value, h)
				}
				hi, _ := siphash.Hash128(1, 2, value)
				sink += hi
			}
		}
	}},
}, peers...)

// BenchmarkReference does other things with the same texts.
func BenchmarkReference(b *testing.B) {
	for _, r := range references {
		b.Run(r.name, func(b *testing.B) {
			eachText(b, func(b *testing.B, text string) {
				text = text[:benchBytes/pieceBytes*r.part]
				b.SetBytes(int64(len(text)))
				run := r.start()
				for b.Loop() {
					for part := range parts(text, r.part) {
						run(part)
					}
				}
			})
		})
	}
}

// BenchmarkRatio reports how many times as fast as each reference the shingler
// reads texts that come in large pieces. The two take turns of eight parts, lest
// each should measure what the other has left in the caches.
func BenchmarkRatio(b *testing.B) {
	for _, r := range references {
		b.Run(r.name, func(b *testing.B) {
			eachText(b, func(b *testing.B, text string) {
				at := 0
				var times [2][]float64
				runs := [2]func(part string){reader(), r.start()}
				for b.Loop() {
					for i, size := range [2]int{pieceBytes, r.part} {
						for range 8 {
							part := text[at : at+size]
							at = (at + pieceBytes) % len(text)
							start := time.Now()
							runs[i](part)
							times[i] = append(times[i], float64(time.Since(start))/float64(size))
						}
					}
				}
				for _, t := range times {
					slices.Sort(t)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(times[1][len(times[1])/2]/times[0][len(times[0])/2], "ratio")
			})
		})
	}
}
