package fingerprint

import "math/bits"

const (
	// windowWords is the number of words that a window holds: enough to share the
	// cost of going from reading to selecting and back. With 128 all took 3 %
	// longer, with 64 another 5 %.
	windowWords = 256

	// windowFull is the number of words beyond which there may be no room for
	// those of one block or one character. A character has at most 18.
	windowFull = windowWords - blockBytes/2
)

// window holds the last words of a text. It takes 4 KB.
type window struct {
	n     int // words held
	fresh int // the first word of which no passage has been looked for
	first int // number of word 0 in the stream

	hash [windowWords]uint64
	// edge has two places in the stream for each word: its first byte and the
	// one behind its last. Edges are written in fours, so there is room beyond.
	edge [2*windowWords + 4]uint32
	wide [windowWords/64 + 1]uint64 // one bit a word, and 64 to spare

	// list is for words picked out of the window. It holds nothing between calls;
	// a list of its own would be cleared on each.
	list [windowWords]uint8
}

// add appends a word; wide is 1 or 0.
func (w *window) add(hash uint64, start, end uint32, wide uint64) {
	n := w.n
	w.hash[n] = hash
	w.edge[2*n] = start
	w.edge[2*n+1] = end
	w.wide[n/64] |= wide << (n % 64)
	w.n = n + 1
}

// shift makes room: it keeps the words that a passage may still begin with.
func (w *window) shift() {
	by := w.n - (PassageWords - 1)
	if by <= 0 {
		return
	}
	wide := w.wideFrom(by)
	copy(w.hash[:PassageWords-1], w.hash[by:w.n])
	copy(w.edge[:2*(PassageWords-1)], w.edge[2*by:2*w.n])
	clear(w.wide[:])
	w.wide[0] = wide
	w.first += by
	w.n -= by
	w.fresh -= by
}

// clear forgets the words, so that no passage begins with them.
func (w *window) clear() {
	w.first += w.n
	w.n, w.fresh = 0, 0
	clear(w.wide[:])
}

// wideFrom returns the bits of the words from i on, at least 64 of them.
func (w *window) wideFrom(i int) uint64 {
	at, by := i/64, i%64
	return w.wide[at]>>by | w.wide[at+1]<<1<<(63-by)
}

// wideWords counts the words of the passage at i that are single code points.
func (w *window) wideWords(i int) uint8 {
	return uint8(bits.OnesCount64(w.wideFrom(i) & (1<<PassageWords - 1)))
}
