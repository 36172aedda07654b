package fingerprint

import (
	"encoding/binary"
	"testing"

	"github.com/dchest/siphash"
)

// TestWordHash checks both ways to hash a word against a plain SipHash-1-3, and
// that against an independent SipHash-2-4, which differs only in the rounds.
func TestWordHash(t *testing.T) {
	r := newRand(t)
	for n := range 300 {
		msg := make([]byte, n)
		for i := range msg {
			msg[i] = byte(r.Uint32())
		}
		var key [16]byte
		k0, k1 := r.Uint64(), r.Uint64()
		binary.LittleEndian.PutUint64(key[:], k0)
		binary.LittleEndian.PutUint64(key[8:], k1)
		if got, want := modelSip(2, 4, k0, k1, msg), siphash.Hash(k0, k1, msg); got != want {
			t.Fatalf("model of SipHash-2-4 of %d bytes: got %x, want %x", n, got, want)
		}
		k := newWordKey(key)
		want := modelSip(1, 3, k0, k1, msg)
		if n <= 7 {
			var block [8]byte
			copy(block[:], msg)
			block[7] = byte(n)
			row := []uint64{r.Uint64(), binary.LittleEndian.Uint64(block[:]), r.Uint64()}
			if k.each(row); row[1] != want {
				t.Fatalf("hash of a block of %d bytes: got %x, want %x", n, row[1], want)
			}
		}
		for range 8 {
			w := wordHash{block: 1, n: 9, sip: sipState{v0: 1}}
			w.reset()
			for i := 0; i < n; {
				if got, want := w.sum(&k), modelSip(1, 3, k0, k1, msg[:i]); got != want {
					t.Fatalf("hash of %d bytes: got %x, want %x", i, got, want)
				}
				size := min(1+r.IntN(8), n-i)
				var b [8]byte
				copy(b[:], msg[i:i+size])
				w.add(&k, binary.LittleEndian.Uint64(b[:]), uint(size))
				i += size
			}
			if got := w.sum(&k); got != want {
				t.Fatalf("hash of %d bytes: got %x, want %x", n, got, want)
			}
		}
	}
}
