package fingerprint

import (
	"testing"

	"github.com/dchest/siphash"
)

// TestWordHash checks the streaming hash against a plain SipHash-1-3, and that
// against an independent SipHash-2-4, which differs only in the rounds.
func TestWordHash(t *testing.T) {
	r := newRand(t)
	for n := range 300 {
		msg := make([]byte, n)
		for i := range msg {
			msg[i] = byte(r.Uint32())
		}
		k0, k1 := r.Uint64(), r.Uint64()
		if got, want := modelSip(2, 4, k0, k1, msg), siphash.Hash(k0, k1, msg); got != want {
			t.Fatalf("model of SipHash-2-4 of %d bytes: got %x, want %x", n, got, want)
		}
		w := wordHash{sip: newSip(k0, k1)}
		for i, b := range msg {
			if got, want := w.sum(), modelSip(1, 3, k0, k1, msg[:i]); got != want {
				t.Fatalf("hash of %d bytes: got %x, want %x", i, got, want)
			}
			w.add(b)
		}
	}
}
