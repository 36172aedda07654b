package sim

// The background model is what the simulated engine says when it copies
// nothing: an n-gram model of order 3, trained at start on the text embedded
// below, a few hundred lines of everyday prose in six languages. It makes
// answers fluent from word to word and empty of meaning, which is enough: what
// the simulator is about is the text that comes out of KV pages.
//
// The embedded text is written for this purpose. No workload sends any of it
// (a test holds that), so a word of the background in an answer is evidence of
// nothing.
//
// A line of the text is one sentence. Sentences of one language follow each
// other in any order; an answer ends with probability 1 in 3 after a sentence, and
// after words that the model doesn't know, which were copied.
// With probability 2 in 5 the next word is drawn by the last word alone, not by
// the last two, so that answers seldom repeat a sentence of the text whole.

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/auditproxy/auditproxy/gpukv"
)

//go:embed background.txt
var backgroundText string

const (
	endOdds      = 3   // an answer ends after one sentence in so many
	bigramShare  = 0.4 // of the words that are drawn by the last word alone
	languageLook = 24  // tokens looked back to find the language
)

// background implements gpukv.Background. It is immutable after training and
// safe for concurrent use.
type background struct {
	vocabulary *Vocabulary
	languages  []language
	known      map[gpukv.Token]int  // language of a token that only one language uses
	stops      map[gpukv.Token]bool // full stops
}

type language struct {
	name   string
	first  []gpukv.Token // how sentences begin at the start of an answer
	next   []gpukv.Token // how they begin after another sentence
	period gpukv.Token
	one    map[gpukv.Token][]gpukv.Token    // what followed a word, as often as it did
	two    map[[2]gpukv.Token][]gpukv.Token // what followed two words
}

// sentenceEnd stands in the lists of successors for the end of a sentence.
const sentenceEnd = endToken

// newBackground trains a model on text: lines, one sentence each, under
// headings such as "# en".
func newBackground(v *Vocabulary, text string) (*background, error) {
	b := &background{
		vocabulary: v,
		known:      make(map[gpukv.Token]int),
		stops:      make(map[gpukv.Token]bool),
	}
	shared := make(map[gpukv.Token]bool)
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			stop := "."
			if name == "zh" || name == "ja" {
				stop = "。"
			}
			period := v.Encode(nil, stop)[0]
			b.stops[period] = true
			b.languages = append(b.languages, language{
				name: name, period: period,
				one: make(map[gpukv.Token][]gpukv.Token),
				two: make(map[[2]gpukv.Token][]gpukv.Token),
			})
			continue
		}
		if len(b.languages) == 0 {
			return nil, fmt.Errorf("background text, line %d: no language named yet", i+1)
		}
		if err := b.train(len(b.languages)-1, line, shared); err != nil {
			return nil, fmt.Errorf("background text, line %d: %w", i+1, err)
		}
	}
	for t := range shared {
		delete(b.known, t)
	}
	return b, nil
}

func (b *background) train(lang int, line string, shared map[gpukv.Token]bool) error {
	l := &b.languages[lang]
	stop := b.vocabulary.Decode([]gpukv.Token{l.period})
	sentence, ok := strings.CutSuffix(line, stop)
	if !ok || sentence == "" {
		return fmt.Errorf("not a sentence that ends in %q", stop)
	}
	join := stop
	if stop == "." {
		join = ". "
	}
	tokens := b.vocabulary.Encode(nil, sentence)
	next := b.vocabulary.Encode(nil, join+sentence)[0]
	l.first = append(l.first, tokens[0])
	l.next = append(l.next, next)
	for _, t := range tokens {
		if k, seen := b.known[t]; seen && k != lang {
			shared[t] = true
		}
		b.known[t] = lang
	}
	tokens = append(tokens, sentenceEnd)
	for i := 1; i < len(tokens); i++ {
		t := tokens[i]
		l.one[tokens[i-1]] = append(l.one[tokens[i-1]], t)
		if i > 1 {
			k := [2]gpukv.Token{tokens[i-2], tokens[i-1]}
			l.two[k] = append(l.two[k], t)
		}
	}
	// The second word must also be found after the form with a full stop.
	l.one[next] = append(l.one[next], tokens[1])
	if len(tokens) > 2 {
		k := [2]gpukv.Token{next, tokens[1]}
		l.two[k] = append(l.two[k], tokens[2])
	}
	return nil
}

// Next draws the token after prev. It returns endToken when the answer is
// complete. The result depends on prev and rnd alone.
func (b *background) Next(prev []gpukv.Token, rnd *rand.Rand) gpukv.Token {
	n := len(prev)
	if n == 0 {
		return b.begin(&b.languages[0], false, rnd)
	}
	last := prev[n-1]
	if b.stops[last] {
		return endToken
	}
	l := &b.languages[b.languageOf(prev)]
	list := l.one[last]
	if n > 1 {
		if k := l.two[[2]gpukv.Token{prev[n-2], last}]; len(k) > 0 && rnd.Float64() >= bigramShare {
			list = k
		}
	}
	if len(list) == 0 && last >= systemToken && last <= lastMarker {
		return b.begin(l, false, rnd)
	}
	if len(list) > 0 {
		if t := list[rnd.IntN(len(list))]; t != sentenceEnd {
			return t
		}
	}
	// The end of a sentence, or of words that the model doesn't know.
	if rnd.IntN(endOdds) == 0 {
		return l.period
	}
	return b.begin(l, true, rnd)
}

// ends reports whether the answer is complete, or as good as, with t.
func (b *background) ends(t gpukv.Token) bool { return t == endToken || b.stops[t] }

// begin draws the first word of a sentence, after another one or at the start.
func (b *background) begin(l *language, mid bool, rnd *rand.Rand) gpukv.Token {
	i := rnd.IntN(len(l.first))
	if mid {
		return l.next[i]
	}
	return l.first[i]
}

// languageOf guesses the language of the text so far: that of the most recent
// tokens that belong to one language alone, or to one script, else the first.
func (b *background) languageOf(prev []gpukv.Token) int {
	votes := make([]int, len(b.languages))
	best := 0
	for _, t := range prev[max(0, len(prev)-languageLook):] {
		i, weight := b.voteOf(t)
		if votes[i] += weight; votes[i] > votes[best] {
			best = i
		}
	}
	return best
}

// voteOf returns the language that a token speaks for, and how strongly. Kana
// outweigh Han characters, which Japanese has too.
func (b *background) voteOf(t gpukv.Token) (lang, weight int) {
	name := ""
	if b.vocabulary.glue(t)&glueNever != 0 {
		r, _ := utf8.DecodeLastRuneInString(b.vocabulary.Decode([]gpukv.Token{t}))
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			name, weight = "ja", 4
		case unicode.Is(unicode.Han, r):
			name, weight = "zh", 1
		}
		for i := range b.languages {
			if b.languages[i].name == name {
				return i, weight
			}
		}
		return 0, 0
	}
	if i, ok := b.known[t]; ok {
		return i, 1
	}
	return 0, 0
}
