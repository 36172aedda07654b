package fingerprint

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestModel(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	for _, sample := range samples {
		t.Run(sample.name, func(t *testing.T) {
			words := modelWords(sample.text)
			if len(words) < 50 {
				t.Errorf("got %d words, want a sample of at least 50", len(words))
			}
			got := prints(s, sample.text)
			if diff := printsDiff(modelPrints(t, testKey, sample.text), unplaced(got)); diff != "" {
				t.Errorf("prints (-want +got):\n%s", diff)
			}
			if len(got) < 5 {
				t.Errorf("got %d prints of %d words, want at least 5", len(got), len(words))
			}
			checkGuarantee(t, words, got)
			checkPlaces(t, s, sample.text, got)
			for _, form := range forms {
				other := form.of(r, sample.text)
				places := prints(s, other)
				if diff := printsDiff(unplaced(got), unplaced(places)); diff != "" {
					t.Errorf("in form %s (-want +got):\n%s", form.name, diff)
				}
				checkPlaces(t, s, other, places)
			}
			for _, p := range got {
				if wide := p.Wide == PassageWords; wide != sample.wide {
					t.Errorf("print at word %d: got %d wide words in a text where wide is %v", p.Word, p.Wide, sample.wide)
				}
			}
		})
	}
}

// checkPlaces fails unless the bytes of each print, read alone, are one passage
// of the same value, with nothing around it.
func checkPlaces(t testing.TB, s *Scheme, text string, ps []Print) {
	t.Helper()
	for _, p := range ps {
		span := text[p.Start:p.End]
		want := []Print{{Hi: p.Hi, Lo: p.Lo, End: uint32(len(span)), Wide: p.Wide}}
		if diff := printsDiff(want, prints(s, span)); diff != "" {
			t.Fatalf("bytes [%d,%d) alone (-want +got):\n%s", p.Start, p.End, diff)
		}
		first, _ := utf8.DecodeRuneInString(span)
		last, _ := utf8.DecodeLastRuneInString(span)
		if fold := foldText(first); fold == "" || fold == " " {
			t.Fatalf("bytes [%d,%d) begin with %U, which is in no word", p.Start, p.End, first)
		}
		if fold := foldText(last); fold == "" || fold == " " {
			t.Fatalf("bytes [%d,%d) end with %U, which is in no word", p.Start, p.End, last)
		}
		if words := len(modelWords(text[:p.Start])); words != int(p.Word) {
			t.Fatalf("%d words before byte %d, want %d", words, p.Start, p.Word)
		}
	}
}

// cut runs a text through a shingler in random pieces.
func cut(r *rand.Rand, s *Scheme, text string, longest int) []Print {
	h := s.Shingler()
	var ps []Print
	for _, piece := range pieces(r, text, longest) {
		ps = h.Append(ps, piece)
	}
	return h.Finish(ps)
}

// hardPieces are hard to cut or fold.
var hardPieces = []string{
	"\xff", "\xc0", "\xe4\xb8", "\xf0\x9f\x98", "\xf0\x9f", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\ufffd",
	"é", "e\u0301", "\u0301", "ﬁ", "½", "㍿", "ﷺ", "ß", "İ", "한", "\u1112\u1161", "\u11ab", "\u1161", "가", "ㅋ",
	"中", "文", "か\u3099", "ｶ", "ﾞ", "ที่", "น้ำ", "ພາ", "ខ្មែ", "မြ", "😀", "\u200d", "\ufeff", "\u00ad", "a", "b", "9",
	"Word", "word", " ", "\n", "_", "**", "1,000", "x²", "𝐁", "𠮷", "\U000e0100", "\U0010ffff", "ᾳ", "Σ",
}

// noise returns random text, with hard pieces in it.
func noise(r *rand.Rand, pieces int) string {
	var b strings.Builder
	for range pieces {
		if r.IntN(4) == 0 {
			b.WriteString(hardPieces[r.IntN(len(hardPieces))])
			continue
		}
		text := samples[r.IntN(len(samples))].text
		from := r.IntN(len(text))
		b.WriteString(text[from:min(len(text), from+r.IntN(60))])
	}
	return b.String()
}

