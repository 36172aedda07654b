package sim

import (
	"math/rand/v2"

	"github.com/auditproxy/auditproxy/gpukv"
)

// writer is the engine's model: an induction head over the background model,
// with an idea of how long an answer should be.
//
// The background model alone would end an answer after any sentence, also that
// to a question about a document of ten thousand words. So the writer lets an
// answer end only when it has a length that grows with the prompt: a short
// question may be answered in a sentence, a long document takes at least a page.
// It looks at the length that the node takes the prompt to have, and at nothing
// that stands in it.
type writer struct {
	ends, goesOn gpukv.Induction
}

const (
	shortestAnswer = 8   // tokens, to a prompt of no length
	promptShare    = 20  // prompt tokens that make the shortest answer longer by one
	longestMinimum = 500 // tokens that no prompt makes an answer longer than
)

func newWriter(b *background) writer {
	w := gpukv.Induction{
		Background: b,
		Match:      inductionMatch,
		RunMin:     inductionRunMin,
		RunMax:     inductionRunMax,
		RunEnd:     inductionRunEnd,
		GapMin:     inductionGapMin,
		GapMax:     inductionGapMax,
		GapEnd:     inductionGapEnd,
	}
	on := w
	on.Background = endless{b}
	return writer{ends: w, goesOn: on}
}

// Next implements gpukv.Model.
func (w writer) Next(c *gpukv.Context) (gpukv.Token, int) {
	if c.Len()-c.Prompt() < min(shortestAnswer+c.Prompt()/promptShare, longestMinimum) {
		return w.goesOn.Next(c)
	}
	return w.ends.Next(c)
}

// endless is the background model without an end.
type endless struct{ b *background }

func (m endless) Next(prev []gpukv.Token, rnd *rand.Rand) gpukv.Token {
	if t := m.b.Next(prev, rnd); !m.b.ends(t) {
		return t
	}
	return m.b.begin(&m.b.languages[m.b.languageOf(prev)], true, rnd)
}
