package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is what a client makes of a response, whatever the API.
type said struct {
	Text, Reason       []string // by choice
	Prompt, Completion int
	Err                string // the message of an error
}

// protocol is one way to ask the engine: how to put a request and how to read the
// response, with encoding/json alone.
type protocol struct {
	name   string
	stream bool
	chat   bool   // a chat with a template, not a bare text
	key    string // the header that names the tenant
	kind   string // content type of an answer

	// request returns the target and the body of a request for n answers.
	request func(prompt string, n, maxNew int) (string, any)
	// read reads an answer.
	read func(*testing.T, []byte) said
	// refusal reads the body of a response with a status of its own for a
	// request that was refused.
	refusal func(*testing.T, []byte) string
	// many says that the API knows of several answers.
	many bool
}

// object is any JSON object.
type object = map[string]any

// decode reads b, which must be one JSON value without fields that v lacks.
func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %q", err, b)
	}
	if rest, err := io.ReadAll(d.Buffered()); err != nil || len(bytes.TrimSpace(rest)) > 0 {
		t.Fatalf("%q after the value", rest)
	}
}

// event is one server-sent event.
type event struct{ name, data string }

// parseEvents reads a stream whose events end with a blank line, by the end of
// line given.
func parseEvents(t *testing.T, b []byte, eol string) []event {
	t.Helper()
	var all []event
	rest := string(b)
	for rest != "" {
		block, after, ok := strings.Cut(rest, eol+eol)
		if !ok {
			t.Fatalf("the stream ends within an event: %q", rest)
		}
		rest = after
		var e event
		for line := range strings.SplitSeq(block, eol) {
			switch field, value, _ := strings.Cut(line, ": "); field {
			case "event":
				e.name = value
			case "data":
				e.data = value
			default:
				t.Fatalf("a line %q", line)
			}
		}
		all = append(all, e)
	}
	return all
}

// untilDone returns the data of the events before [DONE], which is the last.
func untilDone(t *testing.T, b []byte) []string {
	t.Helper()
	var data []string
	for _, e := range parseEvents(t, b, "\n") {
		data = append(data, e.data)
	}
	if len(data) == 0 || data[len(data)-1] != "[DONE]" {
		t.Fatalf("no [DONE] at the end of %q", b)
	}
	return data[:len(data)-1]
}

func grow[T any](s []T, i int) []T {
	for len(s) <= i {
		s = append(s, *new(T))
	}
	return s
}

func (s *said) add(choice int, text, reason string) {
	s.Text, s.Reason = grow(s.Text, choice), grow(s.Reason, choice)
	s.Text[choice] += text
	if reason != "" {
		s.Reason[choice] = reason
	}
}

// Shapes of the responses, written from the APIs' documentation and apart from
// the encoders.
type (
	anthropicBody struct {
		ID, Type, Role, Model string
		Content               []struct{ Type, Text string }
		StopReason            *string `json:"stop_reason"`
		StopSequence          *string `json:"stop_sequence"`
		Usage                 anthropicCounts
	}
	anthropicCounts struct {
		InputTokens  int `json:"input_tokens"`
		OutputTokens int `json:"output_tokens"`
	}
	anthropicErrorBody struct {
		Type      string
		Error     struct{ Type, Message string }
		RequestID string `json:"request_id"`
	}
	geminiBody struct {
		Candidates []struct {
			Content struct {
				Role  string
				Parts []struct{ Text string }
			}
			FinishReason string
			Index        int
		}
		UsageMetadata struct {
			PromptTokenCount, CandidatesTokenCount, TotalTokenCount int
		}
		ModelVersion, ResponseID string
		Error                    *geminiErrorBody
	}
	geminiErrorBody struct {
		Code            int
		Message, Status string
	}
	ollamaBody struct {
		Model           string
		CreatedAt       string `json:"created_at"`
		Message         *struct{ Role, Content string }
		Response        *string
		Done            bool
		DoneReason      string `json:"done_reason"`
		TotalDuration   int64  `json:"total_duration"`
		PromptEvalCount int    `json:"prompt_eval_count"`
		EvalCount       int    `json:"eval_count"`
		Error           string
	}
	generateBody struct {
		Text  string
		Index int
		Meta  struct {
			ID           string
			FinishReason *struct {
				Type, Message   string
				Matched, Length int
				StatusCode      int    `json:"status_code"`
				ErrType         string `json:"err_type"`
			} `json:"finish_reason"`
			PromptTokens     int     `json:"prompt_tokens"`
			CompletionTokens int     `json:"completion_tokens"`
			CachedTokens     int     `json:"cached_tokens"`
			Latency          float64 `json:"e2e_latency"`
		} `json:"meta_info"`
	}
)

func readAnthropic(t *testing.T, b []byte) (s said) {
	var m anthropicBody
	decode(t, b, &m)
	for _, c := range m.Content {
		if c.Type != "text" {
			t.Errorf("a block of type %q", c.Type)
		}
		s.add(0, c.Text, "")
	}
	if m.Type != "message" || m.Role != "assistant" || !strings.HasPrefix(m.ID, "msg_") || m.StopReason == nil || m.StopSequence != nil {
		t.Errorf("the message is %q", b)
		return s
	}
	s.add(0, "", map[string]string{"end_turn": "stop", "max_tokens": "length"}[*m.StopReason])
	s.Prompt, s.Completion = m.Usage.InputTokens, m.Usage.OutputTokens
	return s
}

