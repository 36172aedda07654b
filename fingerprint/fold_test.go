package fingerprint

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// foldText returns what the table makes of one code point: "" for transparent,
// a space for each separator.
func foldText(r rune) string {
	entry := foldEntry(r)
	switch foldKind(entry) {
	case kindSeparator:
		return " "
	case kindTransparent:
		return ""
	case kindSyllable:
		r -= syllableBase
		s := string(leadBase+r/(vowelCount*trailCount)) + string(vowelBase+r/trailCount%vowelCount)
		if r%trailCount != 0 {
			s += string(trailBase + r%trailCount)
		}
		return s
	case kindExpansion:
		return expansion(entry)
	}
	return string(folded(r, entry))
}

// TestFoldTable checks every code point against x/text.
func TestFoldTable(t *testing.T) {
	if unicode.Version != foldUnicode {
		t.Skipf("the table is of Unicode %s, this toolchain of %s", foldUnicode, unicode.Version)
	}
	bad := 0
	for r := rune(0); r <= unicode.MaxRune && bad < 20; r++ {
		if r >= 0xD800 && r < 0xE000 {
			continue // no surrogate comes out of UTF-8
		}
		var want strings.Builder
		for _, c := range modelNormal(string(r)) {
			switch {
			case modelTransparent(c):
			case unicode.IsLetter(c) || unicode.IsNumber(c):
				want.WriteRune(c)
			case !strings.HasSuffix(want.String(), " "):
				want.WriteByte(' ')
			}
		}
		got := foldText(r)
		if got != want.String() {
			bad++
			t.Errorf("%U: got %q, want %q", r, got, want.String())
		}
		var again strings.Builder
		for _, c := range got {
			again.WriteString(foldText(c))
		}
		if again.String() != got {
			bad++
			t.Errorf("%U: %q folds once more, to %q", r, got, again.String())
		}
		if r < 0x80 {
			ascii := " "
			if c := foldASCII[r]; c != 0 {
				ascii = string(rune(c))
			}
			if ascii != got {
				t.Errorf("%U: got %q from foldASCII, want %q", r, ascii, got)
			}
		}
	}
	for c := 0x80; c < 0x100; c++ {
		if foldASCII[c] != 0 {
			t.Errorf("foldASCII[%#x]: got %q, want 0", c, foldASCII[c])
		}
	}
}

// TestFoldKinds checks every code point's words, one by one, against the model:
// the kinds decide where a word begins and ends.
func TestFoldKinds(t *testing.T) {
	if unicode.Version != foldUnicode {
		t.Skipf("the table is of Unicode %s, this toolchain of %s", foldUnicode, unicode.Version)
	}
	s := NewScheme(testKey)
	bad := 0
	for r := rune(0x80); r <= 0x32400 && bad < 20; r++ {
		if r >= 0xD800 && r < 0xE000 {
			continue
		}
		// Amid long rows of one entry (TestFoldTable has checked it for each code
		// point) every 16th stands for all.
		if e := foldEntry(r); e == foldEntry(r-1) && e == foldEntry(r+1) && r%16 != 0 {
			continue
		}
		// Between two letters and between two leads it shows on both sides.
		text := "a" + string(r) + "a" + "\u1100" + string(r) + "\u1161\u11A8"
		want := modelWords(text)
		for _, tail := range []string{"", spaces} { // without and in blocks
			got := read(s, text+tail)
			if len(got) != len(want) {
				bad++
				t.Errorf("%U: got %d words, want %d", r, len(got), len(want))
				continue
			}
			for i, w := range got {
				if w.wide != want[i].wide {
					bad++
					t.Errorf("%U: word %d: got wide %v, want %v", r, i, w.wide, want[i].wide)
				}
			}
		}
	}
}

