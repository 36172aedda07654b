package fingerprint

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// spaces behind a text have all of it read in blocks.
var spaces = strings.Repeat(" ", blockReach)

func wordsDiff(want, got []readWord) string {
	if slices.Equal(want, got) {
		return ""
	}
	return cmp.Diff(want, got, cmp.AllowUnexported(readWord{}))
}

// checkWords fails unless a text has the same words and bytes for the plain
// reader, in blocks at a place of its own in the stream, and in pieces.
func checkWords(t testing.TB, r *rand.Rand, s *Scheme, text string) {
	t.Helper()
	want := plainRead(t, text)
	if diff := wordsDiff(want, read(s, text+spaces)); diff != "" {
		t.Fatalf("words of %q in blocks (-want +got):\n%s", text, diff)
	}
	for _, longest := range []int{7, 300} {
		cut := pieces(r, text, longest)
		if diff := wordsDiff(want, read(s, cut...)); diff != "" {
			t.Fatalf("words of %q (-want +got):\n%s", cut, diff)
		}
	}
}

// TestWordBytes checks every byte at every place against the fold table.
func TestWordBytes(t *testing.T) {
	r := newRand(t)
	for c := range 256 {
		for at := range 8 {
			v := r.Uint64()
			v = v&^(0xFF<<(8*at)) | uint64(c)<<(8*at)
			got := wordBytes(v)
			if want := foldASCII[c] != 0; got>>(8*at+7)&1 != 0 != want {
				t.Fatalf("byte %#x at %d of %#016x: got %v, want %v", c, at, v, !want, want)
			}
			if got&^tops != 0 {
				t.Fatalf("%#016x: got bits %#x beside the top ones", v, got&^tops)
			}
			var want uint64
			for i := range 8 {
				want |= got >> (8*i + 7) & 1 << i
			}
			if g := gather(got); g != want {
				t.Fatalf("gather(%#x): got %#x, want %#x", got, g, want)
			}
		}
	}
}

// TestDecode checks the decoding of two and three bytes against unicode/utf8,
// and encoding against it for all code points.
func TestDecode(t *testing.T) {
	for i := range uint32(1 << 16 * 9) {
		v := i&0xFFFF | uint32("\x00A\x7f\x80\x81\xbf\xc0\xe0\xff"[i>>16])<<16
		b := []byte{byte(v), byte(v >> 8), byte(v >> 16), 'x'}
		got, n := decode(v | 'x'<<24)
		want, size := utf8.DecodeRune(b)
		switch {
		case got >= 0xD800 && got < 0xE000 && n == 3:
			if foldKind(foldEntry(rune(got))) != kindSeparator {
				t.Fatalf("surrogate %#x is no separator", got)
			}
		case size == 1 && n != 0, size > 1 && (n != size || rune(got) != want):
			t.Fatalf("% x: got %#x of %d bytes, want %#x of %d", b[:3], got, n, want, size)
		}
	}
	for r := range rune(utf8.MaxRune + 1) {
		if !utf8.ValidRune(r) {
			continue
		}
		b, n := encode(r)
		got := []byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)}[:n]
		if string(got) != string(r) || b>>(8*n) != 0 {
			t.Fatalf("%U: got % x", r, b)
		}
	}
}

// TestBlockAlignment reads texts that begin at each byte of a block.
func TestBlockAlignment(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	texts := []string{noise(r, 40), noise(r, 40)}
	for _, sample := range samples {
		texts = append(texts, sample.text[:200])
	}
	for _, text := range texts {
		for at := range blockBytes {
			checkWords(t, r, s, spaces[:at]+text)
		}
	}
}

// TestBlockWordLengths reads words of all lengths, of ASCII and of letters of
// each size, at each byte of a block, between letters and between spaces.
func TestBlockWordLengths(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	var lengths []string
	for n := 1; n <= 2*blockBytes+9; n++ {
		lengths = append(lengths, strings.Repeat("aZ9bQ", n)[:n])
	}
	for _, letter := range []string{"", "é", "Ж", "ε", "ᎣE", "Ａ", "𝐁", "e\u0301", "\u0301", "\u200b", "\xff", "ﬁ", "中", "한", "“"} {
		for at := range blockBytes {
			var b strings.Builder
			b.WriteString(spaces[:at])
			for _, i := range r.Perm(len(lengths))[:40] {
				w := lengths[i]
				cut := r.IntN(len(w) + 1)
				b.WriteString(w[:cut] + letter + w[cut:])
				b.WriteString([]string{" ", "  ", ", ", "\n", "—", "_", "\xc3 "}[r.IntN(7)])
			}
			checkWords(t, r, s, b.String())
		}
	}
}

// TestBlockCharacters puts each hard character at each byte of a block, beside
// letters and alone.
func TestBlockCharacters(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	for _, hard := range hardPieces {
		for at := range blockBytes + 4 {
			for _, filler := range []string{strings.Repeat("x", 80), strings.Repeat("xy ", 30), spaces} {
				text := filler[:at] + hard + filler[at:]
				if diff := wordsDiff(plainRead(t, text), read(s, text+spaces)); diff != "" {
					t.Fatalf("words of %q (-want +got):\n%s", text, diff)
				}
				text += hard + hard
				checkWords(t, r, s, text)
			}
		}
	}
}

