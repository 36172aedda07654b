package fingerprint

import (
	"math/bits"
	"unicode/utf8"
)

// Words are hashed by SipHash-1-3 over the UTF-8 of their normal form.
//
// The hash has to be keyed, because words come from tenants: whoever could
// find two words of one value, or a word of a very small value, could make
// passages collide or steer which passages are selected. It has to run byte by
// byte in constant memory, because a text may be one word of any length. And
// it has to be quick at five letters, the usual word: one block, one round and
// the three final rounds. SipHash-1-3 is what Rust and Python key their tables
// with for these reasons; prints, which are kept, use the full 2-4 with 128
// bits. dchest/siphash has no 1-3, and its streaming form would cost a buffer
// and an indirect call for each letter.

// sipState holds the four words of SipHash's state.
type sipState struct {
	v0, v1, v2, v3 uint64
}

// newSip returns the state after the key has been taken in.
func newSip(k0, k1 uint64) sipState {
	return sipState{
		v0: k0 ^ 0x736f6d6570736575,
		v1: k1 ^ 0x646f72616e646f6d,
		v2: k0 ^ 0x6c7967656e657261,
		v3: k1 ^ 0x7465646279746573,
	}
}

func (s *sipState) round() {
	s.v0 += s.v1
	s.v2 += s.v3
	s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
	s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
	s.v0 = bits.RotateLeft64(s.v0, 32)
	s.v2 += s.v1
	s.v0 += s.v3
	s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
	s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
	s.v2 = bits.RotateLeft64(s.v2, 32)
}

func (s *sipState) compress(block uint64) {
	s.v3 ^= block
	s.round()
	s.v0 ^= block
}

// wordHash hashes the bytes of one word as they come.
type wordHash struct {
	sip   sipState
	block uint64 // the last n%8 bytes, the first of them lowest
	n     uint   // bytes taken
}

func (w *wordHash) add(b byte) {
	w.block |= uint64(b) << (w.n % 8 * 8)
	w.n++
	if w.n%8 == 0 {
		w.sip.compress(w.block)
		w.block = 0
	}
}

func (w *wordHash) addRune(r rune) {
	var buf [utf8.UTFMax]byte
	for _, b := range buf[:utf8.EncodeRune(buf[:], r)] {
		w.add(b)
	}
}

// sum returns the hash of the bytes taken. It leaves the state as it is.
func (w *wordHash) sum() uint64 {
	s := w.sip
	s.compress(w.block | uint64(w.n)<<56)
	s.v2 ^= 0xff
	s.round()
	s.round()
	s.round()
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}
