package dialect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// contentTypes are what the fuzzed decoders are told to read.
var contentTypes = []string{"application/json", "text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream", "text/plain", ""}

// tighten sets limits that small bodies meet too.
func tighten(d Decoder) {
	switch d := d.(type) {
	case *stream:
		d.events.limit = 512
	case *whole:
		d.limit = 2048
	case *lines:
		d.limit = 512
	case *elements:
		d.limit = 512
	case *frames:
		d.limit = 1024
	case *tensors:
		d.limit = 2048
	case stepDecoder:
		tighten(d.Decoder)
	case *unwrapper:
		d.inner.events.limit, d.frames.limit = 512, 1024
	case *sniffer, *unread, *plain: // what a sniffer finds is limited under its own type
	default:
		panic(fmt.Sprintf("no limit is known for %T", d))
	}
}

// fuzzDecoder holds what every decoder owes to any bytes: no panic, text in
// UTF-8 that is no larger than what came, and the same however it is cut. The
// limits are low, so that they are met too.
func fuzzDecoder(f *testing.F, names ...string) {
	var dialects []Dialect
	for _, d := range All() {
		if slices.Contains(names, d.Name()) {
			dialects = append(dialects, d)
		}
	}
	if len(dialects) != len(names) {
		f.Fatalf("of %s only %d are dialects", names, len(dialects))
	}
	for _, tr := range transcripts(f) {
		if d := tr.dialect(); d != nil && slices.Contains(names, d.Name()) && tr.response != nil {
			f.Add(tr.response, tr.request, uint64(len(tr.response)))
		}
	}
	for _, s := range []string{"", "{", "data:", "data: [DONE]", "[[[[", `{"choices":[{"delta":{"content":"\ud83d`, "\xEF\xBB\xBFdata: {}\r\rdata: {}", "[{},{}"} {
		f.Add([]byte(s), []byte("{}"), uint64(1))
	}
	f.Fuzz(func(t *testing.T, data, request []byte, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		for _, d := range dialects {
			p, _ := d.Prompt(request, "/", nil)
			for _, contentType := range contentTypes {
				checkDecoder(t, d, p, typed(contentType), data, rnd)
			}
		}
	})
}

func checkDecoder(t *testing.T, d Dialect, p Prompt, h header, data []byte, rnd *rand.Rand) {
	small := func() Decoder {
		d := d.Decoder(p, h)
		tighten(d)
		return d
	}
	want := decodeWhole(small(), data)
	size := 0
	for _, d := range want.Places {
		size += len(d.Text)
		if !utf8.ValidString(d.Text) {
			t.Fatalf("%s: %s is not UTF-8: %q", h, d.Channel, d.Text)
		}
	}
	// A byte that is no character becomes three. What comes twice and differs
	// is given twice, and each event may hold all text so far.
	if size > 3*len(data)+2048 {
		t.Fatalf("%s: %d bytes of text from %d", h, size, len(data))
	}
	for _, most := range []int{1, 20} {
		got := decode(small(), data, func() int { return 1 + rnd.IntN(most) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s, %s, cut into up to %d (-whole +cut):\n%s", d.Name(), h, most, diff)
		}
	}
}

func FuzzOpenAI(f *testing.F) { fuzzDecoder(f, "openai-chat", "openai-completions") }

func FuzzWorkersAI(f *testing.F) { fuzzDecoder(f, "workers-ai") }

func FuzzAIGateway(f *testing.F) { fuzzDecoder(f, "ai-gateway") }

func FuzzResponses(f *testing.F) { fuzzDecoder(f, "openai-responses") }

func FuzzAudio(f *testing.F) { fuzzDecoder(f, "openai-audio", "openai-speech") }

func FuzzAnthropic(f *testing.F) {
	fuzzDecoder(f, "anthropic-messages", "anthropic-batches", "anthropic-complete")
}

func FuzzGoogle(f *testing.F) { fuzzDecoder(f, "gemini", "vertex-raw", "vertex-predict") }

func FuzzBedrock(f *testing.F) { fuzzDecoder(f, "bedrock-invoke", "bedrock-converse") }

func FuzzCohere(f *testing.F) { fuzzDecoder(f, "cohere-v1", "cohere-v2") }

func FuzzOllama(f *testing.F) { fuzzDecoder(f, "ollama", "ollama-embed") }

func FuzzGenerate(f *testing.F) { fuzzDecoder(f, "generate", "tgi", "sagemaker") }

func FuzzLlamaCPP(f *testing.F) { fuzzDecoder(f, "llama.cpp", "tokenizer") }

func FuzzKServe(f *testing.F) { fuzzDecoder(f, "triton-generate", "kserve-infer") }

func FuzzNumbers(f *testing.F) { fuzzDecoder(f, "embeddings", "rerank") }

func FuzzGeneric(f *testing.F) { fuzzDecoder(f, "generic") }

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
