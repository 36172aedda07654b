package fingerprint

import (
	"crypto/cipher"
	"encoding/binary"
	"math/bits"
)

// The value of a passage is AES-128 of a keyed sum of its eleven word hashes.
//
// The sum is NH, the universal hash of UMAC (Black, Halevi, Krawczyk, Krovetz
// and Rogaway 1999), with words of 64 bits: to each hash a key of its own is
// added modulo 2^64, neighbours are multiplied to 128 bits, and the products
// are added modulo 2^128. Two different rows of hashes, whoever chose them,
// have one sum for at most one key in 2^64. Two words have one hash as rarely, so
// this no more than doubles a risk that is there anyway. The eleventh hash is
// multiplied with the twelfth key.
//
// AES makes it what may be kept: a pseudo-random function of the sum, hence of
// the passage, that tells nothing of the words to whoever lacks the key. A
// cipher never gives two sums one value, where a function would by chance; that
// can't be noticed before some 2^64 prints.
//
// One passage costs 13 ns, or 2 to 3 a word. SipHash-2-4 of the eleven hashes
// took 40, of the sum 21, both held up by its rotations. AES is quick where the
// processor has it and crypto/aes uses it (amd64, arm64, ppc64, s390x). Where
// not, it takes 45 ns more and reading is slower by a quarter.

// passageKey keys the values of passages. It is safe for concurrent use.
type passageKey struct {
	nh  [PassageWords + 1]uint64
	aes cipher.Block
}

// The lengths of a passage's subkey: the keys of NH, then that of AES.
const (
	nhBytes         = 8 * (PassageWords + 1)
	passageKeyBytes = nhBytes + 16
)

func newPassageKey(nh [nhBytes]byte, seal cipher.Block) passageKey {
	k := passageKey{aes: seal}
	for i := range k.nh {
		k.nh[i] = binary.LittleEndian.Uint64(nh[8*i:])
	}
	return k
}

// sum returns the value of a passage. It overwrites block, which is the
// caller's because what is handed to a cipher.Block is allocated.
func (k *passageKey) sum(words *[PassageWords]uint64, block *[16]byte) (hi, lo uint64) {
	h, l := bits.Mul64(words[PassageWords-1]+k.nh[PassageWords-1], k.nh[PassageWords])
	for i := 0; i < PassageWords-1; i += 2 {
		ph, pl := bits.Mul64(words[i]+k.nh[i], words[i+1]+k.nh[i+1])
		var carry uint64
		l, carry = bits.Add64(l, pl, 0)
		h, _ = bits.Add64(h, ph, carry)
	}
	binary.BigEndian.PutUint64(block[:], h)
	binary.BigEndian.PutUint64(block[8:], l)
	k.aes.Encrypt(block[:], block[:])
	return binary.BigEndian.Uint64(block[:]), binary.BigEndian.Uint64(block[8:])
}