// TestFoldCase checks that no change of case changes a letter's fold.
func TestFoldCase(t *testing.T) {
	text := func(s string) string {
		var b strings.Builder
		for _, c := range s {
			b.WriteString(foldText(c))
		}
		return b.String()
	}
	upper, lower, title := cases.Upper(language.Und), cases.Lower(language.Und), cases.Title(language.Und)
	for r := rune(0); r < 0x20000; r++ {
		// The iota below vowels is a mark and drops; its capital is a letter.
		if r >= 0x1F80 && r <= 0x1FFC || r == 0x345 || r >= 0xD800 && r < 0xE000 {
			continue
		}
		want := foldText(r)
		for _, s := range []string{
			string(unicode.ToUpper(r)), string(unicode.ToLower(r)), string(unicode.ToTitle(r)),
			upper.String(string(r)), lower.String(string(r)), title.String(string(r)),
		} {
			if got := text(s); got != want {
				t.Errorf("%U: got %q for %q, want %q", r, got, s, want)
			}
		}
	}
}

// TestHangulSyllables checks that each syllable is one word, and the same word
// as its jamo.
func TestHangulSyllables(t *testing.T) {
	s := NewScheme(testKey)
	for r := rune(syllableBase); r < syllableBase+11172; r++ {
		got := wordHashes(s, string(r))
		want := modelHashes(t, testKey, modelWords(string(r)))
		if len(want) != 1 {
			t.Fatalf("%c: the model finds %d words, want 1", r, len(want))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%c composed (-want +got):\n%s", r, diff)
		}
		if diff := cmp.Diff(want, wordHashes(s, foldText(r))); diff != "" {
			t.Fatalf("%c decomposed (-want +got):\n%s", r, diff)
		}
	}
}

