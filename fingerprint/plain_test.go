package fingerprint

import (
	"math/rand/v2"
	"testing"
)

// The plain reader takes a whole text one code point after the other, which is
// how the normal form is defined (fold.go), and hashes whole words. It shares
// the fold table with the package, as the model does not, and knows where words
// lie, which the model can't.

// plainReader collects the words of a text.
type plainReader struct {
	words []modelWord
	in    wordKind
	word  []byte
	start int
	end   int
}

// plainWords returns the words of a text and their bytes.
func plainWords(text string) []modelWord {
	var p plainReader
	for i, c := range text {
		end := len(text)
		for j := range text[i:] {
			if j > 0 {
				end = i + j
				break
			}
		}
		p.take(c, i, end)
	}
	p.finish()
	return p.words
}

func (p *plainReader) take(c rune, start, end int) {
	entry := foldEntry(c)
	switch kind := foldKind(entry); kind {
	case kindTransparent:
		return
	case kindExpansion:
		for _, c := range expansion(entry) {
			p.take(c, start, end)
		}
		return
	case kindSyllable:
		for _, c := range foldText(c) {
			p.take(c, start, end)
		}
		return
	case kindSeparator:
		p.finish()
		return
	case kindRun:
		p.letter(runWord, p.in == runWord, start)
	case kindWide:
		p.letter(wideWord, false, start)
	case kindLead:
		p.letter(leadWord, false, start)
	case kindVowel:
		p.letter(vowelWord, p.in == leadWord, start)
	case kindTrail:
		p.letter(trailWord, p.in == vowelWord, start)
	}
	p.word = append(p.word, string(folded(c, entry))...)
	p.end = end
}

// letter begins a word unless the one before goes on.
func (p *plainReader) letter(in wordKind, goesOn bool, start int) {
	if !goesOn {
		p.finish()
		p.start = start
	}
	p.in = in
}

func (p *plainReader) finish() {
	if p.in != noWord {
		p.words = append(p.words, modelWord{
			text: string(p.word), wide: p.in != runWord, start: uint32(p.start), end: uint32(p.end),
		})
	}
	p.in, p.word = noWord, nil
}

// readWord is a word as a shingler has it in its window.
type readWord struct {
	hash       uint64
	start, end uint32
	wide       bool
}

// plainRead returns the words of a text as a shingler should have them.
func plainRead(t testing.TB, text string) []readWord {
	t.Helper()
	words := plainWords(text)
	var read []readWord
	for i, h := range modelHashes(t, testKey, words) {
		w := words[i]
		read = append(read, readWord{h, w.start, w.end, w.wide})
	}
	return read
}

// read returns the words that a shingler finds in a text that comes in pieces,
// with selection left out.
func read(s *Scheme, pieces ...string) []readWord {
	h := s.Shingler()
	var words []readWord
	for _, piece := range pieces {
		words = append(words, readPiece(h, piece)...)
	}
	h.nheld = 0
	h.separate()
	return append(words, readFresh(h)...)
}

// readPiece returns the words that a piece of a text completes.
func readPiece(h *Shingler, text string) []readWord {
	var words []readWord
	for i := h.resume(text); ; {
		i = h.words(text, i)
		words = append(words, readFresh(h)...)
		if i == len(text) {
			h.pos += uint32(len(text))
			return words
		}
	}
}

// readFresh takes the fresh words out of the window.
func readFresh(h *Shingler) []readWord {
	w := &h.win
	var words []readWord
	for ; w.fresh < w.n; w.fresh++ {
		words = append(words, readWord{
			w.hash[w.fresh], w.edge[2*w.fresh], w.edge[2*w.fresh+1], w.wideFrom(w.fresh)&1 != 0,
		})
	}
	if w.n > windowFull {
		w.shift()
	}
	return words
}

// wordHashes returns the hashes of the words that a shingler finds in text.
func wordHashes(s *Scheme, text string) []uint64 {
	var hashes []uint64
	for _, w := range read(s, text) {
		hashes = append(hashes, w.hash)
	}
	return hashes
}

// pieces cuts a text at random.
func pieces(r *rand.Rand, text string, longest int) []string {
	var list []string
	for len(text) > 0 {
		n := min(r.IntN(longest+1), len(text))
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}
