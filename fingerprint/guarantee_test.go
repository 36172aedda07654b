package fingerprint

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// forms are the ways to write a text otherwise that keep its words.
var forms = []struct {
	name string
	of   func(r *rand.Rand, text string) string
}{
	{"as is", func(_ *rand.Rand, s string) string { return s }},
	{"NFC", func(_ *rand.Rand, s string) string { return norm.NFC.String(s) }},
	{"NFD", func(_ *rand.Rand, s string) string { return norm.NFD.String(s) }},
	{"NFKC", func(_ *rand.Rand, s string) string { return norm.NFKC.String(s) }},
	{"NFKD", func(_ *rand.Rand, s string) string { return norm.NFKD.String(s) }},
	{"upper case", func(_ *rand.Rand, s string) string { return cases.Upper(language.Und).String(s) }},
	{"lower case", func(_ *rand.Rand, s string) string { return cases.Lower(language.Und).String(s) }},
	{"random case", func(r *rand.Rand, s string) string {
		return strings.Map(func(c rune) rune {
			switch r.IntN(3) {
			case 0:
				return unicode.ToUpper(c)
			case 1:
				return unicode.ToTitle(c)
			}
			return c
		}, s)
	}},
	{"full width", func(_ *rand.Rand, s string) string { return width.Widen.String(s) }},
	{"half width", func(_ *rand.Rand, s string) string { return width.Narrow.String(s) }},
	{"zero width inside", func(r *rand.Rand, s string) string {
		return scatter(r, s, "\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\ufe0f", "\u202e")
	}},
	{"accents on top", func(r *rand.Rand, s string) string {
		return scatter(r, s, "\u0301", "\u0336", "\u20dd")
	}},
}

// scatter puts some of the marks behind characters of s.
func scatter(r *rand.Rand, s string, marks ...string) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteRune(c)
		if r.IntN(5) == 0 {
			b.WriteString(marks[r.IntN(len(marks))])
		}
	}
	return b.String()
}

// joints are what may stand between two words.
var joints = []string{
	" ", " ", " ", "\n", "\t", "  ", "\r\n", "\u00a0", "\u3000", "\u2009", ", ", ". ", ": ", " - ", "—", "/", "_",
	" **", "** ", " _", "_ ", " `", "` ", "\n# ", "\n## ", "\n> ", "\n- ", "\n* ", " [", "](", " \"", "“", "” ",
	"<", " | ", "、", "。", "😀", "\x00", "\xff", "…",
}

// render writes words as one text, in a form and with joints of its own.
func render(r *rand.Rand, words []string, wide bool) string {
	plain := r.IntN(3) // none, some, many decorations
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			switch {
			case wide && r.IntN(3) > 0:
			case r.IntN(3) < plain:
				b.WriteString(joints[r.IntN(len(joints))])
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteString(w)
	}
	text := b.String()
	for range r.IntN(3) {
		text = forms[r.IntN(len(forms))].of(r, text)
	}
	return text
}

// vocabulary returns the different words of a sample as they are written.
func vocabulary(t testing.TB, s sample) []string {
	t.Helper()
	var words []string
	seen := map[string]bool{}
	for _, piece := range strings.FieldsFunc(s.text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsNumber(c) && !unicode.IsMark(c)
	}) {
		list := []string{piece}
		if s.wide {
			list = characters(piece)
		}
		for _, w := range list {
			normal := modelWords(w)
			if len(normal) != 1 {
				t.Fatalf("%q is %d words, want 1", w, len(normal))
			}
			if !seen[normal[0].text] {
				seen[normal[0].text] = true
				words = append(words, w)
			}
		}
	}
	return words
}

// characters splits a text before each letter, keeping its marks with it.
func characters(text string) []string {
	var list []string
	for _, c := range text {
		if unicode.IsMark(c) && len(list) > 0 {
			list[len(list)-1] += string(c)
			continue
		}
		list = append(list, string(c))
	}
	return list
}

