package dialect

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPolls follows answers that are fetched later: the id that the first
// response promises is the one that the later request asks for.
func TestPolls(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		method, submit, poll string // paths
		body                 string // of the poll; %s is the id
		response             string // to the first request; %s is the id
	}{
		{"Workers AI", "POST", "/client/v4/accounts/9/ai/run/@cf/m", "/client/v4/accounts/9/ai/run/@cf/m", `{"request_id":"%s"}`,
			`{"result":{"status":"queued","request_id":"%s"},"success":true}`},
		{"Responses", "GET", "/v1/responses", "/v1/responses/%s", ``, `{"id":"%s","object":"response","status":"queued","output":[]}`},
		{"Anthropic", "GET", "/v1/messages/batches", "/v1/messages/batches/%s/results", ``, `{"id":"%s","type":"message_batch","processing_status":"in_progress"}`},
	} {
		const id = "a-1_b"
		d := Find(All(), "POST", tt.submit)
		a := decodeWhole(d.Decoder(Prompt{}, typed("application/json")), fmt.Appendf(nil, tt.response, id))
		if a.Info.Queued != id || a.Err != nil {
			t.Errorf("%s: got queued %q, %v", tt.name, a.Info.Queued, a.Err)
		}
		path := strings.Replace(tt.poll, "%s", id, 1)
		d = Find(All(), tt.method, path)
		p, err := d.Prompt([]byte(strings.Replace(tt.body, "%s", id, 1)), path, nil)
		if p.Poll != id || err != nil || !cmp.Equal(p.Unseen, []Reason{ReasonStored}) {
			t.Errorf("%s: got poll %q, unseen %v, %v", tt.name, p.Poll, p.Unseen, err)
		}
	}
	// An answer that comes whole after all promises nothing.
	for _, events := range []string{
		`data: {"type":"response.created","response":{"id":"r","background":true,"status":"queued"}}` + "\n\n" +
			`data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}` + "\n\n",
	} {
		a := decodeWhole(openAIResponses{}.Decoder(Prompt{}, typed("text/event-stream")), []byte(events))
		if a.Info.Queued != "" || a.Err != nil {
			t.Errorf("got queued %q, %v", a.Info.Queued, a.Err)
		}
	}
}

// TestUniversalDigest holds that the digest covers all entries and no header.
func TestUniversalDigest(t *testing.T) {
	const path = "/v1/0123456789abcdef0123456789abcdef/gw"
	entry := func(key, text string) string {
		return `{"provider":"openai","endpoint":"chat/completions","headers":{"authorization":"` + key + `"},"query":{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}}`
	}
	read := func(entries ...string) [32]byte {
		d := Find(All(), "POST", path)
		p, err := d.Prompt([]byte("["+strings.Join(entries, ",")+"]"), path, nil)
		if err != nil || p.Canonical == [32]byte{} {
			t.Fatalf("got %v", err)
		}
		return p.Canonical
	}
	one := read(entry("k", "a"), entry("k", "b"))
	if one != read(entry("another", "a"), entry("key", "b")) {
		t.Error("a header changes the digest")
	}
	for _, other := range [][]string{{entry("k", "a")}, {entry("k", "a"), entry("k", "c")}, {entry("k", "b"), entry("k", "a")}} {
		if one == read(other...) {
			t.Errorf("%s has the same digest", other)
		}
	}
}

// TestUniversalIsBounded sends more entries than are read.
func TestUniversalIsBounded(t *testing.T) {
	const path = "/v1/0123456789abcdef0123456789abcdef/gw"
	entry := `{"provider":"openai","endpoint":"chat/completions","query":{"messages":[{"role":"user","content":"x"}]}},`
	p, err := Find(All(), "POST", path).Prompt([]byte("["+strings.Repeat(entry, 10*maxSteps)+"{}]"), path, nil)
	if reason(err) != ReasonTooLong || len(p.asked.steps) != maxSteps || len(p.Parts) != maxSteps {
		t.Errorf("got %d entries, %d parts, %v", len(p.asked.steps), len(p.Parts), err)
	}
}

