package dialect

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// body is a response with the dialect that reads it.
type body struct {
	name    string
	dialect Dialect
	prompt  Prompt
	header  header
	data    []byte
}

func (b body) decoder() Decoder { return b.dialect.Decoder(b.prompt, b.header) }

// bodies are all responses of the transcripts in testdata.
func bodies(t testing.TB) []body {
	var all []body
	for _, tr := range transcripts(t) {
		if tr.response != nil {
			d := tr.dialect()
			all = append(all, body{tr.name, d, tr.prompt(d), tr.header, tr.response})
		}
	}
	return all
}

// checkCut decodes b in pieces and compares with what it is in one piece.
func checkCut(t *testing.T, b body, want answer, how string, cut func() int) {
	t.Helper()
	got := decode(b.decoder(), b.data, cut)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s, cut %s (-whole +cut):\n%s", b.name, how, diff)
	}
}

// TestCutAnywhere cuts every transcript at every position, and into bytes,
// under its own type and under none.
func TestCutAnywhere(t *testing.T) {
	for _, b := range bodies(t) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for _, contentType := range []string{b.header["Content-Type"], ""} {
				b := b
				b.header = maps.Clone(b.header)
				b.header["Content-Type"] = contentType
				checkCuts(t, b)
			}
		})
	}
}

// checkCuts cuts b into bytes, at every position alone if it is short, and at
// every position together with others that lie far off.
func checkCuts(t *testing.T, b body) {
	t.Helper()
	want := decodeWhole(b.decoder(), b.data)
	checkCut(t, b, want, "into bytes", func() int { return 1 })
	apart, alone := 499, 2000
	if raceEnabled {
		apart, alone = 61, 200
	}
	if len(b.data) <= alone {
		for i := 1; i < len(b.data); i++ {
			checkCut(t, b, want, fmt.Sprintf("at %d", i), inTwo(i, len(b.data)))
		}
		return
	}
	for i := range apart {
		first := true
		checkCut(t, b, want, fmt.Sprintf("at %d and every %d bytes behind it", i, apart), func() int {
			if first && i > 0 {
				first = false
				return i
			}
			return apart
		})
	}
}

// inTwo cuts n bytes into two pieces, of which the first has i bytes.
func inTwo(i, n int) func() int {
	next := i
	return func() int {
		size := next
		next = n
		return size
	}
}

// TestCutRecorded cuts the recorded samples everywhere, and at random.
func TestCutRecorded(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, r := range recordings(t) {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 0))
			b := body{r.String(), r.dialect(), r.prompt(), r.header(), r.response}
			want := decodeWhole(b.decoder(), r.response)
			for _, most := range []int{7, 97, 1500} {
				checkCut(t, b, want, fmt.Sprintf("into up to %d bytes", most), func() int { return 1 + rnd.IntN(most) })
			}
			checkCuts(t, b)
		})
	}
}

// endless are the dialects whose streams never say which event is the last.
var endless = []string{"gemini", "triton-generate", "generic"}

// unmarked are the transcripts of servers that leave the end marker out.
var unmarked = []string{"openai_cumulative_message.txtar", "openai_stream_of_one.txtar", "openai_surrogates.txtar", "workersai_openai_frames.txtar"}

// TestCutStreamEnds ends a stream at every position: what it says then is the
// beginning of what the whole says, and only the whole is not truncated.
func TestCutStreamEnds(t *testing.T) {
	for _, b := range bodies(t) {
		if b.header["Content-Type"] != "text/event-stream" || b.prompt.asked.echo != nil {
			continue // a cut echo is given for what it is
		}
		full := decodeWhole(b.decoder(), b.data)
		if full.Err != nil || full.Info.Error != "" {
			continue
		}
		marked := !slices.Contains(endless, b.dialect.Name()) && !slices.Contains(unmarked, b.name)
		if full.Info.Complete != marked {
			t.Errorf("%s: complete %t, want %t", b.name, full.Info.Complete, marked)
		}
		for i := range b.data {
			part := decodeWhole(b.decoder(), b.data[:i])
			for _, d := range part.Places {
				got := d.Text
				if d.Channel == ToolArgs {
					got = strings.TrimRight(got, `"}]`) // with which a cut object was closed
				}
				if b.dialect.Name() == "tgi" { // its tokens say behind the text that they are none
					got = strings.TrimRight(got, "</s>")
				}
				if !slices.ContainsFunc(full.Places, func(f Delta) bool {
					if f.Choice == d.Choice && f.Channel == d.Channel && f.Block == d.Block {
						return beginsWith(f.Text, got)
					}
					return strings.Contains(f.Text, strings.TrimRight(got, "\uFFFD")) // what says where it belongs was cut off
				}) {
					t.Fatalf("%s ended at %d: %+v is of no text in %+v", b.name, i, d, full.Places)
				}
			}
			if part.Info.Complete && !sameText(full, part) {
				t.Fatalf("%s ended at %d: complete, but text is missing", b.name, i)
			}
			if part.Err == nil && !sameText(full, part) && !slices.Contains(endless, b.dialect.Name()) {
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

// TestComplete ends lines, frames and arrays at every position: only what is
// said to be complete has all of the text.
func TestComplete(t *testing.T) {
	complete := map[string]bool{}
	for _, b := range bodies(t) {
		kind := b.header["Content-Type"]
		form := ""
		switch {
		case isLines(kind):
			form = "lines"
		case strings.HasSuffix(kind, "eventstream"):
			form = "frames"
		case isJSON(kind):
			form = "JSON"
		default:
			continue
		}
		full := decodeWhole(b.decoder(), b.data)
		if full.Err != nil || full.Info.Error != "" {
			continue
		}
		complete[form] = complete[form] || full.Info.Complete
		for i := range b.data {
			if part := decodeWhole(b.decoder(), b.data[:i]); part.Info.Complete && !sameText(full, part) {
				t.Fatalf("%s ended at %d: complete, but text is missing", b.name, i)
			}
		}
	}
	for _, form := range []string{"lines", "frames", "JSON"} {
		if !complete[form] {
			t.Errorf("%s: none is complete", form)
		}
	}
}
