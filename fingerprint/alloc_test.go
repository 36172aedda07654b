//go:build !race

package fingerprint

import "testing"

// TestAppendAllocates checks that a stream costs no allocation once dst is
// large enough, whether it comes in deltas, in blocks or whole. The race
// detector allocates on its own.
func TestAppendAllocates(t *testing.T) {
	s := NewScheme(testKey)
	for _, sample := range samples {
		text := sample.text + sample.text
		h := s.Shingler()
		dst := h.Append(nil, text)
		dst = h.Finish(dst)
		for _, size := range []int{5, 101, len(text)} { // 5 and 101 cut words and UTF-8 sequences
			rest := text
			got := testing.AllocsPerRun(500, func() {
				n := min(size, len(rest))
				dst = h.Append(dst[:0], rest[:n])
				if rest = rest[n:]; rest == "" {
					dst = h.Finish(dst)
					rest = text
				}
			})
			if got != 0 {
				t.Errorf("%s: got %v allocations for each Append of %d bytes, want 0", sample.name, got, size)
			}
		}
	}
}
