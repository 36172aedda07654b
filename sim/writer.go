package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/auditproxy/auditproxy/gpukv"
)

// writer is the engine's model: an induction head over the background model.
//
// The background writes until it has said a common word, such as "of" or "the".
// Then the head looks for something to copy: half of the time where that word
// stands in the prompt, at one of the places; half of the time anywhere, as heads
// do whose query matches little. What follows there is copied token by token, for
// a run of drawn length and across the bounds of pages. After the run the
// background goes on. An ordinary answer so quotes its own prompt between
// sentences of no meaning, and an answer over stale pages quotes whatever stands
// there: the head attends to the positions that the page table names and can't
// tell whose they are.
//
// Of equal places each is equally likely. gpukv.Induction compares more of the
// context and takes the best match; since the background says the same things to
// everybody, that is nearly always an older answer when the page table still
// holds one. Its first match after a random place favours text that stands alone
// in a stretch without that word, such as a sentence amid code.
//
// The writer lets an answer end when it has a length that grows with the prompt:
// a question may be answered in a sentence, a long document takes a page or two. It goes by the length that the node takes the prompt to have, and by
// nothing that stands in it.
//
// Counting the places and finding the drawn one reads the context twice, once in
// some ninety tokens of an answer; what is copied is then followed at the cost of
// one read a token.
type writer struct {
	background *background
	common     map[gpukv.Token]bool
}

const (
	runMin         = 48      // tokens that a run has at least, where its source has them
	runMax         = 120     // tokens that a run has at most
	runEnd         = 1. / 40 // chance that a run ends, a token, in between
	gapMin         = 4       // background tokens before a source is looked for
	diffuse        = 0.5     // share of the runs that begin anywhere
	commonWords    = 12      // of each language, that a source is looked for after
	shortestAnswer = 8       // tokens, to a prompt of no length
	promptUnit     = 360     // prompt tokens; their number's square is added to the shortest answer
	longestMinimum = 828     // tokens that no prompt makes the shortest answer exceed
)

func newWriter(b *background) *writer {
	return &writer{background: b, common: b.common(commonWords)}
}

// Next implements gpukv.Model.
func (w *writer) Next(c *gpukv.Context) (gpukv.Token, int) {
	if at := w.attend(c); at >= 0 {
		return c.At(at), at
	}
	t := w.background.Next(c.Tail(), c.Rand())
	if w.background.ends(t) && c.Len()-c.Prompt() < shortest(c.Prompt()) {
		t = w.background.resume(c.Tail(), c.Rand())
	}
	return t, -1
}

// shortest returns how many tokens the answer to a prompt has at least.
func shortest(prompt int) int {
	units := prompt / promptUnit
	return min(shortestAnswer+units*units, longestMinimum)
}

// attend returns the position to copy, or -1.
func (w *writer) attend(c *gpukv.Context) int {
	if c.Copied() >= 0 {
		next := c.Copied() + 1
		if next >= c.Prompt() || c.At(next) == 0 || c.Run() >= runMax ||
			c.Run() >= runMin && c.Rand().Float64() < runEnd {
			return -1
		}
		return next
	}
	if c.Gap() < gapMin {
		return -1
	}
	last := c.At(c.Len() - 1)
	if !w.common[last] || c.Prompt() < 2 {
		return -1
	}
	if c.Rand().Float64() < diffuse {
		if at := c.Rand().IntN(c.Prompt()); c.At(at) != 0 {
			return at
		}
		return -1
	}
	if n := count(c, last, -1); n > 0 {
		return count(c, last, c.Rand().IntN(n))
	}
	return -1
}

// count returns how often t stands in the prompt with a token after it, or, if
// nth is not negative, the position after the nth such place.
func count(c *gpukv.Context, t gpukv.Token, nth int) int {
	n := 0
	for i, end := 0, c.Prompt()-1; i < end; {
		block := c.Block(i)
		block = block[:min(len(block), end-i)]
		for j, have := range block {
			if have != t || c.At(i+j+1) == 0 {
				continue
			}
			if n == nth {
				return i + j + 1
			}
			n++
		}
		i += len(block)
	}
	return n
}

// resume begins another sentence where Next would have ended the answer.
func (b *background) resume(prev []gpukv.Token, rnd *rand.Rand) gpukv.Token {
	return b.begin(&b.languages[b.languageOf(prev)], true, rnd)
}

// common returns the n words of each language that follow others most often.
func (b *background) common(n int) map[gpukv.Token]bool {
	most := make(map[gpukv.Token]bool, n*len(b.languages))
	for _, l := range b.languages {
		times := make(map[gpukv.Token]int)
		for _, list := range l.one {
			for _, t := range list {
				times[t]++
			}
		}
		delete(times, sentenceEnd)
		words := make([]gpukv.Token, 0, len(times))
		for t := range times {
			words = append(words, t)
		}
		slices.SortFunc(words, func(a, b gpukv.Token) int {
			return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b))
		})
		for _, t := range words[:min(n, len(words))] {
			most[t] = true
		}
	}
	return most
}
