package dialect

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// secret stands for the text of a tenant: errors must never hold it.
const secret = "sesame-oil"

func TestBadPrompts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		body   string
		want   Reason
		detail string // of the error
		parts  []Part
	}{
		{"empty", ``, ReasonNotJSON, "not JSON", nil},
		{"blank", " \n", ReasonNotJSON, "not JSON", nil},
		{"text", secret, ReasonNotJSON, "not JSON", nil},
		{"form", `a=` + secret, ReasonNotJSON, "not JSON", nil},
		{"trailing comma", `{"prompt":"` + secret + `",}`, ReasonNotJSON, "not JSON", nil},
		{"two values", `{"prompt":"` + secret + `"}{}`, ReasonNotJSON, "not JSON", nil},
		{"control character", "{\"prompt\":\"a\nb\"}", ReasonNotJSON, "not JSON", nil},
		{"cut", `{"model":"m","prompt":"so f`, ReasonTruncated, "ended inside its JSON", []Part{{User, "so f"}}},
		{"cut in the history", `{"messages":[{"role":"user","content":"ask"},{"role":"assistant","content":"ans`, ReasonTruncated,
			"ended inside its JSON", []Part{{User, "ask"}, {Assistant, "ans"}}},
		{"cut before the role", `{"messages":[{"content":"ask","role":"user"},{"content":"ans`, ReasonTruncated,
			"ended inside its JSON", []Part{{User, "ask"}, {Assistant, "ans"}}},
		{"null", `null`, ReasonShape, "the body is null", nil},
		{"array", `["` + secret + `"]`, ReasonShape, "the body is an array", nil},
		{"string", `"` + secret + `"`, ReasonShape, "the body is a string", nil},
		{"number", `7`, ReasonShape, "the body is a number", nil},
		{"messages a string", `{"messages":"hi"}`, ReasonShape, "messages is a string", []Part{{User, "hi"}}},
		{"messages an object", `{"messages":{"role":"user"}}`, ReasonShape, "messages is an object", nil},
		{"a message a string", `{"messages":["hi",{"role":"user","content":"ho"}]}`, ReasonShape,
			"messages[0] is a string", []Part{{User, "hi"}, {User, "ho"}}},
		{"a message null", `{"messages":[null,{"role":"user","content":"ho"}]}`, ReasonShape, "messages[0] is null", []Part{{User, "ho"}}},
		{"role a number", `{"messages":[{"role":5,"content":"ho"}]}`, ReasonShape, "messages[0].role is a number", []Part{{User, "ho"}}},
		{"content a number", `{"messages":[{"role":"user","content":12}]}`, ReasonShape, "messages[0].content is a number", []Part{{User, "12"}}},
		{"content a boolean", `{"messages":[{"role":"user","content":true}]}`, ReasonShape, "messages[0].content is a boolean", nil},
		{"content an object", `{"messages":[{"role":"user","content":{"text":"ho"}}]}`, ReasonShape,
			"messages[0].content is an object", []Part{{User, "ho"}}},
		{"text a number", `{"messages":[{"role":"user","content":[{"type":"text","text":1},{"type":"text","text":"ho"}]}]}`, ReasonShape,
			"messages[0].content[].text is a number", []Part{{User, "1"}, {User, "ho"}}},
		{"part of unknown type", `{"messages":[{"role":"user","content":[{"type":"new","new":"` + secret + `"}]}]}`, ReasonShape,
			"a content part has no text", nil},
		{"tool calls an object", `{"messages":[{"role":"assistant","tool_calls":{"name":"f"}}]}`, ReasonShape,
			"messages[0].tool_calls is an object", nil},
		{"tools a string", `{"tools":"` + secret + `","prompt":"p"}`, ReasonShape, "tools is a string", []Part{{User, "p"}}},
		{"a tool a string", `{"tools":["x"],"prompt":"p"}`, ReasonShape, "tools[0] is a string", []Part{{User, "p"}}},
		{"suffix a list", `{"prompt":"p","suffix":["` + secret + `"]}`, ReasonShape, "suffix is an array", []Part{{User, "p"}}},
		{"prediction a string", `{"prediction":"` + secret + `"}`, ReasonShape, "prediction is a string", nil},
		{"documents a string", `{"prompt":"p","documents":"` + secret + `"}`, ReasonShape, "documents is a string", []Part{{User, "p"}}},
		{"a document a number", `{"prompt":"p","documents":["d",{"text":"e"},3]}`, ReasonShape, "documents[2] is a number",
			[]Part{{User, "p"}, {User, "d"}, {User, "e"}, {User, "3"}}},
		{"a call a string", `{"messages":[{"role":"assistant","tool_calls":["` + secret + `",{"function":{"name":"f"}}]}]}`, ReasonShape,
			"messages[0].tool_calls[] is a string", []Part{{Assistant, "f"}}},
		{"thinking", `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},
			{"type":"thinking","thinking":"b"},{"type":"text","text":"c"},"d"]}]}`, "", "",
			[]Part{{Assistant, "a"}, {Assistant, "b"}, {Assistant, "c"}, {Assistant, "d"}}},
		{"a stored prompt", `{"prompt":{"id":"pmpt_1"}}`, "", "", nil},
		{"all optional fields null", `{"messages":null,"prompt":null,"suffix":null,"tools":null,"functions":null,"response_format":null,
			"prediction":null,"documents":null,"instructions":null,"stream":null,"model":null}`, "", "", nil},
		{"null inside", `{"messages":[{"role":"assistant","content":null,"tool_calls":null,"function_call":null,"refusal":null,"audio":null,
			"reasoning_details":null}]}`, "", "", nil},
		{"invalid UTF-8", "{\"prompt\":\"a\xff\xfeb\"}", "", "", []Part{{User, "a\uFFFD\uFFFDb"}}},
		{"empty strings", `{"prompt":"","messages":[{"role":"user","content":""}]}`, "", "", nil},
		{"keys with escapes", `{"pr\u006fmpt":"p"}`, "", "", []Part{{User, "p"}}},
		{"byte order mark", "\xEF\xBB\xBF{\"prompt\":\"p\"}", "", "", []Part{{User, "p"}}},
	} {
		for _, d := range []Dialect{openAIChat{}, openAICompletions{}, workersAI{}, sageMaker{}, textGeneration{}, ollama{}} {
			p, err := d.Prompt([]byte(tt.body), "/v1/chat/completions", nil)
			checkError(t, d.Name()+", "+tt.name, err, tt.want, "request body", tt.detail)
			if diff := cmp.Diff(tt.parts, p.Parts); diff != "" {
				t.Errorf("%s, %s: parts (-want +got):\n%s", d.Name(), tt.name, diff)
			}
		}
	}
}

