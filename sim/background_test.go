package sim

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/auditproxy/auditproxy/gpukv"
)

// speak lets the model go on after prompt until it ends or n tokens are said.
func speak(t *testing.T, prompt string, n int, seed uint64) (string, bool) {
	t.Helper()
	v := NewVocabulary(0)
	b, err := newBackground(v, backgroundText)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	prev := append(v.Encode(nil, prompt), assistantToken)
	start := len(prev)
	for range n {
		tok := b.Next(prev, rnd)
		if tok == endToken {
			return v.Decode(prev[start:]), true
		}
		if tok < firstPiece {
			t.Fatalf("seed %d: token %d is no text", seed, tok)
		}
		prev = append(prev, tok)
	}
	return v.Decode(prev[start:]), false
}

func TestBackgroundIsDeterministic(t *testing.T) {
	var ended, total int
	seen := make(map[string]bool)
	for seed := range uint64(30) {
		a, end := speak(t, "What is a good day?", 400, seed)
		b, _ := speak(t, "What is a good day?", 400, seed)
		if a != b {
			t.Fatalf("seed %d: two answers: %q and %q", seed, a, b)
		}
		seen[a] = true
		if end {
			ended++
			if !strings.HasSuffix(a, ".") {
				t.Errorf("seed %d: answer ends without a full stop: %q", seed, a)
			}
		}
		total += len(strings.Fields(a))
	}
	if len(seen) < 27 {
		t.Errorf("%d different answers of 30", len(seen))
	}
	if ended < 20 {
		t.Errorf("%d of 30 answers end within 400 tokens", ended)
	}
	if mean := total / 30; mean < 20 || mean > 250 {
		t.Errorf("answers of %d words on average", mean)
	}
}

func TestBackgroundKeepsTheLanguage(t *testing.T) {
	for _, tt := range []struct {
		prompt string
		want   func(string) bool
	}{
		{"请问今天的天气怎么样？", func(s string) bool { return han(s) && !kana(s) }},
		{"今日の天気はどうですか。教えてください", kana},
		{"Combien coûte le trajet et la réservation, il faut une voiture", func(s string) bool { return !han(s) && !strings.Contains(s, " the ") }},
	} {
		text, _ := speak(t, tt.prompt, 60, 3)
		if !tt.want(text) {
			t.Errorf("prompt %q is answered %q", tt.prompt, text)
		}
	}
}

func han(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) }) >= 0
}
func kana(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.Is(unicode.Hiragana, r) }) >= 0
}

func TestBackgroundText(t *testing.T) {
	v := NewVocabulary(0)
	b, err := newBackground(v, backgroundText)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range b.languages {
		got = append(got, l.name)
		if len(l.first) < 10 || len(l.first) != len(l.next) {
			t.Errorf("%s: %d sentences, %d with a stop before them", l.name, len(l.first), len(l.next))
		}
	}
	if d := cmp.Diff([]string{"en", "fr", "de", "es", "zh", "ja"}, got); d != "" {
		t.Errorf("languages (-want +got):\n%s", d)
	}
	for _, bad := range []string{"No heading.", "# en\nNo stop", "# en\n."} {
		if _, err := newBackground(NewVocabulary(0), bad); err == nil {
			t.Errorf("text %q is accepted", bad)
		}
	}
}

func TestBackgroundAfterForeignText(t *testing.T) {
	v := NewVocabulary(0)
	b, err := newBackground(v, backgroundText)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	prev := v.Encode(nil, " zzyx qqv wwk")
	tok := b.Next(prev, rnd)
	if got := v.Decode([]gpukv.Token{tok}); !strings.HasPrefix(got, ". ") {
		t.Errorf("after unknown words comes %q, want a new sentence", got)
	}
	if tok := b.Next(nil, rnd); tok < firstPiece {
		t.Errorf("after nothing comes token %d", tok)
	}
}