func readAnthropicEvents(t *testing.T, b []byte) (s said) {
	var order []string
	for _, e := range parseEvents(t, b, "\n") {
		var head struct{ Type string }
		if err := json.Unmarshal([]byte(e.data), &head); err != nil || head.Type != e.name {
			t.Fatalf("event %q holds %q (%v)", e.name, e.data, err)
		}
		if len(order) == 0 || order[len(order)-1] != e.name {
			order = append(order, e.name)
		}
		switch e.name {
		case "message_start":
			var v struct {
				Type    string
				Message anthropicBody
			}
			decode(t, []byte(e.data), &v)
			if m := v.Message; m.Type != "message" || m.Role != "assistant" || m.Content == nil || len(m.Content) > 0 || m.StopReason != nil {
				t.Errorf("it starts with %s", e.data)
			}
			s.add(0, "", "")
		case "content_block_start":
			var v struct {
				Type         string
				Index        *int
				ContentBlock struct{ Type, Text string } `json:"content_block"`
			}
			decode(t, []byte(e.data), &v)
			if v.Index == nil || *v.Index != 0 || v.ContentBlock.Type != "text" || v.ContentBlock.Text != "" {
				t.Errorf("a block starts with %s", e.data)
			}
		case "content_block_delta":
			var v struct {
				Type  string
				Index *int
				Delta struct{ Type, Text string }
			}
			decode(t, []byte(e.data), &v)
			if v.Index == nil || *v.Index != 0 || v.Delta.Type != "text_delta" || v.Delta.Text == "" {
				t.Errorf("a delta is %s", e.data)
			}
			s.add(0, v.Delta.Text, "")
		case "content_block_stop":
			var v struct {
				Type  string
				Index *int
			}
			decode(t, []byte(e.data), &v)
			if v.Index == nil || *v.Index != 0 {
				t.Errorf("a block stops with %s", e.data)
			}
		case "message_delta":
			var v struct {
				Type  string
				Delta struct {
					StopReason   string  `json:"stop_reason"`
					StopSequence *string `json:"stop_sequence"`
				}
				Usage anthropicCounts
			}
			decode(t, []byte(e.data), &v)
			s.add(0, "", map[string]string{"end_turn": "stop", "max_tokens": "length"}[v.Delta.StopReason])
			s.Prompt, s.Completion = v.Usage.InputTokens, v.Usage.OutputTokens
		case "error":
			var v anthropicErrorBody
			decode(t, []byte(e.data), &v)
			s.Err = v.Error.Type + ": " + v.Error.Message
		}
	}
	want := "message_start content_block_start ping content_block_delta content_block_stop message_delta message_stop"
	if s.Err != "" {
		want = "message_start content_block_start ping content_block_delta error"
	}
	if got := strings.Join(order, " "); got != want {
		t.Errorf("the events are %s", got)
	}
	return s
}

func refusalAnthropic(t *testing.T, b []byte) string {
	var v anthropicErrorBody
	decode(t, b, &v)
	if v.Type != "error" || v.RequestID == "" {
		t.Errorf("the error is %s", b)
	}
	return v.Error.Type + ": " + v.Error.Message
}

func (s *said) gemini(t *testing.T, b []byte) {
	var v geminiBody
	decode(t, b, &v)
	if v.Error != nil {
		s.Err = v.Error.Status + ": " + v.Error.Message
		return
	}
	if v.ModelVersion != "m" || v.ResponseID == "" || len(v.Candidates) == 0 {
		t.Errorf("the response is %s", b)
	}
	for _, c := range v.Candidates {
		if c.Content.Role != "model" || len(c.Content.Parts) != 1 {
			t.Errorf("the candidate is %+v", c)
			continue
		}
		s.add(c.Index, c.Content.Parts[0].Text, map[string]string{"STOP": "stop", "MAX_TOKENS": "length"}[c.FinishReason])
	}
	u := v.UsageMetadata
	s.Prompt, s.Completion = u.PromptTokenCount, u.CandidatesTokenCount
	if u.TotalTokenCount != u.PromptTokenCount+u.CandidatesTokenCount {
		t.Errorf("the usage is %+v", u)
	}
}

func readGemini(t *testing.T, b []byte) (s said) { s.gemini(t, b); return s }

func readGeminiEvents(t *testing.T, b []byte) (s said) {
	for _, e := range parseEvents(t, b, "\r\n") {
		s.gemini(t, []byte(e.data))
	}
	return s
}

func readGeminiArray(t *testing.T, b []byte) (s said) {
	var all []json.RawMessage
	decode(t, b, &all)
	for _, v := range all {
		s.gemini(t, v)
	}
	return s
}

func geminiRefusalOf(v geminiErrorBody) string { return v.Status + ": " + v.Message }

func refusalGemini(t *testing.T, b []byte) string {
	var v struct{ Error geminiErrorBody }
	decode(t, b, &v)
	return geminiRefusalOf(v.Error)
}

func refusalGeminiArray(t *testing.T, b []byte) string {
	var v []struct{ Error geminiErrorBody }
	decode(t, b, &v)
	if len(v) != 1 {
		t.Fatalf("%d errors", len(v))
	}
	return geminiRefusalOf(v[0].Error)
}