func TestCut(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	total := 0
	for i := range 200 {
		text := noise(r, 1+r.IntN(60))
		want := prints(s, text)
		total += len(want)
		if diff := printsDiff(modelPrints(t, testKey, text), unplaced(want)); diff != "" {
			t.Fatalf("round %d: prints of %q (-want +got):\n%s", i, text, diff)
		}
		for _, longest := range []int{1, 3, 50} {
			if diff := printsDiff(want, cut(r, s, text, longest)); diff != "" {
				t.Fatalf("round %d: %q in pieces of up to %d bytes (-want +got):\n%s", i, text, longest, diff)
			}
		}
	}
	if total < 1000 {
		t.Errorf("got %d prints in all, want at least 1000 to compare", total)
	}
}

func FuzzCut(f *testing.F) {
	for _, sample := range samples {
		f.Add([]byte(sample.text), uint64(1), uint8(7))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		f.Add([]byte(noise(r, 40)), uint64(i), uint8(i))
	}
	s := NewScheme(testKey)
	f.Fuzz(func(t *testing.T, text []byte, seed uint64, longest uint8) {
		want := prints(s, string(text))
		got := cut(rand.New(rand.NewPCG(seed, 0)), s, string(text), max(1, int(longest)))
		if diff := printsDiff(want, got); diff != "" {
			t.Errorf("in pieces (-want +got):\n%s", diff)
		}
		if diff := printsDiff(modelPrints(t, testKey, string(text)), unplaced(want)); diff != "" {
			t.Errorf("prints (-want +got):\n%s", diff)
		}
	})
}

// TestLongWord feeds one word of more than a megabyte: it must be one word, however
// it is cut, and be told from others of its length.
func TestLongWord(t *testing.T) {
	s := NewScheme(testKey)
	long := strings.Repeat("abcé", 250_000)
	text := "a b c d e " + long + " f g h i j k l m n o"
	other := "a b c d e " + long[:len(long)-1] + " f g h i j k l m n o"
	want := prints(s, text)
	if diff := printsDiff(modelPrints(t, testKey, text), unplaced(want)); diff != "" {
		t.Errorf("prints (-want +got):\n%s", diff)
	}
	h := s.Shingler()
	var got []Print
	for rest := text; len(rest) > 0; {
		n := min(4093, len(rest))
		got = h.Append(got, rest[:n])
		rest = rest[n:]
	}
	got = h.Finish(got)
	if diff := printsDiff(want, got); diff != "" {
		t.Errorf("in pieces (-want +got):\n%s", diff)
	}
	if h.Words() != 16 {
		t.Errorf("got %d words, want 16", h.Words())
	}
	if a, b := wordHashes(s, long[:1000]), wordHashes(s, long[:999]); a[0] == b[0] {
		t.Error("two words have one hash")
	}
	for _, p := range prints(s, other) {
		for _, q := range want {
			if p.Hi == q.Hi && p.Lo == q.Lo && p.Word <= 5 && 5 < p.Word+PassageWords {
				t.Errorf("the print at word %d does not depend on the long word", p.Word)
			}
		}
	}
}

func TestFinish(t *testing.T) {
	s := NewScheme(testKey)
	for _, a := range samples {
		for _, b := range samples {
			h := s.Shingler()
			got := h.Finish(h.Append(nil, a.text+"\xe4\xb8"))
			words, bytes := uint32(h.Words()), uint32(len(a.text)+2)
			got = h.Append(got, b.text)
			got = h.Finish(got)
			want := prints(s, a.text)
			for _, p := range prints(s, b.text) {
				p.Word += words
				p.Start += bytes
				p.End += bytes
				want = append(want, p)
			}
			if diff := printsDiff(want, got); diff != "" {
				t.Errorf("%s and %s in one stream (-want +got):\n%s", a.name, b.name, diff)
			}
			if got, want := h.Words(), len(modelWords(a.text))+len(modelWords(b.text)); got != want {
				t.Errorf("%s and %s: got %d words, want %d", a.name, b.name, got, want)
			}
			if again := h.Finish(nil); again != nil {
				t.Errorf("a second Finish gave %d prints, want none", len(again))
			}
		}
	}
}

