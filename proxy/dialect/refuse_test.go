package dialect

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestRefuse has every dialect write its own errors, and read them again: a
// client's library must know them for errors, and the message is in them.
func TestRefuse(t *testing.T) {
	const message = "withheld: \"text\" of\nanother <tenant>"
	quoted, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	quoted = bytes.ReplaceAll(bytes.ReplaceAll(quoted, []byte(`\u003c`), []byte("<")), []byte(`\u003e`), []byte(">"))
	// The beginning of a stream of each dialect, whole events of it.
	begun := map[string][]struct{ contentType, events, text string }{
		"workers-ai":         {{"text/event-stream", "data: {\"response\":\"Hi\",\"p\":\"x\"}\n\n", "Hi"}},
		"ai-gateway":         {{"text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n", "Hi"}},
		"openai-chat":        {{"text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n", "Hi"}},
		"openai-completions": {{"text/event-stream; charset=utf-8", "data: {\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}\n\n", "Hi"}},
		"openai-responses":   {{"text/event-stream", "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hi\"}\n\n", "Hi"}},
		"openai-audio":       {{"text/event-stream", "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hi\"}\n\n", "Hi"}},
		"openai-speech":      {{"text/event-stream", "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AA\"}\n\n", ""}},
		"anthropic-messages": {{"text/event-stream", "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n", "Hi"}},
		"anthropic-batches":  {{"application/x-jsonl", "{\"custom_id\":\"1\",\"result\":{\"type\":\"succeeded\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}}}\n", "Hi"}},
		"anthropic-complete": {{"text/event-stream", "data: {\"type\":\"completion\",\"completion\":\"Hi\"}\n\n", "Hi"}},
		"gemini": {
			{"text/event-stream", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]}}]}\n\n", "Hi"},
			{"application/json", "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]}}]}", "Hi"},
		},
		"vertex-raw":       {{"text/event-stream", "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n", "Hi"}},
		"bedrock-invoke":   {{"application/vnd.amazon.eventstream", string(framesOf(t, []byte(`chunk {"generation":"Hi"}`))), "Hi"}},
		"bedrock-converse": {{"application/vnd.amazon.eventstream", string(framesOf(t, []byte(`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"Hi"}}`))), "Hi"}},
		"ollama":           {{"application/x-ndjson", "{\"model\":\"m\",\"response\":\"Hi\",\"done\":false}\n", "Hi"}},
		"triton-generate":  {{"text/event-stream", "data: {\"model_name\":\"m\",\"text_output\":\"Hi\"}\n\n", "Hi"}},
		"cohere-v2":        {{"text/event-stream", "data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"Hi\"}}}}\n\n", "Hi"}},
		"cohere-v1": {
			{"application/stream+json", "{\"is_finished\":false,\"event_type\":\"text-generation\",\"text\":\"Hi\"}\n", "Hi"},
			{"text/event-stream", "data: {\"is_finished\":false,\"event_type\":\"text-generation\",\"text\":\"Hi\"}\n\n", "Hi"},
		},
		"sagemaker": {
			{"text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n", "Hi"},
			{"application/vnd.amazon.eventstream", string(framesOf(t, []byte(`part "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n"`))), "Hi"},
		},
		"generate":  {{"text/event-stream", "data: {\"text\":\"Hi\",\"meta_info\":{}}\n\n", "Hi"}},
		"tgi":       {{"text/event-stream", "data:{\"token\":{\"text\":\"Hi\",\"special\":false}}\n\n", "Hi"}},
		"llama.cpp": {{"text/event-stream", "data: {\"content\":\"Hi\",\"stop\":false}\n\n", "Hi"}},
		"generic":   {{"text/event-stream", "data: {\"answer\":\"Hi\"}\n\n", "Hi"}},
	}
	noStream := []string{"vertex-predict", "ollama-embed", "kserve-infer", "rerank", "embeddings", "tokenizer"}
	for _, d := range All() {
		r, ok := d.(Refuser)
		if !ok {
			t.Errorf("%s writes no errors", d.Name())
			continue
		}
		for _, status := range []int{400, 429, 502} {
			body := r.Error(status, message, nil)
			if !json.Valid(body) || !bytes.Contains(body, quoted) {
				t.Errorf("%s: status %d: got %s", d.Name(), status, body)
			}
			a := decodeWhole(d.Decoder(Prompt{}, typed("application/json")), body)
			if a.Info.Error == "" || len(a.Places) > 0 || a.Err != nil {
				t.Errorf("%s: its own error %s is read as %+v", d.Name(), body, a)
			}
			if strings.Contains(a.Info.Error, "withheld") {
				t.Errorf("%s: the message is taken for a code", d.Name())
			}
		}
		if len(begun[d.Name()]) == 0 {
			found := false
			for _, name := range noStream {
				found = found || name == d.Name()
			}
			if !found {
				t.Errorf("%s: no stream of it is tested", d.Name())
			}
		}
		for _, s := range begun[d.Name()] {
			h := typed(s.contentType)
			end := r.Error(502, message, h)
			if !bytes.Contains(end, quoted) {
				t.Errorf("%s, %s: got %q", d.Name(), s.contentType, end)
			}
			for _, n := range []int{1, 1 << 20} {
				a := decode(d.Decoder(Prompt{}, h), append([]byte(s.events), end...), func() int { return n })
				if a.Info.Error == "" || a.textAt(0, Content) != s.text || len(a.Places) > 1 || a.Err != nil {
					t.Errorf("%s, %s: its own error %q is read as %+v", d.Name(), s.contentType, end, a)
				}
			}
		}
		if d.Name() != "gemini" {
			if got := r.Error(502, message, typed("application/json")); got != nil {
				t.Errorf("%s: a JSON body that has begun is ended by %q", d.Name(), got)
			}
		}
		if got := r.Error(502, message, typed("text/plain")); got != nil {
			t.Errorf("%s: a body of text is ended by %q", d.Name(), got)
		}
	}
	passedOn := Find(All(), "POST", "/v1/0123456789abcdef0123456789abcdef/gw/anthropic/v1/messages")
	if got := passedOn.(Refuser).Error(502, "x", nil); !bytes.Contains(got, []byte("api_error")) {
		t.Errorf("behind the gateway: got %s", got)
	}
}
