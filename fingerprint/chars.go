package fingerprint

import (
	"math/bits"
	"unicode/utf8"
)

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

// chars reads text[i:] character by character, until it is at its end, the
// window is full, or a character separates words where blocks may go on. It
// returns where it stopped.
func (h *Shingler) chars(text string, i int) int {
	for i < len(text) && h.win.n <= windowFull {
		c := text[i]
		if foldASCII[c] != 0 {
			i = h.run(text, i)
			continue
		}
		at := h.pos + uint32(i)
		if c < utf8.RuneSelf {
			h.separate()
			i++
			if i+blockReach <= len(text) && text[i] < wideLead {
				return i
			}
			continue
		}
		if c >= wideLead && i+4 <= len(text) {
			v := load32(text, i)
			if r, n := decode(v); n != 0 {
				i += n
				entry := foldEntry(rune(r))
				if foldKind(entry) != kindWide {
					h.take(rune(r), entry, at, at+uint32(n))
					continue
				}
				// The usual character of such a text, without a word hash.
				h.separate()
				b, size := uint64(v&0xFFFFFF), uint(3)
				if entry != kindWide {
					b, size = encode(folded(rune(r), entry))
				}
				h.win.add(h.scheme.word.sip.last(b|uint64(size)<<56), at, at+uint32(n), 1)
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if n == 1 && !utf8.FullRuneInString(text[i:]) {
			h.nheld = copy(h.held[:], text[i:])
			return len(text)
		}
		h.take(r, foldEntry(r), at, at+uint32(n))
		i += n
	}
	return i
}

// resume takes the characters that began in an earlier piece and returns how
// many bytes of text belong to them.
func (h *Shingler) resume(text string) int {
	if h.nheld == 0 {
		return 0
	}
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
			return len(text)
		}
		at := h.pos + uint32(i) - uint32(held)
		h.take(r, foldEntry(r), at, at+uint32(size))
		i += size
	}
	return i - held
}

// run takes the ASCII letters and digits at text[i:] and returns where they
// end.
func (h *Shingler) run(text string, i int) int {
	if h.in != runWord {
		h.begin(runWord, h.pos+uint32(i))
	}
	for {
		v := loadUpTo64(text, i)
		n := bits.TrailingZeros64(wordBytes(v)^tops) / 8
		if n > 0 {
			h.hash.add(&h.scheme.word, (v|caseBits)&lowBytes(n), uint(n))
			i += n
		}
		if n < 8 {
			h.end = h.pos + uint32(i)
			return i
		}
	}
}

// take reads one code point, whose entry in the fold table is given and which
// stands at the bytes [start,end).
func (h *Shingler) take(r rune, entry int32, start, end uint32) {
	k := &h.scheme.word
	switch foldKind(entry) {
	case kindTransparent:
	case kindRun:
		if h.in != runWord {
			h.begin(runWord, start)
		}
		h.hash.addRune(k, folded(r, entry))
		h.end = end
	case kindWide:
		h.begin(wideWord, start)
		h.hash.addRune(k, folded(r, entry))
		h.end = end
		h.separate()
	case kindLead:
		h.begin(leadWord, start)
		h.hash.addRune(k, folded(r, entry))
		h.end = end
	case kindVowel:
		if h.in != leadWord {
			h.begin(vowelWord, start)
		}
		h.in = vowelWord
		h.hash.addRune(k, folded(r, entry))
		h.end = end
	case kindTrail:
		if h.in != vowelWord {
			h.begin(trailWord, start)
		}
		h.in = trailWord
		h.hash.addRune(k, folded(r, entry))
		h.end = end
	case kindSyllable:
		h.syllable(r, start, end)
	case kindExpansion:
		for _, c := range expansion(entry) {
			h.take(c, foldEntry(c), start, end)
		}
	default:
		h.separate()
	}
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
func (h *Shingler) syllable(r rune, start, end uint32) {
	k := &h.scheme.word
	r -= syllableBase
	h.begin(vowelWord, start)
	h.hash.addRune(k, leadBase+r/(vowelCount*trailCount))
	h.hash.addRune(k, vowelBase+r/trailCount%vowelCount)
	if t := r % trailCount; t != 0 {
		h.hash.addRune(k, trailBase+t)
		h.in = trailWord
	}
	h.end = end
}

// begin ends the word before and starts one at the byte start.
func (h *Shingler) begin(in wordKind, start uint32) {
	h.separate()
	h.in = in
	h.hash.reset()
	h.start = start
}

// separate ends the unfinished word, if there is one.
func (h *Shingler) separate() {
	if h.in != noWord {
		h.complete()
	}
}

// complete ends the unfinished word.
func (h *Shingler) complete() {
	var wide uint64
	if h.in != runWord {
		wide = 1
	}
	h.in = noWord
	h.win.add(h.hash.sum(&h.scheme.word), h.start, h.end, wide)
}