// TestBadRuns reads what only Workers AI takes.
func TestBadRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		body   string
		want   Reason
		detail string
		unseen []Reason
		parts  []Part
	}{
		{"batch a string", `{"requests":"` + secret + `"}`, ReasonShape, "requests is a string", nil, nil},
		{"a run a string", `{"requests":["` + secret + `",{"prompt":"p"}]}`, ReasonShape, "requests[0] is a string", nil, []Part{{User, "p"}}},
		{"batch in a batch", `{"requests":[{"requests":[{"prompt":"p"}]}]}`, ReasonShape, "a batch inside a batch", nil, nil},
		{"input a number", `{"input":7}`, ReasonShape, "input is a number", nil, []Part{{User, "7"}}},
		{"input a string", `{"input":"i","instructions":"s"}`, "", "", nil, []Part{{User, "i"}, {System, "s"}}},
		{"embeddings", `{"text":["a","b"]}`, "", "", nil, []Part{{User, "a"}, {User, "b"}}},
		{"an image", `{"prompt":"p","image":[137,80,78]}`, "", "", []Reason{ReasonMedia}, []Part{{User, "p"}}},
		{"tool output in parts", `{"input":[{"type":"function_call_output","output":[{"type":"input_text","text":"o"}]}]}`, "", "", nil, []Part{{Tool, "o"}}},
		{"a reference", `{"input":[{"type":"item_reference","id":"i"}]}`, "", "", []Reason{ReasonStored}, nil},
		{"envelope", `{"model":"m","input":{"prompt":"p"},"stream":true}`, "", "", nil, []Part{{User, "p"}}},
	} {
		p, err := workersAI{}.Prompt([]byte(tt.body), "/accounts/1/ai/run", nil)
		checkError(t, tt.name, err, tt.want, "request body", tt.detail)
		if diff := cmp.Diff(tt.parts, p.Parts); diff != "" {
			t.Errorf("%s: parts (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.unseen, p.Unseen); diff != "" {
			t.Errorf("%s: unseen (-want +got):\n%s", tt.name, diff)
		}
	}
}

