// Command foldgen writes the fold table of package fingerprint from the
// Unicode data of golang.org/x/text. Run it with go generate in that package;
// the same Unicode version always gives the same bytes.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// The kinds, in the order in which package fingerprint declares them.
const (
	kindSeparator = iota
	kindTransparent
	kindRun
	kindWide
	kindLead
	kindVowel
	kindTrail
	kindSyllable
	kindExpansion
)

// The packing of an entry and the size of a block, in bits.
const (
	kindBits   = 4
	lengthBits = 6
	blockBits  = 5
)

// The table ends before plane 14, whose first 4096 code points are ignorable
// and are answered in code.
const plane14 = 0xE0000

func main() {
	out := flag.String("o", "fold_table.go", "file to write")
	flag.Parse()
	src, err := generate()
	if err == nil {
		err = os.WriteFile(*out, src, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "foldgen:", err)
		os.Exit(1)
	}
}

// folder folds code points; it holds x/text's case folder.
type folder struct {
	fold cases.Caser
}

// expand returns what r becomes: kept code points, with one space for each
// stretch of separators. An empty result means that r is transparent.
func (f folder) expand(r rune) []rune {
	var kept []rune
	for _, c := range norm.NFKD.String(f.fold.String(lower(dropMarks(norm.NFKD.String(string(r)))))) {
		switch kindOf(c) {
		case kindTransparent:
		case kindSeparator:
			if len(kept) == 0 || kept[len(kept)-1] != ' ' {
				kept = append(kept, ' ')
			}
		default:
			kept = append(kept, c)
		}
	}
	return kept
}

// dropMarks takes marks out before case is folded, since the iota below Greek
// vowels is a mark that folds to a letter.
func dropMarks(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsMark(c) {
			return -1
		}
		return c
	}, s)
}

// lower prepares s for case folding. It undoes two surprises: x/text's folder
// exchanges the two cases of Cherokee, so both must reach it as one; and the
// dotless i upper-cases to I, so it has to meet the dotted one.
func lower(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "ı", "i")
}

// kindOf classifies one code point of a decomposed and folded text.
func kindOf(c rune) int32 {
	switch {
	case unicode.In(c, unicode.M, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point):
		return kindTransparent
	case !unicode.In(c, unicode.L, unicode.N):
		return kindSeparator
	case unicode.Is(unicode.Hangul, c):
		return jamo(c)
	case wide(c):
		return kindWide
	}
	return kindRun
}

// wide reports whether c, a letter or number, is a word by itself. The letters
// of U+3000 to U+30FF that Unicode gives to no single script (the long vowel
// mark above all) belong to Japanese text.
func wide(c rune) bool {
	if unicode.In(c, unicode.Nd, unicode.No) {
		return false
	}
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		c >= 0x3000 && c <= 0x30FF && unicode.Is(unicode.Common, c)
}

// jamo gives the place of a conjoining jamo in its syllable. A decomposed text
// holds no other Hangul letters.
func jamo(c rune) int32 {
	switch {
	case c < 0x1160, c >= 0xA960 && c < 0xA980:
		return kindLead
	case c < 0x11A8, c >= 0xD7B0 && c < 0xD7CB:
		return kindVowel
	}
	return kindTrail
}

// table is the two-stage table before printing.
type table struct {
	index      []uint16
	blocks     []int32
	expansions string
}

func build() (table, error) {
	var (
		t    table
		f    = folder{cases.Fold()}
		ops  []int32
		used int
	)
	for r := rune(0); r < plane14; r++ {
		op, err := t.entry(r, f.expand(r))
		if err != nil {
			return table{}, err
		}
		ops = append(ops, op)
		if op != kindSeparator {
			used = len(ops)
		}
	}
	const size = 1 << blockBits
	seen := map[[size]int32]uint16{}
	for block := range slices.Chunk(ops[:(used+size-1)/size*size], size) {
		key := [size]int32(block)
		at, ok := seen[key]
		if !ok {
			at = uint16(len(seen))
			seen[key] = at
			t.blocks = append(t.blocks, block...)
		}
		t.index = append(t.index, at)
	}
	return t, nil
}

// entry packs what r becomes, adding to the expansions where it is more than
// one code point.
func (t *table) entry(r rune, kept []rune) (int32, error) {
	switch {
	case r >= 0xAC00 && r <= 0xD7A3:
		return kindSyllable, nil
	case len(kept) == 0:
		return kindTransparent, nil
	case len(kept) == 1:
		kind := kindOf(kept[0])
		if kind == kindSeparator {
			return kindSeparator, nil
		}
		return (kept[0]-r)<<kindBits | kind, nil
	}
	text := string(kept)
	if len(text) >= 1<<lengthBits {
		return 0, fmt.Errorf("%U: expansion of %d bytes does not fit", r, len(text))
	}
	at := strings.Index(t.expansions, text)
	if at < 0 {
		at = len(t.expansions)
		t.expansions += text
	}
	return int32(at)<<(lengthBits+kindBits) | int32(len(text))<<kindBits | kindExpansion, nil
}

// generate returns the Go source of the table.
func generate() ([]byte, error) {
	if unicode.Version != norm.Version {
		return nil, fmt.Errorf("unicode %s but norm %s", unicode.Version, norm.Version)
	}
	t, err := build()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated by foldgen from Unicode %s; DO NOT EDIT.\n\npackage fingerprint\n\n", unicode.Version)
	fmt.Fprintf(&b, "// foldUnicode is the Unicode version of the table.\nconst foldUnicode = %q\n\n", unicode.Version)
	fmt.Fprintf(&b, "// foldLimit is the first code point beyond the table.\nconst foldLimit = %#x\n\n", len(t.index)<<blockBits)
	fmt.Fprint(&b, "// foldASCII gives the folded form of the letters and digits among bytes, and 0\n// for all other bytes.\nvar foldASCII = [256]byte{\n")
	for c := range unicode.MaxASCII {
		if s := string(rune(c)); kindOf(rune(c)) == kindRun {
			fmt.Fprintf(&b, "%q: %q,", c, lower(s)[0])
			if c == '9' || c == 'Z' || c == 'z' {
				b.WriteByte('\n')
			}
		}
	}
	b.WriteString("}\n\n// foldIndex gives the number of each code point's block in foldBlocks.\n")
	numbers(&b, "foldIndex", "uint16", t.index)
	b.WriteString("\n// foldBlocks holds the entries, block after block.\n")
	numbers(&b, "foldBlocks", "int32", t.blocks)
	b.WriteString("\n// foldExpansions holds what single code points become where that is more than\n// one code point.\nconst foldExpansions = \"\" +\n")
	for line := range slices.Chunk([]rune(t.expansions), 64) {
		fmt.Fprintf(&b, "%+q +\n", string(line))
	}
	b.WriteString("\"\"\n")
	return format.Source(b.Bytes())
}

func numbers[T uint16 | int32](b *bytes.Buffer, name, kind string, values []T) {
	fmt.Fprintf(b, "var %s = [%d]%s{\n", name, len(values), kind)
	for line := range slices.Chunk(values, 32) {
		for _, v := range line {
			fmt.Fprintf(b, "%d,", v)
		}
		b.WriteByte('\n')
	}
	b.WriteString("}\n")
}