// TestBlockPiece reads texts that are longer than what is read at a time.
func TestBlockPiece(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	for _, sample := range samples {
		words := vocabulary(t, sample)
		var b strings.Builder
		for b.Len() < pieceBytes+5000 {
			b.WriteString(words[r.IntN(len(words))])
			if !sample.wide || r.IntN(20) == 0 {
				b.WriteByte(' ')
			}
		}
		text := b.String()
		want := modelSelect(t, testKey, plainWords(text))
		for _, got := range [][]Print{prints(s, text), cut(r, s, text, 2000)} {
			if diff := printsDiff(want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", sample.name, diff)
			}
		}
	}
}

// TestPositionsWrap reads over the end of the 32 bits of positions.
func TestPositionsWrap(t *testing.T) {
	s := NewScheme(testKey)
	for _, sample := range samples {
		text := sample.text + spaces
		want := modelSelect(t, testKey, plainWords(text))
		for before := uint32(1); before < uint32(len(text)); before += 97 {
			h := s.Shingler()
			h.pos = -before
			got := h.Finish(h.Append(nil, text))
			for i := range got {
				got[i].Start += before
				got[i].End += before
			}
			if diff := printsDiff(want, got); diff != "" {
				t.Fatalf("%s %d bytes before the end (-want +got):\n%s", sample.name, before, diff)
			}
		}
	}
}

// TestPick checks the batched selection against a search of each run, for
// windows of all sizes and many ties.
func TestPick(t *testing.T) {
	r := newRand(t)
	for _, few := range []uint64{1, 2, 3, 5, 20, 0} {
		for n := range windowWords + 1 {
			w := window{n: n}
			for i := range w.hash {
				w.hash[i] = r.Uint64()
				if few > 0 {
					w.hash[i] = ^uint64(0) - w.hash[i]%few
				}
			}
			w.fresh = r.IntN(n + 1)
			want := []uint8{}
			for last := max(w.fresh, stride); last < n; last++ {
				run := w.hash[last-stride : last+1]
				smallest := 0
				for i, h := range run {
					if h <= run[smallest] {
						smallest = i
					}
				}
				if smallest == 0 || smallest == stride {
					want = append(want, uint8(last))
				}
			}
			got := w.list[:w.pick()]
			if !slices.Equal(want, got) {
				t.Fatalf("%d words of %d values, %d of them fresh: got %v, want %v", n, few, n-w.fresh, got, want)
			}
		}
	}
}

// TestWindow checks what shift keeps and that wide bits move with their words.
func TestWindow(t *testing.T) {
	r := newRand(t)
	for n := range windowFull + 1 {
		var w window
		var all []readWord
		add := func() {
			for range n {
				x := readWord{r.Uint64(), r.Uint32(), r.Uint32(), r.IntN(2) == 0}
				all = append(all, x)
				w.add(x.hash, x.start, x.end, map[bool]uint64{true: 1}[x.wide])
			}
			w.fresh = w.n
		}
		for range 3 {
			add()
			w.shift()
			if kept := min(stride, len(all)); w.n != kept || w.fresh != kept || w.first != len(all)-kept {
				t.Fatalf("after shifts of %d: got %d words from %d on, want the last %d of %d", n, w.n, w.first, kept, len(all))
			}
			for i := range w.n {
				want := all[w.first+i]
				got := readWord{w.hash[i], w.edge[2*i], w.edge[2*i+1], w.wideFrom(i)&1 != 0}
				if got != want {
					t.Fatalf("word %d after a shift: got %v, want %v", w.first+i, got, want)
				}
			}
		}
		add()
		for i := 0; i+PassageWords <= w.n; i++ {
			want := 0
			for _, x := range all[w.first+i : w.first+i+PassageWords] {
				if x.wide {
					want++
				}
			}
			if got := w.wideWords(i); int(got) != want {
				t.Fatalf("wide words from %d on: got %d, want %d", i, got, want)
			}
		}
		if got := bits.OnesCount64(w.wide[len(w.wide)-1]); got != 0 {
			t.Fatalf("got %d bits beyond the window", got)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	for _, sample := range samples {
		f.Add(sample.text, uint64(1), uint8(3))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		f.Add(noise(r, 40), uint64(i), uint8(i))
	}
	for _, hard := range hardPieces {
		f.Add(fmt.Sprintf("%60s%s%s a%sb", "", hard, hard, hard), uint64(0), uint8(0))
	}
	s := NewScheme(testKey)
	f.Fuzz(func(t *testing.T, text string, seed uint64, shift uint8) {
		text = spaces[:shift%blockBytes] + text
		checkWords(t, rand.New(rand.NewPCG(seed, 0)), s, text)
		if diff := printsDiff(modelSelect(t, testKey, plainWords(text)), prints(s, text+spaces)); diff != "" {
			t.Errorf("prints (-want +got):\n%s", diff)
		}
	})
}