func checkError(t *testing.T, name string, err error, want Reason, object, detail string) {
	t.Helper()
	if reason(err) != want {
		t.Errorf("%s: got error %v, want reason %q", name, err, want)
		return
	}
	if err == nil {
		return
	}
	e := errorIn(err)
	if e.Object != object || e.Detail != detail {
		t.Errorf("%s: got error %q, want %q", name, e, object+": "+detail)
	}
	if strings.Contains(e.Error(), secret) {
		t.Errorf("%s: error %q holds text of the body", name, e)
	}
}

func TestPromptMediaType(t *testing.T) {
	for _, tt := range []struct {
		contentType, body string
		want              Reason
		unseen            []Reason
	}{
		{"application/json", "x", ReasonNotJSON, nil},
		{"application/vnd.api+json", "x", ReasonNotJSON, nil},
		{"", "x", ReasonNotJSON, nil},
		{"text/plain", "x", ReasonNotJSON, nil},
		{"text/plain", `{"prompt":"p"}`, "", nil},
		{"audio/wav", "RIFF", "", []Reason{ReasonMedia}},
		{"application/octet-stream", "\x00\x01", "", []Reason{ReasonMedia}},
		{"multipart/form-data; boundary=x", "--x", ReasonMIME, []Reason{ReasonMedia}},
		{"application/x-protobuf", "\x0a", ReasonMIME, nil},
	} {
		p, err := workersAI{}.Prompt([]byte(tt.body), "", header{"Content-Type": tt.contentType})
		if reason(err) != tt.want || !cmp.Equal(p.Unseen, tt.unseen) {
			t.Errorf("%s: got %v, unseen %v, want %q, %v", tt.contentType, err, p.Unseen, tt.want, tt.unseen)
		}
	}
}

