package fingerprint

import (
	"crypto/aes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// The model derives words and prints from whole texts in the plainest way that
// the package's documentation allows, sharing no code with it: x/text
// normalises the whole text at once, every window is searched in full, hashes
// run over whole words.

var seedFlag = flag.Uint64("seed", 0, "seed of the property tests; 0 draws one")

// newRand returns a random source whose seed is logged.
func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var testKey = Key{1, 2, 3, 4, 5, 6, 7, 8, 9}

// modelWord is a word of the normal form and, where they are known, its bytes.
type modelWord struct {
	text       string
	wide       bool
	start, end uint32
}

var modelWideScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// modelJapanese are letters of Japanese text that Unicode calls common.
const modelJapanese = "ー〆〱〲〳〴〵〼"

// modelNormal decomposes and folds a whole text.
func modelNormal(text string) string {
	var kept strings.Builder
	for _, c := range norm.NFKD.String(string([]rune(text))) {
		if !unicode.IsMark(c) {
			kept.WriteRune(c)
		}
	}
	s := strings.ReplaceAll(strings.ToLower(kept.String()), "ı", "i")
	return norm.NFKD.String(cases.Fold().String(s))
}

func modelTransparent(c rune) bool {
	return unicode.IsMark(c) || unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, c)
}

// modelWords splits a text into the words of its normal form.
func modelWords(text string) []modelWord {
	var (
		words []modelWord
		word  strings.Builder
		last  rune // last kept code point of the word, if Hangul
		wide  bool
	)
	end := func() {
		if word.Len() > 0 {
			words = append(words, modelWord{text: word.String(), wide: wide})
			word.Reset()
		}
		last, wide = 0, false
	}
	for _, c := range modelNormal(text) {
		switch {
		case modelTransparent(c):
		case !unicode.IsLetter(c) && !unicode.IsNumber(c):
			end()
		case unicode.Is(unicode.Hangul, c):
			vowel, trail := modelVowel(c), modelTrail(c)
			lead := last != 0 && !modelVowel(last) && !modelTrail(last)
			if goesOn := vowel && lead || trail && modelVowel(last); !goesOn {
				end()
			}
			word.WriteRune(c)
			last, wide = c, true
		case unicode.In(c, modelWideScripts...) && !unicode.In(c, unicode.Nd, unicode.No) || strings.ContainsRune(modelJapanese, c):
			end()
			word.WriteRune(c)
			wide = true
			end()
		default:
			if wide {
				end()
			}
			word.WriteRune(c)
		}
	}
	end()
	return words
}

func modelVowel(c rune) bool { return c >= 0x1161 && c <= 0x11A7 || c >= 0xD7B0 && c <= 0xD7C6 }
func modelTrail(c rune) bool { return c >= 0x11A8 && c <= 0x11FF || c >= 0xD7CB && c <= 0xD7FB }