func TestNormalForm(t *testing.T) {
	s := NewScheme(testKey)
	tests := []struct{ name, text, want string }{
		{"empty", "", ""},
		{"spacing", " The\tquick\r\n\nfox ", "the quick fox"},
		{"no-break spaces", "a\u00a0b\u202fc\u2009d\u3000e", "a b c d e"},
		{"case", "McDonald GmbH", "mcdonald gmbh"},
		{"apostrophes", "don't don’t", "don t don t"},
		{"underscore", "snake_case __init__", "snake case init"},
		{"markdown", "# **Bold** _it_ `code` > ~~x~~ [a](b)", "bold it code x a b"},
		{"digits", "v2 1,000 3.14 0x1F", "v2 1 000 3 14 0x1f"},
		{"hyphens", "re-use re\u00aduse re\u2011use", "re use reuse re use"},
		{"controls", "a\x00b\x7fc\u0085d", "a b c d"},
		{"invalid bytes", "a\xffb\xe4\xb8c\xf0\x9f\x98", "a b c"},
		{"replacement character", "a\ufffdb", "a b"},
		{"surrogates in bytes", "a\xed\xa0\x80b", "a b"},
		{"zero width", "w\u200bo\u200cr\u200dd\u2060\ufeff s", "word s"},
		{"bidi", "\u202eab\u202c\u2066c\u2069 d", "abc d"},
		{"variation selectors", "a\ufe0fb\U000e0100c", "abc"},
		{"tags and fillers", "a\U000e0041b\u3164c\u115fd\uffa0e", "abcde"},
		{"keycap", "1\ufe0f\u20e3", "1"},
		{"emoji", "so😀so 👩\u200d💻 ok", "so so ok"},
		{"private use", "a\ue000b", "a b"},
		{"accents", "résumé re\u0301sume\u0301 Å Ångström", "resume resume a angstrom"},
		{"marks alone", "\u0301\u0302 a", "a"},
		{"spacing accent", "a´b", "a b"},
		{"german", "Straße STRASSE ẞ Größe", "strasse strasse ss grosse"},
		{"ligatures", "ﬁn oﬃce ǆ Ĳ æ", "fin office dz ij æ"},
		{"turkish", "İstanbul ISPARTA ısparta", "istanbul isparta isparta"},
		{"long s and kelvin", "ſame K Å", "same k a"},
		{"greek", "Ὀδυσσεύς ΟΔΥΣΣΕΥΣ ᾳ", "οδυσσευσ οδυσσευσ α"},
		{"cyrillic", "Ёлка ЙОД", "елка иод"},
		{"cherokee", "ᎣᏏᏲ ꭳꮟᏺ", "ᎣᏏᏲ ᎣᏏᏲ"},
		{"georgian", "ᲗᲑᲘᲚᲘᲡᲘ თბილისი", "თბილისი თბილისი"},
		{"full width", "Ｆｕｌｌ　Ｗ１２", "full w12"},
		{"math letters", "𝐁𝓸𝔩𝕕 𝟙𝟚", "bold 12"},
		{"superscripts", "x² m³ 10⁻³ H₂O", "x2 m3 10 3 h2o"},
		{"fractions", "½ 1¼", "1 2 11 4"},
		{"symbols of letters", "Foo™ № ℃ ㎏ ⅷ ①", "footm no c kg viii 1"},
		{"arabic", "كِتَابٌ كتاب ﻛﺘﺎﺏ ﷺ", "كتاب كتاب كتاب صلى الله عليه وسلم"},
		{"arabic digits", "٣٤ ۵۶", "٣٤ ۵۶"},
		{"hebrew", "שָׁלוֹם שלום", "שלום שלום"},
		{"devanagari", "हिन्दी क़लम", "हनद कलम"},
		{"vietnamese", "Việt Nam Vie\u0323\u0302t", "viet nam viet"},
		{"han", "你好，世界", "你 好 世 界"},
		{"han beside latin", "用GPT4模型3个", "用 gpt4 模 型 3 个"},
		{"han of compatibility", "\uf900 \U0002f800 ⼀ ㍿ ㊗", "豈 丽 一 株 式 会 社 祝"},
		{"han beyond the plane", "𠀀𠮷", "𠀀 𠮷"},
		{"han signs", "人々 〇一 〆切", "人 々 〇 一 〆 切"},
		{"kana", "カタカナ と ひらがな", "カ タ カ ナ と ひ ら か な"},
		{"kana half width", "ｶﾞｷﾞｸ ｺｰﾋｰ ガギグ コーヒー", "カ キ ク コ ー ヒ ー カ キ ク コ ー ヒ ー"},
		{"kana decomposed", "か\u3099 が", "か か"},
		{"kana symbols", "㌕ ㋐", "キ ロ ク ラ ム ア"},
		{"thai", "ที่นี่ น้ำ ๑๒", "ท น น า ๑๒"},
		{"lao", "ນໍ້າ ນຳ້ ໜ", "ນ າ ນ າ ຫ ນ"},
		{"khmer", "ភាសា ខ្មែរ ១២", "ភ ស ខ ម រ ១២"},
		{"myanmar", "မြန်မာ ၁၂", "မ န မ ၁၂"},
		{"hangul", "한글 abc", "\u1112\u1161\u11ab \u1100\u1173\u11af abc"},
		{"hangul decomposed", "\u1112\u1161\u11ab\u1100\u1173\u11af", "\u1112\u1161\u11ab \u1100\u1173\u11af"},
		{"hangul half decomposed", "하\u11ab그\u11af", "\u1112\u1161\u11ab \u1100\u1173\u11af"},
		{"hangul with zero width", "\u1112\u200b\u1161\ufeff\u11ab", "\u1112\u1161\u11ab"},
		{"hangul compatibility", "ㅋㅋㅋ ㅠㅠ ﾡ ㉠ ㉮", "\u110f \u110f \u110f \u1172 \u1172 \u1100 \u1100 \u1100\u1161"},
		{"hangul no more than a syllable", "각\u11a8\u1161가\u1161", "\u1100\u1161\u11a8 \u11a8 \u1161 \u1100\u1161 \u1161"},
		{"hangul beside others", "A한B中", "a \u1112\u1161\u11ab b 中"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []modelWord
			names := map[uint64]string{}
			for _, w := range strings.Fields(tt.want) {
				want = append(want, modelWord{text: w})
			}
			for i, h := range modelHashes(t, testKey, want) {
				names[h] = want[i].text
			}
			for _, tail := range []string{"", spaces} { // without and in blocks
				got := []string{}
				for _, h := range wordHashes(s, tt.text+tail) {
					name, ok := names[h]
					if !ok {
						name = "(a word that is not wanted)"
					}
					got = append(got, name)
				}
				if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" {
					t.Errorf("words of %q (-want +got):\n%s", tt.text+tail, diff)
				}
			}
		})
	}
}
