package fingerprint

import "math"

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
// Selection runs over all fresh words at once and never branches on a hash: no
// predictor can guess them, and a wrong guess costs half as much as a word does
// in all. The run that ends with word j is selected if j is no larger than
// the smallest of the ten words before it, or if word j-10 is smaller than the
// smallest of the ten words after it: minima of ten words in a row. They come
// from rows of ten (van Herk, Gil and Werman 1992): ten words in a row are the
// end of one row and the beginning of the next, so the minima of all ends and
// of all beginnings, three comparisons a word, give all of them. Each word is
// written to the list of selected ones, and the list grows or doesn't.
//
// What was not done: keeping the smallest word and searching anew when it
// leaves the window compares less, but branches at each print; it took nearly
// twice the 2 ns a word. Eight hashes in one register of AVX-512 would take off
// most of them.

// stride is the length of the rows: a passage but for one word.
const stride = PassageWords - 1

// pick lists the last words of the selected runs that end with fresh words.
func (w *window) pick() int {
	n := 0
	var end [stride + 1]uint64 // end[i] is the smallest of the row from its word i on
	end[stride] = math.MaxUint64
	for at := max(w.fresh, stride); at < w.n; at += stride {
		before := (*[stride]uint64)(w.hash[at-stride:])
		least := uint64(math.MaxUint64)
		for i := stride - 1; i >= 0; i-- {
			least = min(least, before[i])
			end[i] = least
		}
		// least is the smallest of the ten words before word at+i, then of those
		// up to it.
		begun := uint64(math.MaxUint64)
		for i, x := range w.hash[at:min(at+stride, w.n)] {
			w.list[n] = uint8(at + i)
			selected := 0
			if x <= least {
				selected = 1
			}
			begun = min(begun, x)
			least = min(begun, end[i+1])
			if before[i] < least {
				selected = 1
			}
			n += selected
		}
	}
	return n
}

// prints appends the prints of the passages that end with fresh words.
func (w *window) prints(dst []Print, k *passageKey, block *[16]byte) []Print {
	if w.fresh == w.n {
		return dst
	}
	for _, j := range w.list[:w.pick()] {
		j := int(j)
		i := j - stride
		words := (*[PassageWords]uint64)(w.hash[i:])
		if !distinct5(words[0], words[1], words[2], words[3], words[4]) && !rich(words) {
			continue
		}
		dst = append(dst, Print{})
		p := &dst[len(dst)-1]
		p.Hi, p.Lo = k.sum(words, block)
		p.Word = uint32(w.first + i)
		p.Start, p.End = w.edge[2*i], w.edge[2*j+1]
		p.Wide = w.wideWords(i)
	}
	w.fresh = w.n
	return dst
}

// distinct5 answers for most passages whether they are rich.
func distinct5(a, b, c, d, e uint64) bool {
	return a != b && a != c && a != d && a != e && b != c && b != d && b != e && c != d && c != e && d != e
}

// rich reports whether MinDistinct words of a passage are different.
func rich(words *[PassageWords]uint64) bool {
	var seen [MinDistinct]uint64
	n := 0
words:
	for _, h := range words {
		for _, s := range seen[:n] {
			if s == h {
				continue words
			}
		}
		seen[n] = h
		if n++; n == MinDistinct {
			return true
		}
	}
	return false
}