// randomRun draws n words of which any eleven in a row hold five different
// ones, often as few as that.
func randomRun(r *rand.Rand, words []string, n int) []string {
	few := make([]string, 0, len(words))
	for _, i := range r.Perm(len(words)) {
		few = append(few, words[i])
	}
	few = few[:min(len(few), []int{5, 6, 8, 16, len(words)}[r.IntN(5)])]
	run := make([]string, n)
	for i := range run {
		run[i] = few[r.IntN(len(few))]
	}
	for i := 0; i+PassageWords <= n; i++ {
		for distinct(run[i:i+PassageWords]) < MinDistinct {
			run[i+r.IntN(PassageWords)] = few[r.IntN(len(few))]
			i = 0
		}
	}
	return run
}

func distinct(words []string) int {
	seen := map[string]bool{}
	for _, w := range words {
		seen[w] = true
	}
	return len(seen)
}

// TestGuarantee writes one run of words twice, otherwise each time and between
// other text each time, and looks for the prints that both hold.
func TestGuarantee(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	for _, sample := range samples {
		t.Run(sample.name, func(t *testing.T) {
			words := vocabulary(t, sample)
			for range 150 {
				n, least := OneIn, 1
				if r.IntN(2) == 0 {
					n, least = TwoIn, 2
				}
				run := randomRun(r, words, n)
				a, textA := surround(r, s, run, sample.wide)
				b, textB := surround(r, s, run, sample.wide)
				if diff := printsDiff(a, b); diff != "" {
					t.Fatalf("%q and %q differ in what they share (-a +b):\n%s", textA, textB, diff)
				}
				if len(a) < least {
					t.Fatalf("%q and %q share %d words and %d prints, want at least %d", textA, textB, n, len(a), least)
				}
			}
		})
	}
}

// surround writes a run of words between other text and returns the prints that
// lie in the run, counted from its first word.
func surround(r *rand.Rand, s *Scheme, run []string, wide bool) ([]Print, string) {
	before, text := noise(r, r.IntN(8))+"\n", render(r, run, wide)
	h := s.Shingler()
	h.Append(nil, before)
	first := uint32(h.Words())
	ps := h.Append(nil, text+" "+noise(r, r.IntN(8)))
	ps = h.Finish(ps)
	var inside []Print
	for _, p := range ps {
		if int(p.Start) >= len(before) && int(p.End) <= len(before)+len(text) {
			p.Word -= first
			inside = append(inside, p)
		}
	}
	return unplaced(inside), before + text
}

// TestGuaranteeRandom checks selection alone on long streams of random words,
// from all alike to all different.
func TestGuaranteeRandom(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	for _, few := range []int{1, 4, 5, 6, 7, 10, 30, 1000} {
		var b strings.Builder
		for range 4000 {
			b.WriteString(string(rune('一' + r.IntN(few))))
		}
		checkGuarantee(t, modelWords(b.String()), prints(s, b.String()))
	}
}

// TestNoSpaces checks that text without spaces needs no boundary to be found:
// the run stands amid other characters.
func TestNoSpaces(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	for _, sample := range samples {
		if !sample.wide {
			continue
		}
		t.Run(sample.name, func(t *testing.T) {
			words := vocabulary(t, sample)
			for range 50 {
				run := strings.Join(randomRun(r, words, OneIn), "")
				other := func() string { return strings.Join(randomRun(r, words, 15), "") }
				a := prints(s, other()+norm.NFC.String(run)+other())
				b := prints(s, other()+norm.NFD.String(run)+other())
				if !common(a, b) {
					t.Fatalf("no common print for %q", run)
				}
			}
		})
	}
}

func common(a, b []Print) bool {
	for _, p := range a {
		for _, q := range b {
			if p.Hi == q.Hi && p.Lo == q.Lo {
				return true
			}
		}
	}
	return false
}
