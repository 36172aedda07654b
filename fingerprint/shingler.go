package fingerprint

import "unicode/utf8"

// The shingler is one pass: decode, fold, hash, and at each word's end one step
// of the window. ASCII letters take a loop of their own; everything else goes
// through the fold table one code point at a time. Measured on one 2.6 GHz core
// without allocation, in pieces of six bytes and whole: English 119 and 132
// MB/s, Russian 111 and 126, Chinese 77 and 80, Korean 52 and 53 (three jamo a
// syllable). What was not done: folding or finding word ends eight bytes at a
// time, and hashing short words without going through a state.

// Shingler reads one text piece by piece and appends its prints. It belongs to
// one goroutine and comes from [Scheme.Shingler]. It keeps eleven words as
// hashes and at most three bytes of text, however long the text or its words.
//
// How the text is cut into pieces never changes the prints, only when they
// come: a word ends at the first character that can't belong to it.
type Shingler struct {
	scheme *Scheme
	pos    uint32 // bytes taken, held ones included
	words  int    // words completed

	held  [utf8.UTFMax]byte // the beginning of a cut UTF-8 sequence
	nheld int

	// The unfinished word: what it is, its hash so far, and its bytes.
	in         wordKind
	hash       wordHash
	start, end uint32

	win window
}

// wordKind says what the unfinished word is.
type wordKind uint8

const (
	noWord wordKind = iota
	runWord
	wideWord
	leadWord  // a Hangul syllable that a vowel may continue
	vowelWord // a Hangul syllable that a trail may continue
	trailWord // a whole Hangul syllable
)

// Append reads the next piece of the text and appends the prints of the
// passages that it completes. A byte that isn't UTF-8 separates words.
func (h *Shingler) Append(dst []Print, text string) []Print {
	i := 0
	if h.nheld > 0 {
		dst, i = h.resume(dst, text)
	}
	for i < len(text) {
		c := text[i]
		if foldASCII[c] != 0 {
			dst, i = h.run(dst, text, i)
			continue
		}
		if c < utf8.RuneSelf {
			dst = h.separate(dst)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if n == 1 && !utf8.FullRuneInString(text[i:]) {
			h.nheld = copy(h.held[:], text[i:])
			break
		}
		at := h.pos + uint32(i)
		dst = h.take(dst, r, at, at+uint32(n))
		i += n
	}
	h.pos += uint32(len(text))
	return dst
}

// Finish ends the text, completing its last word, and appends the prints that
// this completes. No passage spans a Finish. The shingler may go on with
// another text of the same stream: word and byte positions continue.
func (h *Shingler) Finish(dst []Print) []Print {
	h.nheld = 0
	dst = h.separate(dst)
	h.win.n = 0
	return dst
}

// Reset forgets everything, as if the shingler were new.
func (h *Shingler) Reset() {
	*h = Shingler{scheme: h.scheme}
}

// Words returns how many words have been completed so far.
func (h *Shingler) Words() int { return h.words }

// resume takes the characters that began in an earlier piece and returns how
// many bytes of text belong to them.
func (h *Shingler) resume(dst []Print, text string) ([]Print, int) {
	var buf [2 * utf8.UTFMax]byte
	held := copy(buf[:], h.held[:h.nheld])
	n := held + copy(buf[held:], text)
	h.nheld = 0
	i := 0
	for i < held {
		r, size := utf8.DecodeRune(buf[i:n])
		if size == 1 && !utf8.FullRune(buf[i:n]) {
			// Four bytes are always enough, so the text has ended too.
			h.nheld = copy(h.held[:], buf[i:n])
			return dst, len(text)
		}
		at := h.pos + uint32(i) - uint32(held)
		dst = h.take(dst, r, at, at+uint32(size))
		i += size
	}
	return dst, i - held
}

// run takes the ASCII letters and digits at text[i:] and returns where they
// end.
func (h *Shingler) run(dst []Print, text string, i int) ([]Print, int) {
	if h.in != runWord {
		dst = h.begin(dst, runWord, h.pos+uint32(i))
	}
	for ; i < len(text); i++ {
		c := foldASCII[text[i]]
		if c == 0 {
			break
		}
		h.hash.add(c)
	}
	h.end = h.pos + uint32(i)
	return dst, i
}

// take reads one code point that stands at the bytes [start,end).
func (h *Shingler) take(dst []Print, r rune, start, end uint32) []Print {
	entry := foldEntry(r)
	switch foldKind(entry) {
	case kindTransparent:
	case kindRun:
		if h.in != runWord {
			dst = h.begin(dst, runWord, start)
		}
		h.hash.addRune(folded(r, entry))
		h.end = end
	case kindWide:
		dst = h.begin(dst, wideWord, start)
		h.hash.addRune(folded(r, entry))
		h.end = end
		dst = h.separate(dst)
	case kindLead:
		dst = h.begin(dst, leadWord, start)
		h.hash.addRune(folded(r, entry))
		h.end = end
	case kindVowel:
		if h.in != leadWord {
			dst = h.begin(dst, vowelWord, start)
		}
		h.in = vowelWord
		h.hash.addRune(folded(r, entry))
		h.end = end
	case kindTrail:
		if h.in != vowelWord {
			dst = h.begin(dst, trailWord, start)
		}
		h.in = trailWord
		h.hash.addRune(folded(r, entry))
		h.end = end
	case kindSyllable:
		dst = h.syllable(dst, r, start, end)
	case kindExpansion:
		for _, c := range expansion(entry) {
			dst = h.take(dst, c, start, end)
		}
	default:
		dst = h.separate(dst)
	}
	return dst
}

// The arithmetic of Hangul syllables (The Unicode Standard, section 3.12).
const (
	syllableBase = 0xAC00
	leadBase     = 0x1100
	vowelBase    = 0x1161
	trailBase    = 0x11A7 // one before the first: trail 0 is no trail
	vowelCount   = 21
	trailCount   = 28
)

// syllable takes a Hangul syllable as its jamo. Without a trail it may go on:
// a trail of its own can follow.
func (h *Shingler) syllable(dst []Print, r rune, start, end uint32) []Print {
	r -= syllableBase
	dst = h.begin(dst, vowelWord, start)
	h.hash.addRune(leadBase + r/(vowelCount*trailCount))
	h.hash.addRune(vowelBase + r/trailCount%vowelCount)
	if t := r % trailCount; t != 0 {
		h.hash.addRune(trailBase + t)
		h.in = trailWord
	}
	h.end = end
	return dst
}

// begin ends the word before and starts one at the byte start.
func (h *Shingler) begin(dst []Print, in wordKind, start uint32) []Print {
	dst = h.separate(dst)
	h.in = in
	h.hash = wordHash{sip: h.scheme.word}
	h.start = start
	return dst
}

// separate ends the unfinished word, if there is one.
func (h *Shingler) separate(dst []Print) []Print {
	if h.in == noWord {
		return dst
	}
	return h.complete(dst)
}

// complete ends the unfinished word and appends the print of the passage that
// ends with it, if that is selected.
func (h *Shingler) complete(dst []Print) []Print {
	var wide uint16
	if h.in != runWord {
		wide = 1
	}
	h.in = noWord
	h.words++
	if !h.win.push(h.hash.sum(), h.start, wide) {
		return dst
	}
	hi, lo := h.win.prf(&h.scheme.passage)
	return append(dst, Print{
		Hi:    hi,
		Lo:    lo,
		Word:  uint32(h.words - PassageWords),
		Start: h.win.first(),
		End:   h.end,
		Wide:  h.win.wideWords(),
	})
}
