package dialect

import (
	"strings"
	"testing"
)

// TestBadShapes sends every dialect JSON of the wrong types: it must say so,
// spoil nothing else, and keep the text out of what it says.
func TestBadShapes(t *testing.T) {
	for _, tt := range []struct {
		path     string
		request  string
		parts    int // that are read all the same
		response string
		text     string // that is read all the same
	}{
		{"/v1/responses", `{"input":7,"instructions":"Rules"}`, 2, `{"object":"response","output":"` + secret + `","status":"completed"}`, ""},
		{"/v1/responses", `{"input":["` + secret + `",{"role":"user","content":"b"}]}`, 2,
			`{"output":["` + secret + `",{"type":"message","content":[{"type":"output_text","text":"ok"}]}]}`, "ok"},
		{"/v1/responses", `{"instructions":{"a":1},"input":"b"}`, 1, `{"output":[{"type":"message","content":[{"type":"output_text","text":12}]}]}`, "12"},
		{"/v1/messages", `{"messages":[{"role":"user","content":{"a":1}}]}`, 0, `{"type":"message","content":[{"type":"text","text":["` + secret + `"]}]}`, `["` + secret + `"]`},
		{"/v1/messages", `{"system":5,"messages":[{"role":"user","content":"b"}]}`, 2, `["` + secret + `"]`, ""},
		{"/v1/messages", `{"messages":"` + secret + `"}`, 1, `{"answer":"` + secret + `"}`, ""},
		{"/v1beta/models/g:generateContent", `{"contents":[{"parts":["` + secret + `",{"text":"b"}]}]}`, 2, `{"candidates":"` + secret + `"}`, ""},
		{"/v1beta/models/g:generateContent", `{"contents":[{"parts":5},{"parts":[{"text":"b"}]}]}`, 1, `{"candidates":[{"content":{"parts":"` + secret + `"}}]}`, ""},
		{"/v1beta/models/g:generateContent", `{"contents":[{"parts":[{"new":"` + secret + `"}]}]}`, 0, `{"candidates":[{"content":{"parts":[{"new":"` + secret + `"},{"text":"ok"}]}}]}`, "ok"},
		{"/v2/chat", `{"messages":[{"role":"user","content":5}]}`, 1, `{"message":{"content":"` + secret + `"}}`, ""},
		{"/v2/chat", `{"documents":"` + secret + `","messages":[{"role":"user","content":"b"}]}`, 1, `{"answer":"` + secret + `"}`, ""},
		{"/v1/chat", `{"chat_history":"` + secret + `","message":"b"}`, 1, `{"generations":"` + secret + `"}`, ""},
		{"/model/m/invoke", `{"messages":"` + secret + `"}`, 1, `{"results":"` + secret + `"}`, ""},
		{"/model/m/converse", `{"messages":[5,{"role":"user","content":[{"text":"b"}]}]}`, 2, `{"output":{"message":{"content":"` + secret + `"}}}`, ""},
		{"/model/m/converse", `{"system":"` + secret + `","messages":[{"role":"user","content":[{"new":1},{"text":"b"}]}]}`, 1,
			`{"output":{"message":{"content":[{"new":"` + secret + `"},{"text":"ok"}]}}}`, "ok"},
		{"/api/chat", `{"messages":[5]}`, 1, `{"message":"` + secret + `","done":true}`, ""},
		{"/generate", `{"text":true}`, 0, `{"text":{"a":1},"meta_info":{}}`, `{"a":1}`},
		{"/generate", `{"text":"a","inputs":5}`, 2, `5`, ""},
		{"/generate_stream", `{"inputs":true}`, 0, `["` + secret + `"]`, ""},
		{"/completion", `{"prompt":true}`, 0, `{"content":{"a":1},"stop":true}`, `{"a":1}`},
		{"/v2/models/m/generate", `{"text_input":true}`, 0, `{"answer":"` + secret + `"}`, ""},
		{"/v2/models/m/infer", `{"inputs":"` + secret + `"}`, 0, `{"outputs":"` + secret + `"}`, ""},
		{"/v1/audio/transcriptions", `{"prompt":true}`, 0, `{"new":"` + secret + `"}`, ""},
		{"/v1/audio/speech", `{"input":true}`, 0, `{"new":"` + secret + `"}`, ""},
		{"/v1/messages/batches", `{"requests":"` + secret + `"}`, 0, `{"new":"` + secret + `"}`, ""},
		{"/v1/projects/p/locations/l/endpoints/1:predict", `{"instances":"` + secret + `"}`, 0, `{"new":"` + secret + `"}`, ""},
		{"/v1/embeddings", `{"input":true}`, 0, `"` + secret + `"`, ""},
	} {
		d := Find(All(), "POST", tt.path)
		p, err := d.Prompt([]byte(tt.request), tt.path, nil)
		if reason(err) != ReasonShape || len(p.Parts) != tt.parts {
			t.Errorf("%s: %s: got %v and %v, want reason %s and %d parts", tt.path, tt.request, err, p.Parts, ReasonShape, tt.parts)
		}
		a := decodeWhole(d.Decoder(p, typed("application/json")), []byte(tt.response))
		if reasonOf(a.Err) != ReasonShape || a.textAt(0, Content) != tt.text {
			t.Errorf("%s: %s: got %v and %q, want reason %s and %q", tt.path, tt.response, a.Err, a.textAt(0, Content), ReasonShape, tt.text)
		}
		for _, s := range []string{err.Error(), a.Err.Error(), a.Info.Error, a.Info.ID, a.Info.FinishReason, a.Info.Queued} {
			if strings.Contains(s, secret) {
				t.Errorf("%s: %q holds text of the body", tt.path, s)
			}
		}
	}
}

// TestShapes tells the shapes of the makers' APIs apart by their fields.
func TestShapes(t *testing.T) {
	for _, tt := range []struct{ body, text string }{
		{`{"choices":[{"index":0,"message":{"content":"chat"}}]}`, "chat"},
		{`{"type":"message","content":[{"type":"text","text":"anthropic"}]}`, "anthropic"},
		{`{"content":[{"type":"text","text":"anthropic"}],"stop_reason":"end_turn"}`, "anthropic"},
		{`{"completion":" legacy","stop_reason":"stop_sequence"}`, " legacy"},
		{`{"candidates":[{"content":{"parts":[{"text":"google"}]}}]}`, "google"},
		{`{"object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"responses"}]}]}`, "responses"},
		{`{"output":[{"type":"message","content":[{"type":"output_text","text":"responses"}]}]}`, "responses"},
		{`{"type":"response.output_text.delta","output_index":0,"delta":"event"}`, "event"},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"event"}}`, "event"},
	} {
		for _, d := range []Dialect{aiGateway{}, vertexRaw{}, workersAI{}, bedrockInvoke{}} {
			a := decodeWhole(d.Decoder(Prompt{}, typed("application/json")), []byte(tt.body))
			if a.Err != nil || a.textAt(0, Content) != tt.text {
				t.Errorf("%s: %s: got %q, %v", d.Name(), tt.body, a.textAt(0, Content), a.Err)
			}
		}
	}
}
