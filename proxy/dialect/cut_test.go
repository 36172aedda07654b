package dialect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// body is a response with the dialect that reads it.
type body struct {
	name        string
	dialect     Dialect
	contentType string
	data        []byte
}

// bodies are all responses of the transcripts in testdata.
func bodies(t testing.TB) []body {
	var all []body
	for _, tr := range transcripts(t) {
		if tr.response != nil {
			all = append(all, body{tr.name, Find(All(), "POST", tr.path), tr.contentType, tr.response})
		}
	}
	return all
}

// checkCut decodes b in pieces and compares with what it is in one piece.
func checkCut(t *testing.T, b body, want answer, how string, cut func() int) {
	t.Helper()
	got := decode(b.dialect.Decoder(b.contentType), b.data, cut)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s, cut %s (-whole +cut):\n%s", b.name, how, diff)
	}
}

// TestCutAnywhere cuts every transcript at every position, and into bytes.
func TestCutAnywhere(t *testing.T) {
	for _, b := range bodies(t) {
		for _, contentType := range []string{b.contentType, ""} {
			b.contentType = contentType
			want := decodeWhole(b.dialect.Decoder(contentType), b.data)
			checkCut(t, b, want, "into bytes", func() int { return 1 })
			for i := 1; i < len(b.data); i++ {
				n := i
				checkCut(t, b, want, fmt.Sprintf("at %d", i), func() int {
					n, i := len(b.data), n
					return min(n, i)
				})
			}
		}
	}
}

// TestCutRecorded cuts the recorded samples into bytes and at random.
func TestCutRecorded(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, r := range recordings(t) {
		d := Find(All(), "POST", r.path)
		if d == nil {
			continue
		}
		b := body{r.String(), d, r.contentType, r.response}
		want := decodeWhole(d.Decoder(r.contentType), r.response)
		checkCut(t, b, want, "into bytes", func() int { return 1 })
		for _, most := range []int{7, 97, 1500} {
			checkCut(t, b, want, fmt.Sprintf("into up to %d bytes", most), func() int { return 1 + rnd.IntN(most) })
		}
	}
}

// TestCutStreamEnds ends a stream at every position: what it says then is the
// beginning of what the whole says, and only the whole is not truncated.
func TestCutStreamEnds(t *testing.T) {
	for _, b := range bodies(t) {
		if b.contentType != "text/event-stream" {
			continue
		}
		full := decodeWhole(b.dialect.Decoder(b.contentType), b.data)
		if full.Err != nil || full.Info.Error != "" {
			continue
		}
		for i := range b.data {
			part := decodeWhole(b.dialect.Decoder(b.contentType), b.data[:i])
			for _, d := range part.Places {
				whole, got := full.textAt(d.Choice, d.Channel), part.textAt(d.Choice, d.Channel)
				if d.Choice >= len(full.choices()) { // its index was cut off
					whole = got
					if !slices.ContainsFunc(full.Places, func(d Delta) bool { return strings.Contains(d.Text, got) }) {
						whole = ""
					}
				}
				if !beginsWith(whole, got) {
					t.Fatalf("%s ended at %d: %s of choice %d is %q, which %q does not begin with", b.name, i, d.Channel, d.Choice, got, whole)
				}
			}
			if part.Err == nil && !sameText(full, part) {
				t.Fatalf("%s ended at %d: no error, but text is missing", b.name, i)
			}
		}
	}
}

// beginsWith says whether got begins whole, but for characters at its end that
// the cut left half.
func beginsWith(whole, got string) bool {
	for {
		if len(got) <= len(whole) && whole[:len(got)] == got {
			return true
		}
		const lost = "\uFFFD"
		if len(got) < len(lost) || got[len(got)-len(lost):] != lost {
			return false
		}
		got = got[:len(got)-len(lost)]
	}
}

func sameText(a, b answer) bool { return cmp.Equal(a.Places, b.Places) }
