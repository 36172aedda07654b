package fingerprint

import (
	"encoding/binary"
	"math/bits"
)

// Words are hashed by SipHash-1-3 over the UTF-8 of their normal form.
//
// The hash has to be keyed, because words come from tenants: whoever could
// find two words of one value, or a word of a very small value, could make
// passages collide or steer which passages are selected. It has to run in
// constant memory, because a text may be one word of any length. And it has to
// be quick at five letters, the usual word: one block, one round and the three
// final rounds. SipHash-1-3 is what Rust and Python key their tables with for
// these reasons.
//
// Two ways lead to the same hash. A word of at most seven bytes is one block,
// its length on top, and blocks are hashed by the row (each): nothing branches,
// so the processor works on several words at once and is held up by its two
// rotate units alone, at some ten cycles a word. Any other word goes through a
// wordHash, up to eight bytes at a time.
//
// What was not done: hashing by folded multiplications of the keyed block, as
// wyhash does, was measured to save 3 of the 15 ns that an English word costs
// in all. It is as good against a tenant who can only guess, but it is no
// pseudo-random function, and a tenant may do better than guess: it chooses the
// words, and learns from answers that block mode withholds which passages have
// met, hence which words collide and which are the smallest. Nothing shows that
// the key is far from there. Eight lanes of AVX-512, which rotates too, would
// save as much and change no hash. dchest/siphash has no 1-3, and its streaming
// form would cost a buffer and an indirect call for each letter.

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

// sipRound has the words of a state one by one, so that they stay in registers.
func sipRound(v0, v1, v2, v3 uint64) (w0, w1, w2, w3 uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v2 += v1
	v0 = bits.RotateLeft64(v0, 32) + v3
	return v0, bits.RotateLeft64(v1, 17) ^ v2, bits.RotateLeft64(v2, 32), bits.RotateLeft64(v3, 21) ^ v0
}

func (s *sipState) compress(block uint64) {
	v0, v1, v2, v3 := sipRound(s.v0, s.v1, s.v2, s.v3^block)
	s.v0, s.v1, s.v2, s.v3 = v0^block, v1, v2, v3
}

// last takes the last block and returns the hash. It leaves the state as it is.
func (s *sipState) last(block uint64) uint64 {
	v0, v1, v2, v3 := sipRound(s.v0, s.v1, s.v2, s.v3^block)
	v0, v1, v2, v3 = sipRound(v0^block, v1, v2^0xff, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

// wordKey keys the hash of words.
type wordKey struct {
	sip sipState

	// What the first round makes of v0 and v1 whatever the block: v0 once
	// rotated, v1 once rotated, and v1 rotated twice.
	v0, v1, v1Twice uint64
}

func newWordKey(key [16]byte) wordKey {
	s := newSip(binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:]))
	v0 := s.v0 + s.v1
	v1 := bits.RotateLeft64(s.v1, 13) ^ v0
	return wordKey{sip: s, v0: bits.RotateLeft64(v0, 32), v1: v1, v1Twice: bits.RotateLeft64(v1, 17)}
}

// each puts hashes in the place of blocks, each of which is a whole word.
func (k *wordKey) each(words []uint64) {
	k0, k1, k1Twice, k2, k3 := k.v0, k.v1, k.v1Twice, k.sip.v2, k.sip.v3
	for i, block := range words {
		v3 := k3 ^ block
		v2 := k2 + v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v2 += k1
		v0 := k0 + v3
		v0, v1, v2, v3 := sipRound(v0^block, k1Twice^v2, bits.RotateLeft64(v2, 32)^0xff, bits.RotateLeft64(v3, 21)^v0)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		words[i] = v0 ^ v1 ^ v2 ^ v3
	}
}

// wordHash hashes the bytes of one word as they come.
type wordHash struct {
	sip   sipState // after the first n/8 blocks, if n is at least 8
	block uint64   // the last n%8 bytes, the first of them lowest
	n     uint     // bytes taken
}

// reset makes w ready for a new word.
func (w *wordHash) reset() { w.block, w.n = 0, 0 }

// add takes the n lowest bytes of b, at most eight; the others are zero.
func (w *wordHash) add(k *wordKey, b uint64, n uint) {
	at := w.n % 8
	w.block |= b << (8 * at)
	w.n += n
	if at+n < 8 {
		return
	}
	if w.n < 16 {
		w.sip = k.sip
	}
	w.sip.compress(w.block)
	w.block = b >> (64 - 8*at)
}

// addRune takes one code point.
func (w *wordHash) addRune(k *wordKey, r rune) {
	b, n := encode(r)
	w.add(k, b, n)
}

// sum returns the hash of the bytes taken. It leaves w as it is.
func (w *wordHash) sum(k *wordKey) uint64 {
	s := &w.sip
	if w.n < 8 {
		s = &k.sip
	}
	return s.last(w.block | uint64(w.n)<<56)
}