func TestBadAnswers(t *testing.T) {
	chat, native := Dialect(openAIChat{}), Dialect(workersAI{})
	for _, tt := range []struct {
		name    string
		dialect Dialect
		body    string
		want    Reason
		detail  string
		text    string // content of choice 0
	}{
		{"empty", chat, ``, ReasonTruncated, "empty", ""},
		{"html", chat, `<html>` + secret, ReasonNotJSON, "not JSON", ""},
		{"cut", chat, `{"choices":[{"index":0,"message":{"content":"so f`, ReasonTruncated, "ended inside its JSON", "so f"},
		{"null", chat, `null`, ReasonShape, "the body is null", ""},
		{"string", chat, `"` + secret + `"`, ReasonShape, "the body is a string", ""},
		{"list", chat, `["` + secret + `"]`, ReasonShape, "an element of the body is a string", ""},
		{"error in a list", chat, `[{"error":{"code":400,"message":"` + secret + `"}}]`, "", "", ""},
		{"unknown object", chat, `{"answer":"` + secret + `"}`, ReasonShape, "neither choices, usage nor an error", ""},
		{"choices an object", chat, `{"choices":{"0":"` + secret + `"}}`, ReasonShape, "choices is an object", ""},
		{"a choice a string", chat, `{"choices":["` + secret + `"]}`, ReasonShape, "choices[] is a string", ""},
		{"message a string", chat, `{"choices":[{"message":"hi"}]}`, ReasonShape, "choices[].message is a string", "hi"},
		{"delta a string", chat, `{"choices":[{"delta":"hi"}]}`, ReasonShape, "choices[].delta is a string", "hi"},
		{"content a number", chat, `{"choices":[{"message":{"content":12}}]}`, ReasonShape, "content is a number", "12"},
		{"content an object", chat, `{"choices":[{"message":{"content":{"type":"text","text":"hi"}}}]}`, ReasonShape, "content is an object", "hi"},
		{"content of nothing known", chat, `{"choices":[{"message":{"content":[{"type":"new","x":"` + secret + `"}]}}]}`, ReasonShape,
			"content[] has no text", ""},
		{"index a string", chat, `{"choices":[{"index":"0","message":{"content":"hi"}}]}`, ReasonShape, "choices[].index is a string", "hi"},
		{"index negative", chat, `{"choices":[{"index":-4,"message":{"content":"hi"}}]}`, ReasonShape, "choices[].index is a number", "hi"},
		{"tool calls a string", chat, `{"choices":[{"message":{"content":"hi","tool_calls":"` + secret + `"}}]}`, ReasonShape,
			"tool_calls is a string", "hi"},
		{"usage a string", chat, `{"choices":[{"message":{"content":"hi"}}],"usage":"` + secret + `"}`, "", "", "hi"},
		{"everything null", chat, `{"id":null,"model":null,"error":null,"usage":null,"choices":[{"index":null,"delta":null,"finish_reason":null,
			"message":{"content":null,"refusal":null,"tool_calls":null,"function_call":null,"audio":null,"images":null,"reasoning":null,
			"reasoning_content":null,"reasoning_details":null}}]}`, "", "", ""},
		{"invalid UTF-8", chat, "{\"choices\":[{\"message\":{\"content\":\"a\xffb\xe6\xbc\"}}]}", "", "", "a\uFFFDb\uFFFD\uFFFD"},

		{"parts of all kinds", chat, `{"choices":[{"message":{"content":["a",{"text":"b"},{"type":"thinking","thinking":"t"},{"refusal":"r"},
			{"type":"image_url","image_url":{}},{"type":"reference","reference_ids":[1]}]}}]}`, "", "", "ab"},
		{"native batch of odd answers", native, `{"result":{"responses":[{"result":"hi"},{"errors":[{"code":1}]}]}}`, "", "", "hi"},
		{"native batch without a result", native, `{"result":{"responses":[{"id":0}]}}`, ReasonShape, "an answer of the batch has no result", ""},
		{"native null", native, `null`, ReasonShape, "the body is null", ""},
		{"native list", native, `[]`, ReasonShape, "the body is an array", ""},
		{"native result null", native, `{"result":null,"success":true,"errors":[]}`, ReasonShape, "neither a result nor an error", ""},
		{"native run failed", native, `{"state":"Failed","result":null,"error":{"code":"x1","message":"` + secret + `"}}`, "", "", ""},
		{"native result a string", native, `{"result":"hi","success":true}`, "", "", "hi"},
		{"native result of nothing known", native, `{"result":{"answer":"` + secret + `"}}`, ReasonShape,
			"no field that is known to hold a result", ""},
		{"native response true", native, `{"response":true}`, "", "", "true"},
		{"native response of ranks", native, `{"result":{"response":[{"id":0,"score":0.7}]}}`, "", "", ""},
		{"native response of strings", native, `{"result":{"response":["hi","ho"]}}`, "", "", "hiho"},
		{"native embeddings", native, `{"result":{"shape":[1,2],"data":[[0.1,0.2]],"pooling":"cls"}}`, "", "", ""},
		{"native output a string", native, `{"result":{"output":"` + secret + `"}}`, ReasonShape, "output is a string", ""},
		{"native responses event", native, `{"type":"response.created","response":{"instructions":"` + secret + `"}}`, "", "", ""},
	} {
		a := decodeWhole(tt.dialect.Decoder(Prompt{}, typed("application/json")), []byte(tt.body))
		var err error
		if a.Err != nil {
			err = a.Err
		}
		checkError(t, tt.name, err, tt.want, "response body", tt.detail)
		if got := a.textAt(0, Content); got != tt.text {
			t.Errorf("%s: got content %q, want %q", tt.name, got, tt.text)
		}
		if strings.Contains(a.Info.Error+a.Info.ID+a.Info.Model+a.Info.FinishReason, secret) {
			t.Errorf("%s: info %+v holds text of the body", tt.name, a.Info)
		}
	}
}

