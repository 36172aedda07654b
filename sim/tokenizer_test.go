package sim

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/auditproxy/auditproxy/gpukv"
)

func TestEncodePieces(t *testing.T) {
	long := strings.Repeat("a", 90)
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"words", "The lease ends, on 3 May.", []string{"The", " lease", " ends", ", on", " 3", " May", "."}},
		{"code", "\n\tif err != nil {", []string{"\n\tif", " err", " != nil", " {"}},
		{"ideographs", "修复 v3，今", []string{"修", "复", " v3", "，今"}},
		{"kana", "カード・の", []string{"カ", "ー", "ド", "・の"}},
		{"mixed scripts", "abc中def", []string{"abc", "中", "def"}},
		{"marks", "e\u0301te\u0301", []string{"e\u0301te\u0301"}},
		{"long word", long, []string{long[:40], long[40:80], long[80:]}},
		{"long separators", strings.Repeat("-", 20) + "x", []string{strings.Repeat("-", 16), "----x"}},
		{"invalid", "a\xffb", []string{"a", "\xffb"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := NewVocabulary(0)
			var got []string
			for _, tok := range v.Encode(nil, tt.text) {
				got = append(got, v.Decode([]gpukv.Token{tok}))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("pieces of %q (-want +got):\n%s", tt.text, d)
			}
			if n := CountTokens(tt.text); n != len(tt.want) {
				t.Errorf("CountTokens(%q) = %d, want %d", tt.text, n, len(tt.want))
			}
		})
	}
}

// randomText draws text from many scripts, with runs of separators, long words
// and, if raw, bytes that aren't UTF-8.
func randomText(rnd *rand.Rand, n int, raw bool) string {
	alphabets := []string{
		"abcdefghijklmnopqrstuvwxyzABC", "0123456789", " \t\n.,;:-_/\\\"'(){}<>=&%$#@!?", "éèüßñçøåłž",
		"契約书の機カナ한국어", "абвгд", "عربي", "ไทย", "😀👩‍👩‍👧\u200b\u00ad\u0301", "\u2028\ufffd\x00",
	}
	var b strings.Builder
	for b.Len() < n {
		set := []rune(alphabets[rnd.IntN(len(alphabets))])
		for range 1 + rnd.IntN(12) {
			b.WriteRune(set[rnd.IntN(len(set))])
		}
		switch rnd.IntN(20) {
		case 0:
			b.WriteString(strings.Repeat(string(set[0]), rnd.IntN(100)))
		case 1:
			if raw {
				b.WriteByte(byte(0x80 + rnd.IntN(128)))
			}
		}
	}
	return b.String()
}

func TestEncodeRoundTrip(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, limit := range []int{0, 64} {
		v := NewVocabulary(limit)
		for i := range 300 {
			text := randomText(rnd, rnd.IntN(2000), true)
			tokens := v.Encode(nil, text)
			if got := v.Decode(tokens); got != text {
				t.Fatalf("limit %d, text %d: %q came back as %q", limit, i, text, got)
			}
			for _, tok := range tokens {
				if tok == 0 || tok > firstByte+255 && tok < firstPiece {
					t.Fatalf("limit %d, text %d: reserved token %d", limit, i, tok)
				}
			}
			if again := v.Encode(nil, text); !cmp.Equal(again, tokens) {
				t.Fatalf("limit %d, text %d: encoded differently the second time", limit, i)
			}
		}
		if limit > 0 && v.Len() > limit {
			t.Errorf("vocabulary of %d pieces, limit %d", v.Len(), limit)
		}
	}
}

func TestEncodeLongTextUsesCacheRightly(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 0))
	text := randomText(rnd, 300_000, false)
	v := NewVocabulary(0)
	if got := v.Decode(v.Encode(nil, text)); got != text {
		t.Error("a long text doesn't come back")
	}
}

func TestVocabularyConcurrently(t *testing.T) {
	v := NewVocabulary(5000)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g%4), 0))
			for range 40 {
				text := randomText(rnd, 800, true)
				if got := v.Decode(v.Encode(nil, text)); got != text {
					t.Errorf("goroutine %d: text doesn't come back", g)
					return
				}
			}
		})
	}
	wg.Wait()
	if v.Len() > 5000 {
		t.Errorf("%d pieces, limit 5000", v.Len())
	}
}

func TestWordHashFoldsCase(t *testing.T) {
	v := NewVocabulary(0)
	hashes := func(s string) []uint64 { return v.words(nil, v.Encode(nil, s)) }
	if d := cmp.Diff(hashes("the lessee ÉTÉ 42"), hashes("THE, Lessee (été) 42")); d != "" {
		t.Errorf("words differ by case or punctuation:\n%s", d)
	}
	if cmp.Equal(hashes("lessee"), hashes("lessor")) {
		t.Error("different words, one hash")
	}
}

func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "a b", "\xff\xfe", "契約。の", strings.Repeat("x", 100), "\u0301", "a\u00a0b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := NewVocabulary(32)
		if got := v.Decode(v.Encode(nil, s)); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
		for rest := s; rest != ""; {
			end, word := nextPiece(rest)
			if end <= 0 || word > end || end > maxSeparators+maxWord+2*utf8.UTFMax {
				t.Fatalf("piece of %q ends at %d, word at %d", rest, end, word)
			}
			rest = rest[end:]
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	rnd := rand.New(rand.NewPCG(3, 0))
	words := make([]string, 20000)
	for i := range words {
		w := make([]byte, 2+rnd.IntN(9))
		for j := range w {
			w[j] = byte('a' + rnd.IntN(26))
		}
		words[i] = string(w)
	}
	var sb strings.Builder
	for sb.Len() < 5_000_000 {
		// Zipf-like: the lower ranks are drawn far more often.
		k := int(float64(len(words)) * rnd.Float64() * rnd.Float64() * rnd.Float64())
		sb.WriteString(words[k])
		sb.WriteByte(' ')
	}
	text := sb.String()
	v := NewVocabulary(0)
	dst := v.Encode(nil, text)
	b.SetBytes(int64(len(text)))
	b.ReportMetric(float64(len(dst)), "tokens")
	for b.Loop() {
		dst = v.Encode(dst[:0], text)
	}
}