func (s *said) ollama(t *testing.T, b []byte, chat bool) (done bool) {
	var v ollamaBody
	decode(t, b, &v)
	if v.Error != "" {
		s.Err = v.Error
		return true
	}
	if chat != (v.Message != nil) || chat == (v.Response != nil) || v.Model != "m" || v.CreatedAt == "" {
		t.Errorf("the answer is %s", b)
		return true
	}
	if chat {
		s.add(0, v.Message.Content, v.DoneReason)
	} else {
		s.add(0, *v.Response, v.DoneReason)
	}
	s.Prompt, s.Completion = v.PromptEvalCount, v.EvalCount
	if v.Done != (v.DoneReason != "") || v.Done != (v.TotalDuration > 0) {
		t.Errorf("the answer is %s", b)
	}
	return v.Done
}

func readOllama(chat bool) func(*testing.T, []byte) said {
	return func(t *testing.T, b []byte) (s said) {
		if !s.ollama(t, b, chat) {
			t.Errorf("%s is not done", b)
		}
		return s
	}
}

func readOllamaLines(chat bool) func(*testing.T, []byte) said {
	return func(t *testing.T, b []byte) (s said) {
		lines := bytes.SplitAfter(b, []byte("\n"))
		if last := lines[len(lines)-1]; len(last) > 0 {
			t.Errorf("the last line is %q", last)
		}
		lines = lines[:len(lines)-1]
		for i, line := range lines {
			if done := s.ollama(t, line, chat); done != (i == len(lines)-1) {
				t.Errorf("line %d of %d is %s", i, len(lines), line)
			}
		}
		return s
	}
}

func refusalOllama(t *testing.T, b []byte) string {
	var v struct{ Error string }
	decode(t, b, &v)
	return v.Error
}

func (s *said) generated(t *testing.T, v generateBody, i int) {
	f := v.Meta.FinishReason
	if f == nil {
		if v.Meta.PromptTokens != 0 {
			t.Errorf("the prompt is counted too early in %+v", v)
		}
		return
	}
	if f.Type == "abort" {
		s.Err = fmt.Sprintf("%s: %s", f.ErrType, f.Message)
		if f.StatusCode < 400 {
			t.Errorf("the abort has status %d", f.StatusCode)
		}
		return
	}
	if (f.Type == "stop") != (f.Matched > 0) || (f.Type == "length") != (f.Length == v.Meta.CompletionTokens) || v.Meta.Latency <= 0 {
		t.Errorf("it finished with %+v in %+v", *f, v.Meta)
	}
	s.add(i, "", f.Type)
	s.Prompt = v.Meta.PromptTokens
	s.Completion += v.Meta.CompletionTokens
}

func readGenerate(t *testing.T, b []byte) (s said) {
	var all []generateBody
	if b[0] == '[' {
		decode(t, b, &all)
	} else {
		all = make([]generateBody, 1)
		decode(t, b, &all[0])
	}
	for i, v := range all {
		s.generated(t, v, i)
		s.add(i, v.Text, "")
	}
	return s
}

// readGenerateEvents also holds the stream to being cumulative.
func readGenerateEvents(t *testing.T, b []byte) (s said) {
	tokens := map[int]int{}
	for _, data := range untilDone(t, b) {
		var v generateBody
		decode(t, []byte(data), &v)
		i := v.Index
		s.add(i, "", "")
		if !strings.HasPrefix(v.Text, s.Text[i]) || v.Meta.CompletionTokens < tokens[i] {
			t.Errorf("answer %d: %q with %d tokens came after %q with %d", i, v.Text, v.Meta.CompletionTokens, s.Text[i], tokens[i])
		}
		s.Text[i], tokens[i] = v.Text, v.Meta.CompletionTokens
		s.generated(t, v, i)
	}
	return s
}

func refusalGenerate(t *testing.T, b []byte) string {
	var v struct{ Error struct{ Message string } }
	decode(t, b, &v)
	return v.Error.Message
}