// TestBadStreams holds that one bad event spoils no other.
func TestBadStreams(t *testing.T) {
	const good = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"good\"}}]}\n\n"
	const done = "data: [DONE]\n\n"
	for _, tt := range []struct {
		name   string
		stream string
		want   *Error
		unseen []Reason
		text   string
	}{
		{"whole", good + done, nil, nil, "good"},
		{"empty", "", &Error{ReasonTruncated, "response body", "the stream ended before its end was said"}, nil, ""},
		{"comments only", ": a\n\n", &Error{ReasonTruncated, "response body", "the stream ended before its end was said"}, nil, ""},
		{"no end", good, &Error{ReasonTruncated, "response body", "the stream ended before its end was said"}, nil, "good"},
		{"not JSON between", good + "data: " + secret + "\n\n" + good + done, &Error{ReasonNotJSON, "event 2", "not JSON"}, nil, "goodgood"},
		{"cut JSON between", good + "data: {\"choices\":[{\n\n" + good + done, &Error{ReasonNotJSON, "event 2", "not JSON"}, nil, "goodgood"},
		{"wrong type between", good + "data: [1]\n\n" + good + done, &Error{ReasonShape, "event 2", "an element of the body is a number"}, nil, "goodgood"},
		{"too deep between", good + "data: " + strings.Repeat("[", 600) + "\n\n" + good + done,
			&Error{ReasonShape, "event 2", "nested deeper than 512 levels"}, nil, "goodgood"},
		{"two faults", "data: {}\n\ndata: x\n\n" + good, &Error{ReasonShape, "event 1", "neither choices, usage nor an error"},
			[]Reason{ReasonNotJSON, ReasonTruncated}, "good"},
		{"cut in the last event", good + "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"par", &Error{ReasonTruncated, "event 2", "the stream ended inside it"},
			nil, "goodpar"},
		{"cut in [DONE]", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"good\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DO",
			&Error{ReasonTruncated, "event 2", "the stream ended inside it"}, nil, "good"},
		{"[DONE] without its line end", good + "data: [DONE]", nil, nil, "good"},
		{"a frame after [DONE]", good + done + good, nil, nil, "goodgood"},
	} {
		a := decodeWhole(openAIChat{}.Decoder(Prompt{}, typed("text/event-stream")), []byte(tt.stream))
		if diff := cmp.Diff(tt.want, a.Err); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.unseen, a.Info.Unseen); diff != "" {
			t.Errorf("%s: unseen (-want +got):\n%s", tt.name, diff)
		}
		if got := a.textAt(0, Content); got != tt.text {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.text)
		}
	}
}

// TestLimits holds that what is over a limit is skipped, said, and not kept.
func TestLimits(t *testing.T) {
	const good = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"good\"}}]}\n\n"
	big := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + strings.Repeat("x", 5000) + "\"}}]}\n\n"
	want := &Error{ReasonTooLong, "event 2", "larger than 4096 bytes"}
	for _, n := range []int{1, 100, 1 << 20} {
		s := newStream(readOpenAI)
		s.events.limit = 4096
		a := decode(s, []byte(good+big+good+"data: [DONE]\n\n"), func() int { return n })
		if diff := cmp.Diff(want, a.Err); diff != "" || a.textAt(0, Content) != "goodgood" {
			t.Errorf("stream: got %q, error (-want +got):\n%s", a.textAt(0, Content), diff)
		}
		w := newWhole(readOpenAI)
		w.limit = 4096
		body := `{"choices":[{"index":0,"message":{"content":"` + strings.Repeat("x", 5000) + `"}}]}`
		a = decode(w, []byte(body), func() int { return n })
		if reasonOf(a.Err) != ReasonTooLong || !strings.HasPrefix(a.textAt(0, Content), "xxxx") {
			t.Errorf("whole: got %d bytes of text, %v", len(a.textAt(0, Content)), a.Err)
		}
	}
	endless := newWhole(readOpenAI)
	for range 1000 {
		endless.Append(nil, bytes.Repeat([]byte("x"), 1<<17))
	}
	if cap(endless.body) > MaxBody*3/2 {
		t.Errorf("an endless body: %d bytes are held", cap(endless.body))
	}
}