func TestReset(t *testing.T) {
	s := NewScheme(testKey)
	a, b := samples[0].text, samples[1].text
	h := s.Shingler()
	h.Append(nil, a+" unfinished\xe4")
	h.Reset()
	if h.Words() != 0 {
		t.Errorf("got %d words after Reset, want 0", h.Words())
	}
	if diff := printsDiff(prints(s, b), h.Finish(h.Append(nil, b))); diff != "" {
		t.Errorf("after Reset (-want +got):\n%s", diff)
	}
}

// TestFinishSplitsWord checks that a sequence, a syllable and a word don't go
// on over a Finish.
func TestFinishSplitsWord(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"ab", "cd", 2},
		{"\u1112\u1161", "\u11ab", 2},
		{"a\xc3", "\xa9", 1},
		{"中", "文", 2},
		{"a", "\u0301 ", 1},
	} {
		h := NewScheme(testKey).Shingler()
		h.Append(nil, tt.a)
		h.Finish(nil)
		h.Append(nil, tt.b)
		h.Finish(nil)
		if got := h.Words(); got != tt.want {
			t.Errorf("%q, %q: got %d words, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestAppendKeepsDst checks that prints are appended.
func TestAppendKeepsDst(t *testing.T) {
	s := NewScheme(testKey)
	first := Print{Hi: 1, Word: 2}
	h := s.Shingler()
	got := h.Finish(h.Append([]Print{first}, samples[0].text))
	if diff := printsDiff(append([]Print{first}, prints(s, samples[0].text)...), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPromptness checks that a print comes with the first character behind its
// passage, and at once where words are single code points.
func TestPromptness(t *testing.T) {
	s := NewScheme(testKey)
	for _, sample := range samples {
		h := s.Shingler()
		for i, c := range sample.text {
			end := i + utf8.RuneLen(c)
			for _, p := range h.Append(nil, sample.text[i:end]) {
				if late := end - int(p.End); late > 2*utf8.UTFMax {
					t.Errorf("%s: a print that ends at byte %d came at byte %d", sample.name, p.End, end)
				}
			}
		}
	}
}

func TestKeyChangesEverything(t *testing.T) {
	other := testKey
	other[31] ^= 1
	a, b := NewScheme(testKey), NewScheme(other)
	values := map[uint64]bool{}
	both, all := 0, 0
	for _, sample := range samples {
		places := map[uint32]bool{}
		for _, p := range prints(a, sample.text) {
			values[p.Hi], values[p.Lo], places[p.Word] = true, true, true
		}
		for _, p := range prints(b, sample.text) {
			all++
			if values[p.Hi] || values[p.Lo] {
				t.Errorf("%s: the print at word %d holds the same under another key", sample.name, p.Word)
			}
			if places[p.Word] {
				both++
			}
		}
	}
	// By chance 0.18 of the places are the same.
	if both*2 > all {
		t.Errorf("%d of %d passages were selected under both keys", both, all)
	}
	if all < 100 {
		t.Errorf("got %d prints, want at least 100 to compare", all)
	}
}

// TestContext checks that a passage is selected and valued by its own words.
func TestContext(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	for range 50 {
		words := vocabulary(t, samples[r.IntN(9)])
		run := make([]string, PassageWords)
		for i := range run {
			run[i] = words[r.IntN(len(words))]
		}
		passage := strings.Join(run, " ")
		want := unplaced(prints(s, passage))
		before, after := noise(r, 10)+" ", " "+noise(r, 10)
		var got []Print
		for _, p := range prints(s, before+passage+after) {
			if int(p.Start) >= len(before) && int(p.End) <= len(before)+len(passage) {
				p.Word = 0
				got = append(got, p)
			}
		}
		if diff := printsDiff(want, unplaced(got)); diff != "" {
			t.Fatalf("%q between other text (-want +got):\n%s", passage, diff)
		}
	}
}

func TestDensity(t *testing.T) {
	r := newRand(t)
	s := NewScheme(testKey)
	const words = 100_000
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "%x ", r.Uint64())
	}
	got := float64(len(prints(s, b.String()))) / words
	if want := 2.0 / PassageWords; got < want*0.96 || got > want*1.04 {
		t.Errorf("got %.4f prints a word, want about %.4f", got, want)
	}
}

// TestMinDistinct checks the floor: four different words give nothing, however
// long they go on, and five give prints.
func TestMinDistinct(t *testing.T) {
	s := NewScheme(testKey)
	if got := prints(s, strings.Repeat("one two three four ", 200)); got != nil {
		t.Errorf("got %d prints of four words, want none", len(got))
	}
	if got := prints(s, strings.Repeat("一 二 三 四", 200)); got != nil {
		t.Errorf("got %d prints of four characters, want none", len(got))
	}
	text := strings.Repeat("one two three four five ", 200)
	checkGuarantee(t, modelWords(text), prints(s, text))
	// A passage of ten zeros and a word is no passage either.
	if got := prints(s, strings.Repeat("0 0 0 0 0 0 0 0 0 0 end ", 50)); got != nil {
		t.Errorf("got %d prints of zeros, want none", len(got))
	}
}

// corpus is the folder of real texts, outside the repository.
const corpus = "../../shared/data/corpora"

// corpusTexts returns up to n texts of one corpus file, of one language unless
// that is empty.
func corpusTexts(t testing.TB, name, lang string, n int) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(corpus, name+".jsonl.gz"))
	if os.IsNotExist(err) {
		t.Skipf("no corpus %s here", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	lines := bufio.NewReader(z)
	for len(texts) < n {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var record struct {
			Lang     string
			Messages []struct{ Content string }
			Response string
		}
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if lang != "" && record.Lang != lang {
			continue
		}
		for _, m := range record.Messages {
			texts = append(texts, m.Content)
		}
		texts = append(texts, record.Response)
	}
	return texts
}

// TestCorpora checks model, cuts, forms, places and guarantee on real text.
func TestCorpora(t *testing.T) {
	for _, name := range []string{
		"aider_chats", "arabic_llm_bench", "llmzoo_en_zh", "mt_bench_multilingual",
		"public_code_snippets", "public_rfcs", "rakuda_ja", "vigogne_oasst_fr", "wangchan_th",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRand(t)
			s := NewScheme(testKey)
			words, found := 0, 0
			for i, text := range corpusTexts(t, name, "", 25) {
				text = text[:min(len(text), 8000)]
				got := prints(s, text)
				if diff := printsDiff(modelPrints(t, testKey, text), unplaced(got)); diff != "" {
					t.Fatalf("text %d (-want +got):\n%s", i, diff)
				}
				if diff := printsDiff(got, cut(r, s, text, 20)); diff != "" {
					t.Fatalf("text %d in pieces (-want +got):\n%s", i, diff)
				}
				for _, form := range forms {
					if diff := printsDiff(unplaced(got), unplaced(prints(s, form.of(r, text)))); diff != "" {
						t.Fatalf("text %d in form %s (-want +got):\n%s", i, form.name, diff)
					}
				}
				all := modelWords(text)
				checkGuarantee(t, all, got)
				words += len(all)
				found += len(got)
			}
			t.Logf("%d words, %d prints, %.3f a word", words, found, float64(found)/float64(max(1, words)))
			if found == 0 {
				t.Error("got no prints")
			}
		})
	}
}