// reference reads OpenAI's answers, which the others are compared with.
func reference(t *testing.T, b []byte) (s said) {
	var v struct {
		Choices []struct {
			Index        int
			Message      struct{ Content string }
			Text         string
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Choices {
		s.add(c.Index, c.Message.Content+c.Text, c.FinishReason)
	}
	s.Prompt, s.Completion = v.Usage.Prompt, v.Usage.Completion
	return s
}

func turns(prompt string) []any { return []any{object{"role": "user", "content": prompt}} }

func anthropicAsk(target string, stream bool) func(string, int, int) (string, any) {
	return func(prompt string, _, maxNew int) (string, any) {
		return target, object{"model": "m", "max_tokens": maxNew, "stream": stream, "messages": turns(prompt)}
	}
}

func geminiAsk(action string) func(string, int, int) (string, any) {
	return func(prompt string, n, maxNew int) (string, any) {
		return "/v1beta/models/m:" + action, object{
			"contents":         []any{object{"role": "user", "parts": []any{object{"text": prompt}}}},
			"generationConfig": object{"candidateCount": n, "maxOutputTokens": maxNew},
		}
	}
}

func ollamaAsk(target string, stream any) func(string, int, int) (string, any) {
	return func(prompt string, _, maxNew int) (string, any) {
		v := object{"model": "m", "options": object{"num_predict": maxNew}}
		if stream != nil {
			v["stream"] = stream
		}
		if target == "/api/chat" {
			v["messages"] = turns(prompt)
		} else {
			v["prompt"], v["raw"] = prompt, true
		}
		return target, v
	}
}

func generateAsk(stream bool) func(string, int, int) (string, any) {
	return func(prompt string, n, maxNew int) (string, any) {
		return "/generate", object{"text": prompt, "stream": stream, "sampling_params": object{"n": n, "max_new_tokens": maxNew}}
	}
}

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
	typeLines  = "application/x-ndjson"
)

var protocols = []protocol{
	{name: "anthropic", chat: true, key: "X-Api-Key", kind: typeJSON, request: anthropicAsk("/v1/messages", false), read: readAnthropic, refusal: refusalAnthropic},
	{name: "anthropic stream", stream: true, chat: true, key: "X-Api-Key", kind: typeEvents, request: anthropicAsk("/v1/messages", true), read: readAnthropicEvents, refusal: refusalAnthropic},
	{name: "anthropic by account", stream: true, chat: true, kind: typeEvents, request: anthropicAsk("/client/v4/accounts/{tenant}/ai/v1/messages", true), read: readAnthropicEvents, refusal: refusalAnthropic},
	{name: "gemini", chat: true, key: "X-Goog-Api-Key", kind: typeJSON, request: geminiAsk("generateContent"), read: readGemini, refusal: refusalGemini, many: true},
	{name: "gemini events", stream: true, chat: true, key: "X-Goog-Api-Key", kind: typeEvents, request: geminiAsk("streamGenerateContent?alt=sse"), read: readGeminiEvents, refusal: refusalGemini, many: true},
	{name: "gemini array", stream: true, chat: true, key: "X-Goog-Api-Key", kind: typeJSON, request: geminiAsk("streamGenerateContent"), read: readGeminiArray, refusal: refusalGeminiArray, many: true},
	{name: "ollama chat", chat: true, key: "Authorization", kind: typeJSON, request: ollamaAsk("/api/chat", false), read: readOllama(true), refusal: refusalOllama},
	{name: "ollama chat lines", stream: true, chat: true, key: "Authorization", kind: typeLines, request: ollamaAsk("/api/chat", nil), read: readOllamaLines(true), refusal: refusalOllama},
	{name: "ollama generate", key: "Authorization", kind: typeJSON, request: ollamaAsk("/api/generate", false), read: readOllama(false), refusal: refusalOllama},
	{name: "ollama generate lines", stream: true, key: "Authorization", kind: typeLines, request: ollamaAsk("/api/generate", true), read: readOllamaLines(false), refusal: refusalOllama},
	{name: "sglang", key: "Authorization", kind: typeJSON, request: generateAsk(false), read: readGenerate, refusal: refusalGenerate, many: true},
	{name: "sglang stream", stream: true, key: "Authorization", kind: typeEvents, request: generateAsk(true), read: readGenerateEvents, many: true},
}

// engine is an engine at 1/512 of the incident's size, a window of 2,048 tokens
// and a prefill pool of 1,330, behind a server.
type engine struct {
	*Engine
	server  *httptest.Server
	entered chan struct{} // a value for each request that the handler begins
}

func newTestEngine(t *testing.T, o Options) *engine {
	t.Helper()
	o.Divisor, o.Cluster.Seed = 512, 7
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h, entered := e.Handler(), make(chan struct{}, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		e.Close()
	})
	return &engine{e, s, entered}
}

// post sends a request as a tenant and returns the response with its body read.
func (e *engine) post(t *testing.T, a *protocol, tenant, prompt string, n, maxNew int) (*http.Response, []byte) {
	t.Helper()
	target, v := a.request(prompt, n, maxNew)
	return e.send(t, a, tenant, target, v)
}

func (e *engine) send(t *testing.T, a *protocol, tenant, target string, v any) (*http.Response, []byte) {
	t.Helper()
	res := e.open(t, a, tenant, target, v)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, b
}

