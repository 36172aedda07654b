package dialect

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestStringOf(t *testing.T) {
	for _, tt := range []struct{ name, json, want string }{
		{"plain", `"abc"`, "abc"},
		{"empty", `""`, ""},
		{"escapes", `"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{"escaped letter", `"caf\u00e9"`, "café"},
		{"pair", `"\ud83d\ude00"`, "😀"},
		{"pair in capitals", `"\uD83D\uDE00"`, "😀"},
		{"high alone", `"a\ud83db"`, "a\uFFFDb"},
		{"low alone", `"a\ude00b"`, "a\uFFFDb"},
		{"high before a letter", `"\ud83d\u0041"`, "\uFFFDA"},
		{"high before a pair", `"\ud83d\ud83d\ude00"`, "\uFFFD😀"},
		{"low before high", `"\ude00\ud83d"`, "\uFFFD\uFFFD"},
		{"high before another escape", `"\ud83d\n"`, "\uFFFD\n"},
		{"escaped backslash before u", `"\\ud83d"`, `\ud83d`},
		{"invalid bytes", "\"a\xffb\xc3\"", "a\uFFFDb\uFFFD"},
		{"invalid bytes and escapes", "\"\\n\xff\\ud83d\"", "\n\uFFFD\uFFFD"},
		{"replacement as sent", "\"\uFFFD\"", "\uFFFD"},
	} {
		if !gjson.Valid(tt.json) {
			t.Fatalf("%s: the case is not JSON", tt.name)
		}
		if got := wellFormed(stringOf(gjson.Parse(tt.json))); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestSourceOf(t *testing.T) {
	got := sourceOf(gjson.Parse(`{"a":"x\ny","b":["\u00e9",1]}`))
	if want := "{\"a\":\"x\ny\",\"b\":[\"é\",1]}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// randomText returns text with characters of one to four bytes.
func randomText(rnd *rand.Rand, n int) string {
	alphabet := []rune("ab \n\"\\éñ漢字😀🇮🇹👩‍🚀\uFFFD")
	var b strings.Builder
	for range n {
		b.WriteRune(alphabet[rnd.IntN(len(alphabet))])
	}
	return b.String()
}

// TestUnescapeLikeEncodingJSON compares with the standard library on strings
// that are whole.
func TestUnescapeLikeEncodingJSON(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		want := randomText(rnd, rnd.IntN(20))
		var quoted strings.Builder
		quoted.WriteByte('"')
		for _, u := range utf16.Encode([]rune(want)) {
			if u >= ' ' && u < 0x80 && u != '"' && u != '\\' && rnd.IntN(2) == 0 {
				quoted.WriteByte(byte(u))
			} else {
				fmt.Fprintf(&quoted, `\u%04x`, u)
			}
		}
		quoted.WriteByte('"')
		var standard string
		if err := json.Unmarshal([]byte(quoted.String()), &standard); err != nil {
			t.Fatal(err)
		}
		if got := stringOf(gjson.Parse(quoted.String())); got != want || standard != want {
			t.Fatalf("%s: got %q, encoding/json %q, want %q", quoted.String(), got, standard, want)
		}
	}
}

// TestJoinSplitCharacters sends one text in pieces that end anywhere, as
// servers do that stream half characters: between the units of UTF-16, as
// escapes, and between the bytes of UTF-8.
func TestJoinSplitCharacters(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var texts [3]string
		var pieces [3][]string // of JSON strings
		for c := range texts {
			texts[c] = randomText(rnd, rnd.IntN(30))
			pieces[c] = split(rnd, texts[c])
		}
		var j joiner
		var deltas []Delta
		for n := range max(len(pieces[0]), len(pieces[1]), len(pieces[2])) {
			for c := range pieces {
				if n < len(pieces[c]) {
					p := place{c, Content, 0}
					deltas = append(deltas, Delta{c, Content, 0, j.join(p, stringOf(gjson.Parse(pieces[c][n])))})
				}
			}
		}
		for _, d := range deltas {
			if !utf8.ValidString(d.Text) {
				t.Fatalf("delta %q is not UTF-8", d.Text)
			}
		}
		deltas = j.flush(deltas)
		for c, want := range texts {
			got := ""
			for _, d := range deltas {
				if d.Choice == c {
					got += d.Text
				}
			}
			if got != want {
				t.Fatalf("pieces %q: got %q, want %q", pieces[c], got, want)
			}
		}
	}
}

// split returns s as JSON strings that end anywhere.
func split(rnd *rand.Rand, s string) []string {
	var all []string
	if form := rnd.IntN(3); form < 2 {
		units := utf16.Encode([]rune(s))
		for len(units) > 0 {
			n := 1 + rnd.IntN(min(3, len(units)))
			piece := ""
			for _, u := range units[:n] {
				piece += fmt.Sprintf([...]string{`\u%04x`, `\u%04X`}[form], u)
			}
			all, units = append(all, `"`+piece+`"`), units[n:]
		}
		return all
	}
	quote := strings.NewReplacer("\n", `\n`, `"`, `\"`, `\`, `\\`)
	for len(s) > 0 {
		n := 1 + rnd.IntN(min(4, len(s)))
		all, s = append(all, `"`+quote.Replace(s[:n])+`"`), s[n:]
	}
	return all
}

func TestJoinNeverCompleted(t *testing.T) {
	var j joiner
	first := j.join(place{0, Content, 0}, stringOf(gjson.Parse(`"a\ud83d"`)))
	second := j.join(place{1, Content, 0}, "b\xe6\xbc")
	if first != "a" || second != "b" {
		t.Errorf("got %q and %q, want what is whole", first, second)
	}
	got := j.flush(nil)
	want := []Delta{{0, Content, 0, "\uFFFD"}, {1, Content, 0, "\uFFFD\uFFFD"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJoinIsBounded holds more characters back than there is room for.
func TestJoinIsBounded(t *testing.T) {
	var j joiner
	var deltas []Delta
	n := maxHeld + 10
	for i := range n {
		if s := j.join(place{i, Content, 0}, "\xe6"); s != "" {
			deltas = append(deltas, Delta{i, Content, 0, s})
		}
	}
	if len(j.held) != maxHeld || len(deltas) != 10 {
		t.Errorf("held %d and gave %d, want %d and 10", len(j.held), len(deltas), maxHeld)
	}
	if deltas = j.flush(deltas); len(deltas) != n {
		t.Errorf("got %d replacements in all, want %d", len(deltas), n)
	}
}
