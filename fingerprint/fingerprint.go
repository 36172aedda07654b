// Package fingerprint turns text into prints: keyed hashes of selected runs of
// words, equal wherever the same words stand in the same order, whatever the
// spacing, case, markup or Unicode form around them.
//
// A [Scheme] holds what is derived from the operator's [Key]. A [Shingler]
// reads one text as it streams in and appends the prints of the passages it
// has selected. Two texts that share a run of [OneIn] words share at least one
// print, under the same key and with the exception that [MinDistinct] states.
//
// A print can't be turned back into words without the key. A holder of the key
// can test guesses: whoever knows a passage word for word can learn whether
// its print is stored.
package fingerprint

const (
	// PassageWords is the number of words in a passage.
	PassageWords = 11

	// OneIn is the number of words of which any shared run holds at least one
	// common print.
	OneIn = 20

	// TwoIn is the number of words of which any shared run holds at least two
	// common prints, at different words. Their values differ unless the run
	// repeats the passage.
	TwoIn = 30

	// MinDistinct is the number of different words below which a passage is
	// skipped: rows of zeros and of one word are alike everywhere. OneIn and
	// TwoIn hold for runs each of whose passages has at least as many.
	MinDistinct = 5
)

// Print is one selected passage of a text.
type Print struct {
	// Hi and Lo are the 128 bits of a keyed pseudo-random function of the
	// passage's words.
	Hi, Lo uint64

	// Word is the index of the passage's first word in the stream.
	Word uint32

	// Start and End are the bytes [Start,End) of the stream's text that the
	// passage spans. Like Word they count modulo 2^32.
	Start, End uint32

	// Wide is how many of the words are single code points of Han, kana, Thai,
	// Lao, Khmer or Myanmar, or Hangul syllables: 0 in plain English,
	// PassageWords in plain Chinese.
	Wide uint8
}