// open is send without reading the body.
func (e *engine) open(t *testing.T, a *protocol, tenant, target string, v any) *http.Response {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.server.URL+strings.ReplaceAll(target, "{tenant}", tenant), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	switch a.key {
	case "":
	case "Authorization":
		r.Header.Set(a.key, "Bearer "+tenant)
	default:
		r.Header.Set(a.key, tenant)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// privateText is n words that nobody else says.
func privateText(rnd *rand.Rand, n int) string {
	w := make([]string, n)
	for i := range w {
		w[i] = fmt.Sprintf("%x", rnd.Uint64()>>30)
	}
	return strings.Join(w, " ")
}

// The same engine says the same by every API, whole and streamed.
func TestAPIsAgree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	prompt := "Of the harbour, the \"tide\" & the <keeper>: " + privateText(rnd, 200) + " – in the night 夜の港"
	for _, maxNew := range []int{16, 1500} {
		want := map[bool]said{}
		for chat, target := range map[bool]string{true: "/v1/chat/completions", false: "/v1/completions"} {
			res, body := newTestEngine(t, Options{}).send(t, &protocol{}, "", target, object{"messages": turns(prompt), "prompt": prompt, "max_tokens": maxNew})
			if res.StatusCode != http.StatusOK {
				t.Fatalf("%s: status %d", target, res.StatusCode)
			}
			want[chat] = reference(t, body)
		}
		if reasons := [2]string{want[true].Reason[0], want[false].Reason[0]}; maxNew == 16 && reasons != [2]string{"length", "length"} ||
			maxNew == 1500 && reasons != [2]string{"stop", "stop"} {
			t.Errorf("with %d tokens, the answers end with %s", maxNew, reasons)
		}
		for _, a := range protocols {
			t.Run(fmt.Sprintf("%s/%d", a.name, maxNew), func(t *testing.T) {
				e := newTestEngine(t, Options{})
				res, body := e.post(t, &a, "alice", prompt, 1, maxNew)
				kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
				if res.StatusCode != http.StatusOK || kind != a.kind {
					t.Fatalf("status %d with %s: %s", res.StatusCode, kind, body)
				}
				if diff := cmp.Diff(want[a.chat], a.read(t, body)); diff != "" {
					t.Errorf("(-OpenAI +%s):\n%s", a.name, diff)
				}
				labels := e.Labels()
				if len(labels) != 1 || labels[0].Tenant != "alice" || labels[0].Status != 200 || labels[0].Exchange != res.Header.Get("X-Request-Id") {
					t.Errorf("the labels are %+v for response %q", labels, res.Header.Get("X-Request-Id"))
				}
			})
		}
	}
}

// Several answers to one prompt differ, and come whole and streamed alike.
func TestSeveralAnswers(t *testing.T) {
	prompt := "Of the harbour and the tide: " + privateText(rand.New(rand.NewPCG(2, 2)), 60)
	want := map[bool]said{}
	for _, a := range protocols {
		if !a.many {
			continue
		}
		e := newTestEngine(t, Options{})
		res, body := e.post(t, &a, "alice", prompt, 3, 200)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d: %s", a.name, res.StatusCode, body)
		}
		got := a.read(t, body)
		if len(got.Text) != 3 || got.Text[0] == got.Text[1] || got.Text[1] == got.Text[2] {
			t.Errorf("%s: the answers are %q", a.name, got.Text)
		}
		if w, ok := want[a.chat]; !ok {
			want[a.chat] = got
		} else if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s (-first API +this):\n%s", a.name, diff)
		}
		if target, v := a.request(prompt, 17, 9); true {
			res, body := e.send(t, &a, "alice", target, v)
			if res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: 17 answers: status %d: %s", a.name, res.StatusCode, body)
			}
		}
	}
}

// A prompt that is too long is refused by every API in its own words, or leaks,
// like on OpenAI's route.
func TestOversizedPrompts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	over, under := privateText(rnd, 2100), privateText(rnd, 1500)
	for _, tt := range []struct {
		name, prompt, says string
	}{
		{"window", over, "is longer than the model's context length (2048 tokens)."},
		{"pool", under, "exceeds the maximum allowed length ("},
	} {
		for _, a := range protocols {
			t.Run(tt.name+"/"+a.name, func(t *testing.T) {
				e := newTestEngine(t, Options{})
				res, body := e.post(t, &a, "bob", tt.prompt, 1, 20)
				status, message := http.StatusBadRequest, ""
				if a.refusal == nil { // in the stream
					status = http.StatusOK
				}
				if res.StatusCode != status {
					t.Fatalf("status %d, want %d: %s", res.StatusCode, status, body)
				}
				if a.refusal == nil {
					message = a.read(t, body).Err
				} else {
					message = a.refusal(t, body)
				}
				if !strings.Contains(message, tt.says) {
					t.Errorf("the message is %q", message)
				}
				if prefix, _, ok := strings.Cut(message, ": "); ok && !map[string]bool{
					"invalid_request_error": true, "INVALID_ARGUMENT": true, "BadRequestError": true,
				}[prefix] {
					t.Errorf("the error is of type %q", prefix)
				}
				if l := e.Labels(); len(l) != 1 || l[0].Status != http.StatusBadRequest || l[0].Oversized != (tt.name == "pool") {
					t.Errorf("the labels are %+v", l)
				}
			})
		}
	}
	for _, a := range protocols {
		t.Run("leak/"+a.name, func(t *testing.T) {
			seed := uint64(5)
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			var o Options
			o.Cluster.Faults = append(o.Cluster.Faults, "stale_pages")
			e := newTestEngine(t, o)
			for range 30 {
				if res, body := e.post(t, &a, "alice", privateText(rnd, 300), 1, 30); res.StatusCode != http.StatusOK {
					t.Fatalf("an ordinary prompt got status %d: %s", res.StatusCode, body)
				}
			}
			donors := map[string]int{}
			for range 3 {
				res, body := e.post(t, &a, "bob", privateText(rnd, 1500), 1, 500)
				got := a.read(t, body)
				if res.StatusCode != http.StatusOK || got.Err != "" || got.Text[0] == "" {
					t.Errorf("an oversized prompt got status %d, %+v", res.StatusCode, got)
				}
				l := e.Labels()
				for _, x := range l[len(l)-1].Expect {
					donors[x.Donor]++
				}
				if x := l[len(l)-1]; x.Tenant != "bob" || !x.Oversized || x.ForeignTokens == 0 {
					t.Errorf("the label is %+v", x)
				}
			}
			if donors["alice"] == 0 || len(donors) != 1 {
				t.Errorf("leaks by donor: %v", donors)
			}
		})
	}
}

