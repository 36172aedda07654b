package fingerprint

import (
	"encoding/binary"
	"math/bits"

	"github.com/dchest/siphash"
)

// Passages are selected as closed syncmers (Edgar 2021) of words: of each run
// of k = 11 words, look at the smallest word hash, the rightmost of equal ones.
// The run is a passage if that word is its first or its last.
//
// The choice depends on the eleven words alone. The same run is selected in
// every text or in none, so counting the tenants that hold a passage, leaving
// out a tenant's own and dropping repeats are exact. Winnowing, which picks the
// smallest hash of each window of runs, is as dense for the same guarantee, but
// whether it keeps a run depends on the neighbours.
//
// Guarantee: of any 2(k-1) = 20 words in a row, some 11 in a row are selected.
// Let m be the rightmost smallest of the 20 words, numbered from 0.
//
//   - m >= 10: the run of words m-10 to m lies within the 20. Nothing in it is
//     smaller than m, and m is its last word, hence the rightmost of any ties.
//   - m <= 9: the run of words m to m+10 lies within the 20. All words after m
//     are strictly larger, or m would not be the rightmost. So m, its first
//     word, is its only smallest.
//
// The first words of selected runs are therefore at most k-1 = 10 apart, and
// 30 words in a row hold two selected runs: one begins at words 0 to 9, one at
// words 10 to 19. Ties to the left would do as well in the mirror; ties to
// neither side would not, as they leave text of few words bare.
//
// On unrelated words each of the 11 places holds the smallest with the same
// chance, so 2 in 11 runs are selected (0.18 prints a word). Measured on real
// prompts and answers: 0.15 to 0.19, the fewer the shorter the text.
//
// Runs of fewer than MinDistinct different words are dropped after selection;
// this too depends on the run alone.
//
// What was not done: a queue for the minimum. With 11 words the minimum is kept
// and searched anew when it leaves the window, which happens about every
// twelfth word.

// windowSlots is the size of the ring of words: a power of two that holds a
// passage.
const windowSlots = 16

// window holds the last words of a text.
type window struct {
	hash  [windowSlots]uint64
	start [windowSlots]uint32 // first byte of each word in the stream
	wide  uint16              // one bit a word, the last word lowest
	n     uint                // words since the window was cleared
	min   uint                // number of the rightmost smallest of the last PassageWords
}

// push takes the next word and reports whether it completes a passage.
func (w *window) push(hash uint64, start uint32, wide uint16) bool {
	last := w.n
	w.n++
	w.hash[last%windowSlots] = hash
	w.start[last%windowSlots] = start
	w.wide = w.wide<<1 | wide
	switch {
	case last == 0 || hash <= w.hash[w.min%windowSlots]:
		w.min = last
	case last-w.min == PassageWords:
		w.search(last)
	}
	if last < PassageWords-1 {
		return false
	}
	return (w.min == last || last-w.min == PassageWords-1) && w.distinct() >= MinDistinct
}

// search finds the rightmost smallest of the last PassageWords words.
func (w *window) search(last uint) {
	w.min = last
	for i := last - 1; i > last-PassageWords; i-- {
		if w.hash[i%windowSlots] < w.hash[w.min%windowSlots] {
			w.min = i
		}
	}
}

// distinct counts the different words of the passage, up to MinDistinct.
func (w *window) distinct() int {
	var seen [MinDistinct]uint64
	n := 0
words:
	for i := w.n - PassageWords; i < w.n && n < MinDistinct; i++ {
		h := w.hash[i%windowSlots]
		for _, s := range seen[:n] {
			if s == h {
				continue words
			}
		}
		seen[n] = h
		n++
	}
	return n
}

// prf returns the 128 bits for the passage under the key.
func (w *window) prf(key *[2]uint64) (hi, lo uint64) {
	var buf [8 * PassageWords]byte
	for i := range uint(PassageWords) {
		binary.LittleEndian.PutUint64(buf[8*i:], w.hash[(w.n-PassageWords+i)%windowSlots])
	}
	return siphash.Hash128(key[0], key[1], buf[:])
}

// first returns the first byte of the passage.
func (w *window) first() uint32 {
	return w.start[(w.n-PassageWords)%windowSlots]
}

// wideWords counts the passage's words that are single code points.
func (w *window) wideWords() uint8 {
	return uint8(bits.OnesCount16(w.wide & (1<<PassageWords - 1)))
}
