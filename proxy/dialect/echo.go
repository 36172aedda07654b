package dialect

import (
	"maps"
	"slices"
	"strings"
)

// echo takes the copy of the prompt off the beginning of answers that were
// asked to repeat it. Such a copy is the tenant's own text and nobody's leak.
//
// Only requests that ask for an echo, and servers that echo unless told
// otherwise, have their answers treated so: what a model repeats of its own
// accord is text like any other. The copy is taken off as it streams, by
// position alone. If the answer turns out to be another text, what was held
// back of it is given after all, so that nothing is lost.
type echo struct {
	texts []string
	per   int         // answers to each text
	at    map[int]int // by choice: how much of its text has come; -1: no more is awaited
}

// newEcho returns nil if a asks for no echo.
func newEcho(a asked) *echo {
	if len(a.echo) == 0 {
		return nil
	}
	return &echo{texts: a.echo, per: max(a.perEcho, 1), at: map[int]int{}}
}

// of returns what the answer of a choice begins with.
func (e *echo) of(choice int) string {
	if i := choice / e.per; i < len(e.texts) {
		return e.texts[i]
	}
	return ""
}

// strip returns what s, the next text at p, says beyond the echo.
func (e *echo) strip(p place, s string) string {
	if e == nil || s == "" || p.channel != Content || p.block != blockMain {
		return s
	}
	at, known := e.at[p.choice]
	whole := e.of(p.choice)
	if at < 0 || whole == "" || !known && len(e.at) == maxChoices {
		return s
	}
	rest := whole[at:]
	switch {
	case len(s) < len(rest) && strings.HasPrefix(rest, s):
		e.at[p.choice] = at + len(s)
		return ""
	case strings.HasPrefix(s, rest):
		e.at[p.choice] = -1
		return s[len(rest):]
	default:
		e.at[p.choice] = -1
		return whole[:at] + s
	}
}

// flush gives what was held back of answers that ended inside their echo.
func (e *echo) flush(dst []Delta) []Delta {
	if e == nil {
		return dst
	}
	for _, choice := range slices.Sorted(maps.Keys(e.at)) {
		if at := e.at[choice]; at > 0 {
			dst = append(dst, Delta{choice, Content, blockMain, e.of(choice)[:at]})
		}
	}
	e.at = nil
	return dst
}