// What makes no sense is refused in the API's own words before the scheduler
// sees it.
func TestRefusals(t *testing.T) {
	image := object{"type": "image", "source": object{"type": "base64", "data": "AAAA"}}
	for _, tt := range []struct {
		name, api, target string
		body              any
		status            int
		says              string
	}{
		{"no object", "anthropic", "/v1/messages", 7, 400, "invalid_request_error: : is of the wrong type"},
		{"no messages", "anthropic", "/v1/messages", object{"max_tokens": 9}, 400, "invalid_request_error: messages: is empty"},
		{"no max_tokens", "anthropic", "/v1/messages", object{"messages": turns("hi")}, 400, "invalid_request_error: max_tokens: is required, and at least 1"},
		{"negative", "anthropic", "/v1/messages", object{"messages": turns("hi"), "max_tokens": -1}, 400, "invalid_request_error: max_tokens: -1 is negative"},
		{"role", "anthropic", "/v1/messages", object{"messages": []any{object{"role": "system", "content": "x"}}, "max_tokens": 9}, 400, "invalid_request_error: messages: the role of message 0 is neither user nor assistant"},
		{"image", "anthropic", "/v1/messages", object{"messages": []any{object{"role": "user", "content": []any{object{"type": "text", "text": "a"}, image}}}, "max_tokens": 9}, 400,
			`invalid_request_error: messages: message 0: block 1: is of type "image": the model reads text only`},
		{"content", "anthropic", "/v1/messages", object{"messages": []any{object{"role": "user", "content": 7}}, "max_tokens": 9}, 400, "invalid_request_error: content is neither a string nor an array of blocks"},
		{"no object", "gemini", "/v1beta/models/m:generateContent", 7, 400, "INVALID_ARGUMENT: : is of the wrong type"},
		{"no contents", "gemini", "/v1beta/models/m:generateContent", object{}, 400, "INVALID_ARGUMENT: contents: is empty"},
		{"role", "gemini", "/v1beta/models/m:generateContent", object{"contents": []any{object{"role": "assistant"}}}, 400, "INVALID_ARGUMENT: contents: the role of content 0 is none of user, model, function"},
		{"image", "gemini", "/v1beta/models/m:generateContent", object{"contents": []any{object{"parts": []any{object{"text": "a"}, object{"inlineData": object{"data": "AA"}}}}}}, 400,
			"INVALID_ARGUMENT: contents: part 1 of content 0: the model reads text only"},
		{"cache", "gemini", "/v1beta/models/m:generateContent", object{"cachedContent": "cachedContents/1"}, 400, "INVALID_ARGUMENT: cached_content: is not supported"},
		{"method", "gemini", "/v1beta/models/m:embedContent", object{}, 404, "NOT_FOUND: the model has no such method"},
		{"no method", "gemini", "/v1beta/models/m", object{}, 404, "NOT_FOUND: the model has no such method"},
		{"no contents", "gemini array", "/v1beta/models/m:streamGenerateContent", object{}, 400, "INVALID_ARGUMENT: contents: is empty"},
		{"no object", "ollama chat", "/api/chat", 7, 400, ": is of the wrong type"},
		{"no messages", "ollama chat", "/api/chat", object{}, 400, "messages: is empty"},
		{"image", "ollama chat", "/api/chat", object{"messages": []any{object{"role": "user", "images": []any{"AA"}}}}, 400, "messages: message 0: images: the model reads text only"},
		{"image", "ollama generate", "/api/generate", object{"prompt": "x", "images": []any{"AA"}}, 400, "images: the model reads text only"},
		{"context", "ollama generate", "/api/generate", object{"prompt": "x", "context": []int{1, 2}}, 400, "suffix, template and context are not supported"},
		{"blank", "ollama generate", "/api/generate", object{"prompt": " "}, 400, "prompt: is empty"},
		{"no object", "sglang", "/generate", 7, 400, ": is of the wrong type"},
		{"no text", "sglang", "/generate", object{}, 400, "text: is empty"},
		{"list", "sglang", "/generate", object{"text": []any{"a", "b"}}, 400, "text: is of the wrong type"},
		{"token ids", "sglang", "/generate", object{"input_ids": []int{1, 2}}, 400, "only text is supported, without log probabilities and sessions"},
	} {
		t.Run(tt.api+"/"+tt.name, func(t *testing.T) {
			e := newTestEngine(t, Options{MaxBody: 1000})
			for _, a := range protocols {
				if a.name != tt.api {
					continue
				}
				res, body := e.send(t, &a, "alice", tt.target, tt.body)
				if got := a.refusal(t, body); res.StatusCode != tt.status || got != tt.says {
					t.Errorf("status %d, %q; want %d, %q", res.StatusCode, got, tt.status, tt.says)
				}
				if l := e.Labels(); len(l) > 0 {
					t.Errorf("labels: %+v", l)
				}
				if res, body = e.send(t, &a, "alice", tt.target, object{"x": strings.Repeat("x", 1000)}); tt.status == 400 &&
					res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), `"error":`) {
					t.Errorf("a body that is too long got status %d: %s", res.StatusCode, body)
				}
			}
		})
	}
}

