package dialect

import (
	"strings"
	"testing"
)

// chunk is an event as OpenAI sends it for one token.
const chunk = `data: {"id":"chatcmpl-DuLdCoxuLDs8HRMlOuz0Bi4wgi4XJ","object":"chat.completion.chunk","created":1782321890,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_86f87dc6f1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"kGEVHK9STFy0L"}` + "\n\n"

func benchmarkEvent(b *testing.B, d Decoder, event string) {
	data := []byte(event)
	var dst []Delta
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if dst = d.Append(dst[:0], data); len(dst) != 1 {
			b.Fatalf("got %d deltas, want 1", len(dst))
		}
	}
}

func BenchmarkEventOpenAI(b *testing.B) {
	benchmarkEvent(b, openAIChat{}.Decoder(Prompt{}, typed("text/event-stream")), chunk)
}

func BenchmarkEventOpenAIEscaped(b *testing.B) {
	benchmarkEvent(b, openAIChat{}.Decoder(Prompt{}, typed("text/event-stream")), strings.Replace(chunk, " word", `\n\nline`, 1))
}

func BenchmarkEventWorkersAI(b *testing.B) {
	benchmarkEvent(b, workersAI{}.Decoder(Prompt{}, typed("text/event-stream")), `data: {"response":" word","p":"abdefghijklmnopqrstuvwxyz0123456789"}`+"\n\n")
}

// BenchmarkEventBytes is the worst cut: one byte at a time.
func BenchmarkEventBytes(b *testing.B) {
	d := openAIChat{}.Decoder(Prompt{}, typed("text/event-stream"))
	data := []byte(chunk)
	var dst []Delta
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		dst = dst[:0]
		for i := range data {
			dst = d.Append(dst, data[i:i+1])
		}
	}
}

func benchmarkPrompt(b *testing.B, text string) {
	body := []byte(`{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"` + text + `"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if p, err := (openAIChat{}).Prompt(body, "/v1/chat/completions", nil); err != nil || len(p.Parts) != 2 {
			b.Fatalf("got %d parts, %v", len(p.Parts), err)
		}
	}
}

func BenchmarkPrompt4MB(b *testing.B) { benchmarkPrompt(b, strings.Repeat("forty-two ", 400_000)) }

func BenchmarkPrompt4MBEscaped(b *testing.B) {
	benchmarkPrompt(b, strings.Repeat(`a line of some text\n`, 200_000))
}

func BenchmarkMatch(b *testing.B) {
	all := All()
	b.ReportAllocs()
	for b.Loop() {
		if Find(all, "POST", "/client/v4/accounts/023e105f4ecef8ad9ca31a8372d0c353/ai/v1/completions") == nil {
			b.Fatal("no dialect")
		}
	}
}
