package fingerprint

//go:generate go run ./internal/foldgen -o fold_table.go

// The normal form is decided one code point at a time, so that a stream can be
// cut anywhere and nothing has to be looked at twice.
//
// Each code point is decomposed (NFKD), stripped of marks and of what has no
// width, and case-folded in full; what is left says what the code point is:
//
//	separator    ends the word before it: all that is no letter or number
//	transparent  as if it were not there: marks, zero-width, bidi, soft hyphen
//	run          a letter or digit, part of a word as long as such follow
//	wide         a word by itself: Han, kana, Thai, Lao, Khmer, Myanmar
//	lead, vowel, trail  the parts of a Hangul syllable, which is one word
//	syllable     a Hangul syllable in one code point
//	expansion    several of the above: ﬁ, ½, ㍿, ㎏
//
// Decomposing and dropping loses accents (résumé is resume) and the vowel signs
// of Indic scripts, and gains that no form of a text needs look-ahead: the four
// Unicode forms, full-width letters and text retyped without accents give the
// same words. Marks all drop, so the canonical reordering that decides their
// order in a decomposed text can't matter. Composed and decomposed Hangul meet
// in the jamo: a word begins at each lead, at a vowel without lead and at a
// trail without vowel.
//
// Text without spaces is taken by the code point because there is no telling
// words apart without a dictionary; digits and Latin letters amid it are runs.
//
// The table is frozen with the Unicode version it was made from: a later one
// gives new letters new prints, so prints kept from before stay good for all
// older text. It has two stages: foldIndex names a block of 32 entries for
// each 32 code points, foldBlocks holds the 585 blocks that differ (88 KB in
// all). An entry holds the kind in its low four bits. Above them, run, wide and
// jamo have the signed distance to the folded code point, which makes all
// unchanged code points alike and the blocks few; an expansion has its length
// (six bits) and place in foldExpansions, whose code points fold to themselves.
//
// One thing is added to Unicode's folding: the dotless i is an i, since its
// capital is.

// The kinds of code point, in the order that foldgen writes.
const (
	kindSeparator int32 = iota
	kindTransparent
	kindRun
	kindWide
	kindLead
	kindVowel
	kindTrail
	kindSyllable
	kindExpansion
)

const (
	foldKindBits   = 4
	foldLengthBits = 6
	foldBlockBits  = 5
)

// foldEntry returns the table's entry for r.
func foldEntry(r rune) int32 {
	if uint32(r) < foldLimit {
		block := foldIndex[uint32(r)>>foldBlockBits]
		return foldBlocks[uint32(block)<<foldBlockBits|uint32(r)&(1<<foldBlockBits-1)]
	}
	// Plane 14 opens with tags and variation selectors and keeps the rest of
	// its first 4096 code points for their like.
	if r>>12 == 0xE0 {
		return kindTransparent
	}
	return kindSeparator
}

func foldKind(entry int32) int32 { return entry & (1<<foldKindBits - 1) }

// folded returns what an entry of one code point makes of r.
func folded(r rune, entry int32) rune { return r + entry>>foldKindBits }

// expansion returns what an entry of kindExpansion stands for.
func expansion(entry int32) string {
	at := entry >> (foldLengthBits + foldKindBits)
	n := entry >> foldKindBits & (1<<foldLengthBits - 1)
	return foldExpansions[at : at+n]
}