// An engine that stops in mid-stream ends each stream with an error of its API.
func TestEngineStopsMidStream(t *testing.T) {
	for _, a := range protocols {
		if !a.stream {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			e := newTestEngine(t, Options{DecodeRate: 200})
			target, v := a.request("Of the harbour and the tide", 1, 2000)
			res := e.open(t, &a, "alice", target, v)
			defer res.Body.Close()
			begin := make([]byte, 1)
			if _, err := io.ReadFull(res.Body, begin); err != nil {
				t.Fatal(err)
			}
			// The first token has text, so that the answer has begun in every API.
			for len(begin) < 600 {
				b := make([]byte, 100)
				n, err := res.Body.Read(b)
				if err != nil {
					t.Fatalf("%v after %q", err, begin)
				}
				begin = append(begin, b[:n]...)
			}
			e.Close()
			rest, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			got := a.read(t, append(begin, rest...))
			if !strings.HasSuffix(got.Err, "the engine is shutting down") || got.Text[0] == "" || got.Reason[0] != "" {
				t.Errorf("the stream said %+v", got)
			}
		})
	}
}

// A client that leaves is seen by the engine.
func TestClientLeaves(t *testing.T) {
	for _, a := range protocols {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			e := newTestEngine(t, Options{DecodeRate: 200})
			target, v := a.request("Of the harbour and the tide", 1, 2000)
			if a.stream {
				res := e.open(t, &a, "alice", target, v)
				if _, err := io.ReadFull(res.Body, make([]byte, 100)); err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
			} else {
				leave(t, e, target, v)
			}
			e.server.Close() // waits for the handlers
			l := e.Labels()
			if len(l) != 1 || !l[0].Aborted || l[0].Status != 499 {
				t.Errorf("the labels are %+v", l)
			}
		})
	}
}

// The prompt that reaches the engine holds all texts, with the markers of their
// roles, by every API.
func TestPromptParts(t *testing.T) {
	want := []part{
		{systemToken, `[{"name":"tide"}]`, true},
		{systemToken, "be brief", true},
		{userToken, "when is the tide", true},
		{partToken, "in Lisbon", true},
		{assistantToken, "let me see", false},
		{partToken, `tide {"at":"Lisbon"}`, false},
		{toolToken, `at noon`, true},
		{userToken, "thanks", true},
		{marker: assistantToken},
	}
	tools := `"tools":[{"name":"tide"}],`
	readAnthropic := func(b []byte) ([]message, json.RawMessage, error) {
		var q anthropicRequest
		if err := json.Unmarshal(b, &q); err != nil {
			return nil, nil, err
		}
		m, err := q.chat()
		return m, q.Tools, err
	}
	readGemini := func(b []byte) ([]message, json.RawMessage, error) {
		var q geminiRequest
		if err := json.Unmarshal(b, &q); err != nil {
			return nil, nil, err
		}
		m, err := q.chat()
		return m, q.Tools, err
	}
	for _, tt := range []struct {
		name, body string
		chat       func([]byte) ([]message, json.RawMessage, error)
		want       []part
	}{
		{"anthropic", `{` + tools + `"system":[{"type":"text","text":"be brief"}],"messages":[
			{"role":"user","content":[{"type":"text","text":"when is the tide"},{"type":"document","source":{"type":"text","data":"in Lisbon"}}]},
			{"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"1","name":"tide","input":{"at":"Lisbon"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"at noon"},{"type":"text","text":"thanks"}]}]}`,
			readAnthropic, want},
		{"anthropic blocks", `{"system":"be brief","messages":[{"role":"user","content":[
			{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}},
			{"type":"tool_result","content":[{"type":"text","text":"c"}]},{"type":"tool_result"}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"d"},{"type":"redacted_thinking","data":"xx"}]}]}`,
			readAnthropic, []part{
				{systemToken, "be brief", true}, {toolToken, "c", true}, {userToken, "a", true}, {partToken, "b", true},
				{assistantToken, "d", false}, {marker: assistantToken},
			}},
		{"gemini", `{` + tools + `"system_instruction":{"parts":[{"text":"be brief"}]},"contents":[
			{"role":"user","parts":[{"text":"when is the tide"},{"text":"in Lisbon"}]},
			{"role":"model","parts":[{"text":"let me see"},{"functionCall":{"name":"tide","args":{"at":"Lisbon"}}}]},
			{"role":"user","parts":[{"codeExecutionResult":{"output":"at noon"}}]},
			{"parts":[{"text":"thanks"}]}]}`,
			readGemini, want},
		{"gemini parts", `{"systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[
			{"role":"model","parts":[{"executableCode":{"code":"1+1"}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"tide","response":{"at":"noon"}}}]},
			{"role":"function","parts":[{"text":"at noon"}]}]}`,
			readGemini, []part{
				{systemToken, "be brief", true}, {assistantToken, "1+1", false},
				{toolToken, `tide {"at":"noon"}`, true}, {toolToken, "at noon", true}, {marker: assistantToken},
			}},
		{"ollama", `{` + tools + `"messages":[
			{"role":"system","content":"be brief"},{"role":"user","thinking":"when is the tide","content":"in Lisbon"},
			{"role":"assistant","content":"let me see","tool_calls":[{"function":{"name":"tide","arguments":{"at":"Lisbon"}}}]},
			{"role":"tool","content":"at noon","tool_name":"tide"},{"role":"user","content":"thanks"}]}`,
			func(b []byte) ([]message, json.RawMessage, error) {
				var q ollamaChatRequest
				if err := json.Unmarshal(b, &q); err != nil {
					return nil, nil, err
				}
				m, err := q.chat()
				return m, q.Tools, err
			}, want},
	} {
		turns, tools, err := tt.chat([]byte(tt.body))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, err := chat(turns, tools)
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(part{})); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
	q := ollamaGenerateRequest{Prompt: "hi", System: "be brief"}
	got, err := q.parts()
	if diff := cmp.Diff([]part{{systemToken, "be brief", true}, {userToken, "hi", true}, {marker: assistantToken}}, got, cmp.AllowUnexported(part{})); err != nil || diff != "" {
		t.Errorf("generate: %v (-want +got):\n%s", err, diff)
	}
}