// TestPieces holds that many tiny pieces do not become many times the body.
func TestPieces(t *testing.T) {
	many := strings.Repeat(`"a",`, maxPieces+10)
	p, err := openAICompletions{}.Prompt([]byte(`{"prompt":[`+many+`"a"]}`), "", nil)
	if len(p.Parts) != maxPieces || reason(err) != ReasonTooLong {
		t.Errorf("got %d parts, %v", len(p.Parts), err)
	}
	a := decodeWhole(openAIChat{}.Decoder(Prompt{}, typed("application/json")), []byte(`{"choices":[{"message":{"content":[`+many+`"a"]}}]}`))
	if n := len(a.textAt(0, Content)); n != maxPieces || reasonOf(a.Err) != ReasonTooLong {
		t.Errorf("got %d bytes of text, %v", n, a.Err)
	}
}

// TestManyChoices holds the table of choices within its bound.
func TestManyChoices(t *testing.T) {
	d := newStream(readOpenAI)
	var got []Delta
	for _, index := range []string{"0", "65535", "65536", "99999999", "1e300"} {
		got = d.Append(got, []byte(`data: {"choices":[{"index":`+index+`,"delta":{"content":"x"},"finish_reason":"stop"}]}`+"\n\n"))
	}
	got, err := d.Finish(got)
	if err != nil || len(got) != 5 {
		t.Errorf("got %v, %v", got, err)
	}
	if len(d.choices) > maxChoices+1 {
		t.Errorf("%d choices are kept", len(d.choices))
	}
}

// TestHugePrompt reads a prompt of 50 MB, one with escapes, and one over the
// limit.
func TestHugePrompt(t *testing.T) {
	scale := 1
	if raceEnabled {
		scale = 10
	}
	for word, size := range map[string]int{"forty-two ": 50_000_000 / scale, `line\n`: 5_000_000 / scale} {
		text := strings.Repeat(word, size/len(word))
		body := []byte(`{"messages":[{"role":"user","content":"` + text + `"}]}`)
		p, err := openAIChat{}.Prompt(body, "", nil)
		want := strings.ReplaceAll(text, `\n`, "\n")
		if err != nil || len(p.Parts) != 1 || p.Parts[0].Text != want || !utf8.ValidString(want) {
			t.Errorf("got %d parts, %v", len(p.Parts), err)
		}
	}
	over := []byte(`{"prompt":"` + strings.Repeat("x", MaxBody) + `"}`)
	p, err := openAICompletions{}.Prompt(over, "", nil)
	if reason(err) != ReasonTooLong || len(p.Parts) != 1 || len(p.Parts[0].Text) != MaxBody-len(`{"prompt":"`) {
		t.Errorf("over the limit: got %d parts, %v", len(p.Parts), err)
	}
}

// insidePrompt has prompts compared with what they keep for the decoder.
var insidePrompt = cmp.AllowUnexported(Prompt{}, asked{}, step{})

// TestNothingAliases holds that what is given away survives the body.
func TestNothingAliases(t *testing.T) {
	body := []byte(`{"model":"model-name","messages":[{"role":"user","content":"plain text"},{"role":"user","content":"esc\u00e9"},
		{"role":"assistant","tool_calls":[{"name":"f","arguments":{"k":"v"}}]}],"stream":true}`)
	p, err := openAIChat{}.Prompt(body, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	want := Prompt{Model: "model-name", Stream: true, Parts: []Part{{User, "plain text"}, {User, "escé"}, {Assistant, "f"}, {Assistant, `{"k":"v"}`}}}
	want.Canonical = p.Canonical
	if diff := cmp.Diff(want, p, insidePrompt); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tr := range transcripts(t) {
		if d := tr.dialect(); d != nil && tr.request != nil {
			body := bytes.Clone(tr.request)
			got, _ := d.Prompt(body, tr.path, tr.requestHeader)
			clear(body)
			if diff := cmp.Diff(tr.prompt(d), got, insidePrompt); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tr.name, diff)
			}
		}
	}

	d := openAIChat{}.Decoder(Prompt{}, typed("text/event-stream"))
	var got []Delta
	for _, s := range []string{"one", "two", "six"} {
		b := []byte(`data: {"id":"i-1","model":"m-1","choices":[{"index":0,"delta":{"content":"` + s + `"},"finish_reason":"stop"}]}` + "\n\n")
		got = d.Append(got, b)
		clear(b)
	}
	if diff := cmp.Diff("onetwosix", merge(got)[0].Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Info{ID: "i-1", Model: "m-1", FinishReason: "stop"}, d.Info()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
