package gpukv

import "math/rand/v2"

// Attention by induction.
//
// The part of a language model that matters here is the one that copies. Given
// the last tokens, an induction head finds where they stood before and attends
// to what came next; that is how a model quotes a document, follows a list and
// carries on a text that it is shown. Induction does that and nothing else, and
// leaves the words between to a [Background]. An ordinary answer so becomes
// background mixed with pieces of its own prompt. An answer over stale pages
// becomes background mixed with pieces of whatever stands there, because the
// rule is the same and it has no way to tell.
//
// To look for a source, the last tokens of the context are compared with every
// earlier position of the prompt, and the position with the longest match wins;
// among equals the first after a random place. If not even the last token occurs
// in the prompt, attention has nothing to hold on to and falls on a random
// place. Once found, a source is followed token by token, for a run of drawn
// length, across the bounds of pages and of whatever texts meet there. The run
// ends early at a slot that was never written and at the end of the prompt: an
// answer that copied itself would loop.
//
// With the defaults a run is 25 to 120 tokens long and 61 in the mean, a gap 8 to
// 48 and 22. Following a run costs one read a token; only a new source scans the
// context, once in some eighty tokens. Over 700,000 slots that takes 0.4 ms, and
// a token 3 µs in the mean.
//
// Left out: matching that skips or paraphrases, and copying from the answer.

// Model chooses the next token of a request.
type Model interface {
	// Next returns the next token and the position of c that it was copied
	// from, or -1 if it was not copied. It must depend on c alone.
	Next(c *Context) (Token, int)
}

// Background gives tokens when nothing is copied: a small language model.
type Background interface {
	// Next returns the token after prev, the last tokens of the context, oldest
	// first, as the page table holds them. It must depend on prev and rnd alone
	// and not keep prev.
	Next(prev []Token, rnd *rand.Rand) Token
}

// Induction is a [Model] that copies runs of tokens from its context.
type Induction struct {
	Background Background // gives the tokens between runs; nil means the placeholder
	Match      int        // tokens of context that are compared at most; 0 means 8, at most 32
	RunMin     int        // tokens that a run has at least, where its source has them; 0 means 25
	RunMax     int        // tokens that a run has at most; 0 means 120
	RunEnd     float64    // chance that a run ends, a token, between RunMin and RunMax; 0 means 1/40, below 0 never
	GapMin     int        // background tokens between runs and before the first, at least; 0 means 8
	GapMax     int        // background tokens after which a source is looked for anyway; 0 means 48
	GapEnd     float64    // chance that a source is looked for, a token, after GapMin; 0 means 1/16, below 0 never
}

// Next implements [Model].
func (m Induction) Next(c *Context) (Token, int) {
	if at := m.attend(c); at >= 0 {
		return c.At(at), at
	}
	if m.Background == nil {
		return placeholder, -1
	}
	return m.Background.Next(c.Tail(), c.Rand()), -1
}

// attend returns the position to copy, or -1.
func (m Induction) attend(c *Context) int {
	rnd := c.Rand()
	if c.Copied() >= 0 {
		next := c.Copied() + 1
		if next >= c.Prompt() || c.At(next) == placeholder || c.Run() >= or(m.RunMax, 120) {
			return -1
		}
		if c.Run() >= or(m.RunMin, 25) && rnd.Float64() < or(m.RunEnd, 1./40) {
			return -1
		}
		return next
	}
	if c.Gap() < or(m.GapMin, 8) {
		return -1
	}
	if c.Gap()%or(m.GapMax, 48) != 0 && rnd.Float64() >= or(m.GapEnd, 1./16) {
		return -1
	}
	return m.source(c)
}

const maxMatch = 32

// source returns the position after the best match of the end of the context,
// or a random one, or -1 if the prompt holds nothing.
func (m Induction) source(c *Context) int {
	s := search{c: c, end: c.Prompt() - 1}
	if s.end < 1 {
		return -1
	}
	for s.n < min(or(m.Match, 8), maxMatch, c.Len()) {
		t := c.At(c.Len() - 1 - s.n)
		if t == placeholder {
			break
		}
		s.last[s.n] = t
		s.n++
	}
	start := c.Rand().IntN(s.end)
	if s.n > 0 && !s.scan(start, s.end) {
		s.scan(0, start)
	}
	if s.best > 0 {
		return s.at + 1
	}
	start = c.Rand().IntN(c.Prompt())
	if at := written(c, start, c.Prompt()); at >= 0 {
		return at
	}
	return written(c, 0, start)
}

// search is the state of one look for a source.
type search struct {
	c    *Context
	end  int             // positions below it have a successor in the prompt
	last [maxMatch]Token // the end of the context, newest first
	n    int             // tokens in last
	best int             // length of the longest match
	at   int             // where it ends
}

// scan looks at the positions of [lo, hi) and reports whether a match can't be
// bettered.
func (s *search) scan(lo, hi int) bool {
	for i := lo; i < hi; {
		block := s.c.Block(i)
		block = block[:min(len(block), hi-i)]
		for j, t := range block {
			if t == s.last[0] && s.try(i+j) {
				return true
			}
		}
		i += len(block)
	}
	return false
}

func (s *search) try(p int) bool {
	if s.c.At(p+1) == placeholder {
		return false
	}
	k := 1
	for k < s.n && k <= p && s.c.At(p-k) == s.last[k] {
		k++
	}
	if k > s.best {
		s.best, s.at = k, p
	}
	return k == s.n
}

// written returns the first position of [lo, hi) that holds a token, or -1.
func written(c *Context, lo, hi int) int {
	for i := lo; i < hi; {
		block := c.Block(i)
		block = block[:min(len(block), hi-i)]
		for j, t := range block {
			if t != placeholder {
				return i + j
			}
		}
		i += len(block)
	}
	return -1
}

// or returns v, or def if v is zero.
func or[T int | float64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
