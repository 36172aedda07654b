//go:build !race

package fingerprint

import "testing"

// TestAppendAllocates checks that a stream costs no allocation once dst is
// large enough. The race detector allocates on its own.
func TestAppendAllocates(t *testing.T) {
	s := NewScheme(testKey)
	for _, sample := range samples {
		h := s.Shingler()
		dst := h.Append(nil, sample.text)
		dst = h.Finish(dst)
		rest := sample.text
		got := testing.AllocsPerRun(1000, func() {
			n := min(5, len(rest)) // cuts words and UTF-8 sequences
			dst = h.Append(dst[:0], rest[:n])
			if rest = rest[n:]; rest == "" {
				dst = h.Finish(dst)
				rest = sample.text
			}
		})
		if got != 0 {
			t.Errorf("%s: got %v allocations for each Append, want 0", sample.name, got)
		}
	}
}