// modelSubkey derives the subkey of a use, which is the end of its label.
func modelSubkey(t testing.TB, k Key, use string, n int) []byte {
	t.Helper()
	b, err := hkdf.Key(sha256.New, k[:], nil, "auditproxy/fingerprint/"+use, n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// modelSip is SipHash-c-d over a whole message, after its paper.
func modelSip(c, d int, k0, k1 uint64, msg []byte) uint64 {
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[1] = bits.RotateLeft64(v[1], 13)
			v[1] ^= v[0]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[3]
			v[3] = bits.RotateLeft64(v[3], 16)
			v[3] ^= v[2]
			v[0] += v[3]
			v[3] = bits.RotateLeft64(v[3], 21)
			v[3] ^= v[0]
			v[2] += v[1]
			v[1] = bits.RotateLeft64(v[1], 17)
			v[1] ^= v[2]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	padded := append([]byte{}, msg...)
	for len(padded)%8 != 7 {
		padded = append(padded, 0)
	}
	padded = append(padded, byte(len(msg)))
	for ; len(padded) > 0; padded = padded[8:] {
		m := binary.LittleEndian.Uint64(padded)
		v[3] ^= m
		rounds(c)
		v[0] ^= m
	}
	v[2] ^= 0xff
	rounds(d)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// modelHashes hashes words under k.
func modelHashes(t testing.TB, k Key, words []modelWord) []uint64 {
	t.Helper()
	b := modelSubkey(t, k, "word/1", 16)
	k0, k1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	hashes := make([]uint64, len(words))
	for i, w := range words {
		hashes[i] = modelSip(1, 3, k0, k1, []byte(w.text))
	}
	return hashes
}

// modelValue returns the 128 bits of a passage of eleven word hashes: NH, then
// AES, in big numbers.
func modelValue(t testing.TB, subkey []byte, hashes []uint64) (hi, lo uint64) {
	t.Helper()
	two64 := new(big.Int).Lsh(big.NewInt(1), 64)
	keyed := func(i int, hash uint64) *big.Int {
		x := new(big.Int).SetUint64(binary.LittleEndian.Uint64(subkey[8*i:]))
		x.Add(x, new(big.Int).SetUint64(hash))
		return x.Mod(x, two64)
	}
	hashes = append(slices.Clone(hashes), 0)
	sum := new(big.Int)
	for i := 0; i < 12; i += 2 {
		sum.Add(sum, new(big.Int).Mul(keyed(i, hashes[i]), keyed(i+1, hashes[i+1])))
	}
	sum.Mod(sum, new(big.Int).Mul(two64, two64))
	cipher, err := aes.NewCipher(subkey[96:112])
	if err != nil {
		t.Fatal(err)
	}
	var value [16]byte
	cipher.Encrypt(value[:], sum.FillBytes(value[:]))
	return binary.BigEndian.Uint64(value[:8]), binary.BigEndian.Uint64(value[8:])
}

// modelSelect returns the prints of a row of words.
func modelSelect(t testing.TB, k Key, words []modelWord) []Print {
	t.Helper()
	hashes := modelHashes(t, k, words)
	subkey := modelSubkey(t, k, "passage/2", 112)
	var prints []Print
	for i := 0; i+11 <= len(words); i++ {
		run := hashes[i : i+11]
		if !modelSelected(run) {
			continue
		}
		p := Print{Word: uint32(i), Start: words[i].start, End: words[i+10].end}
		for _, w := range words[i : i+11] {
			if w.wide {
				p.Wide++
			}
		}
		p.Hi, p.Lo = modelValue(t, subkey, run)
		prints = append(prints, p)
	}
	return prints
}

// modelSelected reports whether a run of eleven word hashes is a passage.
func modelSelected(run []uint64) bool {
	smallest := 0
	distinct := map[uint64]bool{}
	for j, h := range run {
		if h <= run[smallest] {
			smallest = j
		}
		distinct[h] = true
	}
	return (smallest == 0 || smallest == 10) && len(distinct) >= 5
}

// modelPrints returns the prints of a text, without the byte positions.
func modelPrints(t testing.TB, k Key, text string) []Print {
	t.Helper()
	return modelSelect(t, k, modelWords(text))
}

// prints runs a whole text through a shingler.
func prints(s *Scheme, text string) []Print {
	h := s.Shingler()
	return h.Finish(h.Append(nil, text))
}

// unplaced returns prints without their byte positions, which depend on the
// form of a text and not on its words.
func unplaced(ps []Print) []Print {
	var out []Print
	for _, p := range ps {
		p.Start, p.End = 0, 0
		out = append(out, p)
	}
	return out
}

// printsDiff returns how got differs from want, or nothing; it spares package
// cmp's walk where they are equal.
func printsDiff(want, got []Print) string {
	if slices.Equal(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// checkGuarantee fails if a run of 20 or 30 words whose passages all hold five
// different words has fewer than one or two prints.
func checkGuarantee(t testing.TB, words []modelWord, ps []Print) {
	t.Helper()
	rich := make([]bool, len(words)) // passage i has 5 different words
	for i := 0; i+11 <= len(words); i++ {
		distinct := map[string]bool{}
		for _, w := range words[i : i+11] {
			distinct[w.text] = true
		}
		rich[i] = len(distinct) >= 5
	}
	at := make([]int, len(words)+1) // prints that begin before word i
	for _, p := range ps {
		at[p.Word+1]++
	}
	for i := range words {
		at[i+1] += at[i]
	}
	all := func(from, to int) bool {
		for _, ok := range rich[from:to] {
			if !ok {
				return false
			}
		}
		return true
	}
	for _, law := range []struct{ words, least int }{{20, 1}, {30, 2}} {
		for i := 0; i+law.words <= len(words); i++ {
			last := i + law.words - 11 + 1
			if got := at[last] - at[i]; got < law.least && all(i, last) {
				t.Fatalf("words %d to %d hold %d prints, want at least %d", i, i+law.words-1, got, law.least)
			}
		}
	}
}
