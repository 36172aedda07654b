package dialect

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// contentTypes are what the fuzzed decoders are told to read.
var contentTypes = []string{"application/json", "text/event-stream", ""}

// fuzzDecoder holds what every decoder owes to any bytes: no panic, text in
// UTF-8 that is no larger than what came, and the same however it is cut. The
// limits are low, so that they are met too.
func fuzzDecoder(f *testing.F, read reader, name string) {
	for _, tr := range transcripts(f) {
		if d := Find(All(), "POST", tr.path); d.Name() == name && tr.response != nil {
			f.Add(tr.response, uint64(len(tr.response)))
		}
	}
	for _, s := range []string{"", "{", "data:", "data: [DONE]", "[[[[", `{"choices":[{"delta":{"content":"\ud83d`, "\xEF\xBB\xBFdata: {}\r\rdata: {}"} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		for _, contentType := range contentTypes {
			small := func() Decoder {
				d := newDecoder(contentType, read)
				switch d := d.(type) {
				case *stream:
					d.events.limit = 512
				case *whole:
					d.limit = 2048
				}
				return d
			}
			want := decodeWhole(small(), data)
			size := 0
			for _, d := range want.Places {
				size += len(d.Text)
				if !utf8.ValidString(d.Text) {
					t.Fatalf("%q: %s is not UTF-8: %q", contentType, d.Channel, d.Text)
				}
			}
			if size > 3*len(data) { // a byte that is no character becomes three
				t.Fatalf("%q: %d bytes of text from %d", contentType, size, len(data))
			}
			for _, most := range []int{1, 20} {
				got := decode(small(), data, func() int { return 1 + rnd.IntN(most) })
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%q, cut into up to %d (-whole +cut):\n%s", contentType, most, diff)
				}
			}
		}
	})
}

func FuzzOpenAIDecoder(f *testing.F) { fuzzDecoder(f, readOpenAI, "openai-chat") }

func FuzzWorkersAIDecoder(f *testing.F) { fuzzDecoder(f, readWorkersAI, "workers-ai") }

// FuzzPrompt holds what every reader of prompts owes to any bytes.
func FuzzPrompt(f *testing.F) {
	for _, tr := range transcripts(f) {
		if tr.request != nil {
			f.Add(tr.request, tr.path)
		}
	}
	f.Add([]byte(`{"prompt":"\ud83d","messages":[{"content":["a`), "/x/%")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		for _, d := range All() {
			d.Match("POST", path)
			p, err := d.Prompt(data, path, nil)
			size := 0
			for _, part := range p.Parts {
				size += len(part.Text)
				if part.Text == "" || !utf8.ValidString(part.Text) {
					t.Fatalf("%s: part %q is empty or not UTF-8", d.Name(), part.Text)
				}
			}
			if size > 3*len(data) {
				t.Fatalf("%s: %d bytes of text from %d", d.Name(), size, len(data))
			}
			if err != nil && reason(err) == "" {
				t.Fatalf("%s: an error without a reason: %v", d.Name(), err)
			}
		}
	})
}

// FuzzMend holds that what is cut off can be read up to the cut.
func FuzzMend(f *testing.F) {
	for _, tr := range transcripts(f) {
		if tr.request != nil {
			f.Add(tr.request, len(tr.request)/2)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		v, why := readJSON(data)
		if why != "" || !v.IsObject() && !v.IsArray() || cut < 1 || cut >= len(data) {
			t.Skip()
		}
		if _, why := readCutJSON(data[:cut]); why == ReasonShape {
			t.Fatalf("cut at %d: %s", cut, why)
		} else if why == ReasonNotJSON && !blank(data[:cut]) {
			t.Fatalf("cut at %d of %q: not mended", cut, data)
		}
	})
}

// blank says whether b holds no bracket that could be closed.
func blank(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}
