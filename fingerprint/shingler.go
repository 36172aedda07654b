package fingerprint

import "unicode/utf8"

// A text is read piece by piece into a window of words, and whenever that is
// full or the piece has ended, passages are selected from its fresh words.
//
// Two readers find the words, and where both can read they find the same ones:
// blocks (blocks.go) takes 64 bytes at a time and is quick; chars (chars.go)
// goes by the character and can stop and go on anywhere. chars has the words
// that reach over the end of a piece, the last 71 bytes of it, and scripts
// whose words are single characters.
//
// A stream of deltas of a few bytes is therefore read by chars alone, and costs
// two to three times as much a byte as a text that comes whole.

// pieceBytes is how much of a text is read at a time, so that the 32 bits of a
// position tell where in the piece it is.
const pieceBytes = 1 << 16

// Shingler reads one text piece by piece and appends its prints. It belongs to
// one goroutine and comes from [Scheme.Shingler]. It takes 5 KB, however long the
// text or its words, and keeps words as hashes and at most three bytes of text.
//
// How the text is cut into pieces never changes the prints, only when they
// come: a word ends at the first character that can't belong to it.
type Shingler struct {
	scheme *Scheme
	pos    uint32 // where the piece begins: bytes taken, held ones included

	held  [utf8.UTFMax]byte // the beginning of a cut UTF-8 sequence
	nheld int

	// The unfinished word: what it is, its hash so far, and its bytes.
	in         wordKind
	hash       wordHash
	start, end uint32

	win   window
	block [16]byte // for the scheme's cipher
}

// Append reads the next piece of the text and appends the prints of the
// passages that it completes. A byte that isn't UTF-8 separates words.
func (h *Shingler) Append(dst []Print, text string) []Print {
	for len(text) > 0 {
		n := min(len(text), pieceBytes)
		dst = h.read(dst, text[:n])
		text = text[n:]
	}
	return dst
}

// Finish ends the text, completing its last word, and appends the prints that
// this completes. No passage spans a Finish. The shingler may go on with
// another text of the same stream: word and byte positions continue.
func (h *Shingler) Finish(dst []Print) []Print {
	h.nheld = 0
	h.separate()
	dst = h.prints(dst)
	h.win.clear()
	return dst
}

// Reset forgets everything, as if the shingler were new.
func (h *Shingler) Reset() {
	*h = Shingler{scheme: h.scheme}
}

// Words returns how many words have been completed so far.
func (h *Shingler) Words() int { return h.win.first + h.win.n }

// read reads one piece.
func (h *Shingler) read(dst []Print, text string) []Print {
	i := h.resume(text)
	for {
		i = h.words(text, i)
		dst = h.prints(dst)
		if i == len(text) {
			h.pos += uint32(len(text))
			return dst
		}
	}
}

// prints appends the prints of the passages that end with fresh words, and
// makes room for more words.
func (h *Shingler) prints(dst []Print) []Print {
	dst = h.win.prints(dst, &h.scheme.passage, &h.block)
	if h.win.n > windowFull {
		h.win.shift()
	}
	return dst
}

// words reads text[i:] into the window and returns where that is full, or the
// end of text.
func (h *Shingler) words(text string, i int) int {
	for i < len(text) && h.win.n <= windowFull {
		if h.in == noWord && i+blockReach <= len(text) && text[i] < wideLead {
			i = h.blocks(text, i)
		}
		i = h.chars(text, i)
	}
	return i
}