// TestBinaryTensors reads texts that stand behind the JSON, as Triton's client
// sends them and its server answers.
func TestBinaryTensors(t *testing.T) {
	texts := func(all ...string) []byte {
		var b []byte
		for _, s := range all {
			b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
		}
		return b
	}
	const path = "/v2/models/m/infer"
	d := Find(All(), "POST", path)
	tail := append(append([]byte{1, 0, 0, 0}, texts("Name a bird", "漢字")...), texts("{}")...)
	head := fmt.Sprintf(`{"inputs":[{"name":"input_ids","datatype":"INT32","parameters":{"binary_data_size":4}},`+
		`{"name":"text_input","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":%d}},`+
		`{"name":"sampling","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":6}}]}`, len(texts("Name a bird", "漢字")))
	h := header{"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": fmt.Sprint(len(head))}
	p, err := d.Prompt(append([]byte(head), tail...), path, h)
	want := []Part{{User, "Name a bird"}, {User, "漢字"}, {User, "{}"}}
	if diff := cmp.Diff(want, p.Parts); diff != "" || err != nil || !cmp.Equal(p.Unseen, []Reason{ReasonTokenIDs}) {
		t.Errorf("%v, unseen %v (-want +got):\n%s", err, p.Unseen, diff)
	}
	other, _ := d.Prompt(append([]byte(head), append(tail[:len(tail)-1:len(tail)-1], '!')...), path, h)
	if p.Canonical == [32]byte{} || p.Canonical == other.Canonical {
		t.Error("the digest does not cover the tensors")
	}

	tail = texts("Heron", "a\xff")
	head = fmt.Sprintf(`{"model_name":"m","outputs":[{"name":"logits","datatype":"FP32","parameters":{"binary_data_size":0}},`+
		`{"name":"text_output","datatype":"BYTES","parameters":{"binary_data_size":%d}}]}`, len(tail))
	h["Inference-Header-Content-Length"] = fmt.Sprint(len(head))
	for _, n := range []int{1, 10, 1000} {
		a := decode(d.Decoder(p, h), append([]byte(head), tail...), func() int { return n })
		want := []Delta{{0, Content, 0, "Heron"}, {0, Content, 1, "a\uFFFD"}}
		if diff := cmp.Diff(want, a.Places); diff != "" || a.Err != nil || a.Info.Model != "m" {
			t.Errorf("%v, %+v (-want +got):\n%s", a.Err, a.Info, diff)
		}
	}
	// Lengths that lie read no further than there is.
	for _, lie := range []string{"\xff\xff\xff\xff", "\xff\xff\xff\x7fabc", "\x05\x00\x00", ""} {
		a := decodeWhole(d.Decoder(p, h), append([]byte(head), lie...))
		if len(a.textAt(0, Content)) > len(lie) {
			t.Errorf("%q: got %q", lie, a.textAt(0, Content))
		}
	}
}

// TestForms reads forms that are damaged, too large, or not forms at all.
func TestForms(t *testing.T) {
	const path = "/v1/audio/transcriptions"
	d := Find(All(), "POST", path)
	field := func(name, file, value string) string {
		if file != "" {
			file = `; filename="` + file + `"`
		}
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"" + file + "\r\n\r\n" + value + "\r\n"
	}
	for _, tt := range []struct {
		name, contentType, body string
		parts                   []Part
		want                    Reason
	}{
		{"whole", "multipart/form-data; boundary=b", field("prompt", "", "Ada") + field("file", "a.wav", "RIFF") + "--b--", []Part{{User, "Ada"}}, ""},
		{"no boundary", "multipart/form-data", field("prompt", "", "Ada") + "--b--", nil, ReasonMIME},
		{"another boundary", "multipart/form-data; boundary=c", field("prompt", "", "Ada") + "--b--", nil, ReasonTruncated},
		{"no end", "multipart/form-data; boundary=b", field("prompt", "", "Ada"), []Part{{User, "Ada"}}, ReasonTruncated},
		{"cut in a field", "multipart/form-data; boundary=b", strings.TrimSuffix(field("prompt", "", "Ada"), "a\r\n"), []Part{{User, "Ad"}}, ReasonTruncated},
		{"too many fields", "multipart/form-data; boundary=b", strings.Repeat(field("x", "", ""), maxFormFields+1) + "--b--", nil, ReasonTooLong},
		{"empty", "multipart/form-data; boundary=b", "", nil, ReasonTruncated},
		{"invalid UTF-8", "multipart/form-data; boundary=b", field("prompt", "", "a\xff") + "--b--", []Part{{User, "a\uFFFD"}}, ""},
		{"JSON", "application/json", `{"model":"m","prompt":"Ada","url":"https://x.example/a.wav"}`, []Part{{User, "Ada"}}, ""},
		{"sound alone", "audio/wav", "RIFF", nil, ""},
	} {
		p, err := d.Prompt([]byte(tt.body), path, typed(tt.contentType))
		if diff := cmp.Diff(tt.parts, p.Parts); diff != "" || reason(err) != tt.want {
			t.Errorf("%s: got %v, want %q (-want +got):\n%s", tt.name, err, tt.want, diff)
		}
		if whole := p.Canonical != [32]byte{}; whole != (tt.want == "" && tt.name != "sound alone") {
			t.Errorf("%s: has a digest: %t", tt.name, whole)
		}
	}
	read := func(body string) [32]byte {
		p, err := d.Prompt([]byte(body+"--b--"), path, typed("multipart/form-data; boundary=b"))
		if err != nil {
			t.Fatal(err)
		}
		return p.Canonical
	}
	one := read(field("model", "", "m") + field("file", "a.wav", "RIFF") + field("stream", "", "true"))
	if one != read(field("file", "b.wav", "RIFF")+field("model", "", "m")) {
		t.Error("the order of fields, a file's name or the stream flag change the digest")
	}
	if one == read(field("model", "", "m")+field("file", "a.wav", "RIFX")) || one == read(field("model", "", "n")+field("file", "a.wav", "RIFF")) {
		t.Error("the sound or the model does not change the digest")
	}
}