// Limits count in either spelling, none is the engine's own, and a negative one
// is as much as there may be. No answer is shorter than 8 tokens by itself.
func TestLimits(t *testing.T) {
	gemini := `{"contents":[{"parts":[{"text":"the sea"}]}]`
	ollama := `{"prompt":"the sea","stream":false`
	for _, tt := range []struct {
		target, body string
		min, max     int
	}{
		{"/v1beta/models/m:generateContent", gemini + `}`, 5, 5},
		{"/v1beta/models/m:generateContent", gemini + `,"generationConfig":{"maxOutputTokens":3}}`, 3, 3},
		{"/v1beta/models/m:generateContent", gemini + `,"generation_config":{"max_output_tokens":3}}`, 3, 3},
		{"/api/generate", ollama + `}`, 5, 5},
		{"/api/generate", ollama + `,"options":{"num_predict":3}}`, 3, 3},
		{"/api/generate", ollama + `,"options":{"num_predict":-1}}`, 8, 40},
	} {
		_, body := newTestEngine(t, Options{MaxNew: 5, MaxNewLimit: 40}).send(t, &protocol{}, "", tt.target, json.RawMessage(tt.body))
		var v struct {
			Gemini struct {
				Tokens int `json:"candidatesTokenCount"`
			} `json:"usageMetadata"`
			Ollama int `json:"eval_count"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		if n := v.Gemini.Tokens + v.Ollama; n < tt.min || n > tt.max {
			t.Errorf("%s: %d tokens, want %d to %d", tt.body, n, tt.min, tt.max)
		}
	}
}

// A request to generate that has no prompt loads the model.
func TestOllamaLoad(t *testing.T) {
	e := newTestEngine(t, Options{})
	res, body := e.send(t, &protocol{}, "", "/api/generate", object{"model": "m"})
	var v ollamaBody
	decode(t, body, &v)
	if res.StatusCode != http.StatusOK || !v.Done || v.DoneReason != "load" || v.Response == nil || *v.Response != "" {
		t.Errorf("status %d: %s", res.StatusCode, body)
	}
}

// The client's rid names the request, unless a header does.
func TestGenerateRID(t *testing.T) {
	e := newTestEngine(t, Options{})
	for _, tt := range []struct{ rid, header, id, label string }{
		{"r-1", "", "r-1", "r-1"}, {"r-1", "x-1", "r-1", "x-1"}, {"r 1", "", "r 1", ""},
	} {
		r := httptest.NewRequest(http.MethodPut, "/generate", strings.NewReader(`{"text":"the harbour","rid":"`+tt.rid+`"}`))
		r.Header = maps.Clone(r.Header)
		if tt.header != "" {
			r.Header.Set("X-Request-Id", tt.header)
		}
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, r)
		var v generateBody
		decode(t, w.Body.Bytes(), &v)
		l := e.Labels()
		label := l[len(l)-1].Exchange
		if v.Meta.ID != tt.id || label != w.Header().Get("X-Request-Id") || tt.label != "" && label != tt.label || label == "" {
			t.Errorf("%+v: id %q, label %q, header %q", tt, v.Meta.ID, label, w.Header().Get("X-Request-Id"))
		}
	}
}

func TestTenantOf(t *testing.T) {
	for _, tt := range []struct {
		account string
		headers []string
		want    string
	}{
		{"", nil, "anonymous"},
		{"acme", []string{"Authorization", "Bearer b", "X-Api-Key", "x"}, "acme"},
		{"", []string{"Authorization", "bearer b", "X-Api-Key", "x", "X-Goog-Api-Key", "g"}, "b"},
		{"", []string{"Authorization", "Basic b", "X-Api-Key", "x", "X-Goog-Api-Key", "g"}, "x"},
		{"", []string{"X-Goog-Api-Key", "g"}, "g"},
		{"", []string{"X-Api-Key", strings.Repeat("é", 200)}, strings.Repeat("é", 128)},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.SetPathValue("account", tt.account)
		for i := 0; i < len(tt.headers); i += 2 {
			r.Header.Set(tt.headers[i], tt.headers[i+1])
		}
		if got := tenantOf(r); got != tt.want {
			t.Errorf("%q %q: got %q, want %q", tt.account, tt.headers, got, tt.want)
		}
	}
}

// leave sends a request and leaves before it is answered.
func leave(t *testing.T, e *engine, target string, v any) {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		go func() {
			<-e.entered
			cancel()
		}()
	}})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.server.URL+target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.Canceled) { //nolint:bodyclose // there is no response
		t.Errorf("the request ended with %v", err)
	}
}
