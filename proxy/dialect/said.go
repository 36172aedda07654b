package dialect

// Text that comes twice.
//
// Several APIs send a text in pieces and then once more as a whole: the
// Responses API up to five times, Cohere's stream-end, TGI's last event, the
// transcripts of audio. SGLang repeats all text so far in every event. It must
// be given once; but the whole may say more than the pieces did, when events
// were lost or never sent, and then the rest counts, for the client has it.
//
// So for each place the length of what was given is kept, with a running hash
// of it, 168 bytes in all: a whole text that begins with what was given is
// recognised without keeping either. White space at the beginning counts on
// neither side, since TGI trims it from the whole. If the whole does not begin
// with what was given, the client saw two texts, and the second one is given
// too, in a block of its own.
//
// Not done: an edit distance between the two. Servers either repeat a text
// exactly or mean another one.

import (
	"hash/maphash"
	"strings"
)

// said is what was given at one place.
type said struct {
	lead   int // bytes of white space at the beginning
	n      int // bytes behind it
	hash   maphash.Hash
	second bool // the place's second block is in use
}

// maxSaid bounds the places that are remembered. A response has a few dozen;
// whole texts at further places are given although they may come twice.
const maxSaid = 1 << 14

// secondBlock is the distance from a block to the one that a second text for
// the same place is given in.
const secondBlock = 1 << 24

const space = " \t\r\n"

// note remembers that s was given at p.
func (o *output) note(p place, s string) {
	w := o.said[p]
	if w == nil {
		if s == "" || len(o.said) == maxSaid {
			return
		}
		w = new(said)
		o.said[p] = w
	}
	if w.n == 0 {
		text := strings.TrimLeft(s, space)
		w.lead += len(s) - len(text)
		s = text
	}
	w.n += len(s)
	_, _ = w.hash.WriteString(s)
}

// begins says whether text begins with what w was given, and returns the rest.
func (w *said) begins(text string) (rest string, ok bool) {
	if w == nil {
		return text, true
	}
	bare := strings.TrimLeft(text, space)
	if w.n == 0 {
		return text[min(w.lead, len(text)-len(bare)):], true
	}
	if len(bare) < w.n {
		return "", false
	}
	var h maphash.Hash
	h.SetSeed(w.hash.Seed())
	_, _ = h.WriteString(bare[:w.n])
	return bare[w.n:], h.Sum64() == w.hash.Sum64()
}

// rest gives what the whole text says beyond the pieces of it that were given
// at p.
func (o *output) rest(p place, text string) {
	text = wellFormed(text)
	if text == "" {
		return
	}
	w := o.said[p]
	if rest, ok := w.begins(text); ok {
		delete(o.texts.held, p) // half a character of the pieces, which the whole has
		o.add(p, rest)
		return
	}
	if o.cut && len(text) < w.lead+w.n {
		return // it can't be told whether the cut text is the same
	}
	second := p
	second.block += secondBlock
	if w.second {
		if rest, ok := o.said[second].begins(text); ok {
			o.add(second, rest)
			return
		}
	}
	w.second = true
	o.add(second, text)
}