// TestGeneric holds that what is guessed stays within bounds, and that what is
// no prompt is not taken for one.
func TestGeneric(t *testing.T) {
	nest := func(n int, s string) string {
		return strings.Repeat(`{"content":`, n) + `"` + s + `"` + strings.Repeat("}", n)
	}
	for _, tt := range []struct {
		name, contentType, body string
		parts                   int
		want                    Reason
	}{
		{"a question", "application/json", `{"question":"Who built the bridge?"}`, 1, ""},
		{"no such field", "application/json", `{"name":"x","title":"y"}`, 0, ReasonNoDialect},
		{"fields below others", "application/json", `{"order":{"text":"x"}}`, 0, ReasonNoDialect},
		{"numbers", "application/json", `{"input":[1,2,3]}`, 0, ReasonNoDialect},
		{"bytes", "application/json", `{"input":"` + strings.Repeat("QUJD", 100) + `"}`, 0, ReasonNoDialect},
		{"a list", "application/json", `["text"]`, 0, ReasonNoDialect},
		{"not JSON", "application/json", `text`, 0, ReasonNoDialect},
		{"nothing", "", ``, 0, ReasonNoDialect},
		{"a form", "application/x-www-form-urlencoded", `{"prompt":"x"}`, 0, ReasonNoDialect},
		{"protobuf", "application/grpc", "\x00\x00", 0, ReasonNoDialect},
		{"as deep as is read", "application/json", `{"messages":` + nest(maxGuessDepth, "deep") + `}`, 1, ""},
		{"deeper", "application/json", `{"messages":` + nest(maxGuessDepth+1, "deep") + `}`, 0, ReasonNoDialect},
		{"cut", "application/json", `{"prompt":"some te`, 1, ReasonTruncated},
		{"too many", "application/json", `{"texts":[` + strings.Repeat(`"a",`, 2*maxGuesses) + `"b"]}`, maxGuesses, ReasonTooLong},
	} {
		p, err := generic{}.Prompt([]byte(tt.body), "/x", typed(tt.contentType))
		if len(p.Parts) != tt.parts || reason(err) != tt.want {
			t.Errorf("%s: got %d parts, %v, want %d, %q", tt.name, len(p.Parts), err, tt.parts, tt.want)
		}
		a := decodeWhole(generic{}.Decoder(p, typed("application/json")), []byte(`{"text":"an answer","items":[{"text":"no"}],"data":{"content":"more"}}`))
		if tt.parts == 0 {
			if len(a.Places) > 0 || reasonOf(a.Err) != ReasonNoDialect {
				t.Errorf("%s: the response is read as %+v", tt.name, a)
			}
		} else if a.textAt(0, Content) != "an answermore" || !cmp.Equal(a.Info.Unseen, []Reason{ReasonGeneric}) {
			t.Errorf("%s: the response is read as %+v", tt.name, a)
		}
	}
	a := decodeWhole(generic{}.Decoder(Prompt{}, typed("application/json")), []byte(`{"outputs":[`+strings.Repeat(`"a",`, 2*maxGuesses)+`"b"]}`))
	if n := len(a.textAt(0, Content)); n != maxGuesses || reasonOf(a.Err) != ReasonTooLong {
		t.Errorf("too many answers: got %d bytes, %v", n, a.Err)
	}
}

// TestHeaderInfo reads what headers say.
func TestHeaderInfo(t *testing.T) {
	for _, tt := range []struct {
		h    header
		want Info
	}{
		{header{}, Info{}},
		{header{"X-Request-Id": "a", "Cf-Ray": "b"}, Info{RequestID: "a"}},
		{header{"Cf-Ray": "b"}, Info{RequestID: "b"}},
		{header{"X-Request-Id": strings.Repeat("a", 300), "Request-Id": "c"}, Info{RequestID: "c"}},
		{header{"Cf-Aig-Cache-Status": "HIT"}, Info{Cached: true}},
		{header{"Cf-Aig-Cache-Status": "MISS"}, Info{}},
		{header{"X-Portkey-Cache-Status": "hit"}, Info{Cached: true}},
	} {
		for _, contentType := range []string{"application/json", "text/event-stream", "image/png", ""} {
			tt.h["Content-Type"] = contentType
			got := openAIChat{}.Decoder(Prompt{}, tt.h).Info()
			if got.RequestID != tt.want.RequestID || got.Cached != tt.want.Cached {
				t.Errorf("%v: got %+v", tt.h, got)
			}
		}
	}
	if got := (openAIChat{}).Decoder(Prompt{}, nil).Info(); got.RequestID != "" {
		t.Errorf("without a header: got %+v", got)
	}
}
