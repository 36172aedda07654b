package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	nativeRoute  = "/client/v4/accounts/acme/ai/run/@cf/zai-org/glm-5.3"
	accountRoute = "/client/v4/accounts/acme/ai/v1/chat/completions"
)

// apiServer is an engine behind HTTP. A value on left says that a handler has
// returned.
type apiServer struct {
	*Engine
	url    string
	client *http.Client
	left   chan struct{}
}

func serveAPI(t *testing.T, o Options) *apiServer {
	t.Helper()
	e := newEngine(t, o)
	s := &apiServer{Engine: e, left: make(chan struct{}, 1000)}
	h := e.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { s.left <- struct{}{} }()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	s.url, s.client = srv.URL, srv.Client()
	return s
}

// post sends a body to a route and returns the response with its body read.
func (s *apiServer) post(t *testing.T, route, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+route, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	return s.do(t, q)
}

func (s *apiServer) get(t *testing.T, route string) (*http.Response, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+route, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.do(t, q)
}

func (s *apiServer) do(t *testing.T, q *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := s.client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// strict decodes JSON that has no field which v lacks.
func strict(t *testing.T, data string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
}

// dataOf returns the data of the events of a stream, which must end in [DONE].
func dataOf(t *testing.T, body string) []string {
	t.Helper()
	var data []string
	for frame := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		d, ok := strings.CutPrefix(frame, "data: ")
		if !ok || strings.Contains(d, "\n") {
			t.Fatalf("frame %q", frame)
		}
		data = append(data, d)
	}
	if n := len(data) - 1; n < 1 || data[n] != "[DONE]" {
		t.Fatalf("the stream doesn't end in [DONE]: %q", body)
	}
	return data[:len(data)-1]
}

// apiReply is what a client makes of an answer.
type apiReply struct {
	Text, Reason []string // by choice
	Usage        usage
}

type nativeReply struct {
	Result struct {
		Response     string `json:"response"`
		FinishReason string `json:"finish_reason"`
		Usage        usage  `json:"usage"`
	} `json:"result"`
	Success  bool     `json:"success"`
	Errors   []string `json:"errors"`
	Messages []string `json:"messages"`
}

func readNative(t *testing.T, body string) apiReply {
	var r nativeReply
	strict(t, body, &r)
	if !r.Success || r.Errors == nil || len(r.Errors) > 0 || r.Messages == nil {
		t.Errorf("envelope %+v", r)
	}
	return apiReply{[]string{r.Result.Response}, []string{r.Result.FinishReason}, r.Result.Usage}
}

func readNativeEvents(t *testing.T, body string) apiReply {
	a := apiReply{Text: []string{""}, Reason: []string{""}}
	lengths := make(map[int]bool)
	for _, data := range dataOf(t, body) {
		var f struct {
			Response     *string `json:"response"`
			Padding      string  `json:"p"`
			FinishReason string  `json:"finish_reason"`
			Usage        *usage  `json:"usage"`
		}
		strict(t, data, &f)
		if f.Response == nil || a.Reason[0] != "" {
			t.Fatalf("event %s after %+v", data, a)
		}
		a.Text[0] += *f.Response
		if f.Usage != nil {
			a.Reason[0], a.Usage = f.FinishReason, *f.Usage
			continue
		}
		lengths[len(f.Padding)] = true
	}
	if len(lengths) < 3 || lengths[0] {
		t.Errorf("padding of %d lengths", len(lengths))
	}
	return a
}

type openAIReply struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []struct {
		Index   int    `json:"index"`
		Text    string `json:"text"`
		Message *struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"message"`
		Delta *struct {
			Role    string  `json:"role"`
			Content *string `json:"content"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

func readOpenAI(object string) func(*testing.T, string) apiReply {
	return func(t *testing.T, body string) apiReply {
		var r openAIReply
		strict(t, body, &r)
		if r.Object != object || r.ID == "" || r.Created == 0 || r.Model != "any" || r.Usage == nil {
			t.Errorf("object %+v", r)
		}
		a := apiReply{Usage: *r.Usage}
		for i, c := range r.Choices {
			text := c.Text
			if c.Message != nil {
				if c.Message.Role != "assistant" {
					t.Errorf("role %q", c.Message.Role)
				}
				text = c.Message.Content
			}
			if c.Index != i || c.FinishReason == nil {
				t.Fatalf("choice %d is %+v", i, c)
			}
			a.Text, a.Reason = append(a.Text, text), append(a.Reason, *c.FinishReason)
		}
		return a
	}
}

func readOpenAIEvents(object string) func(*testing.T, string) apiReply {
	return func(t *testing.T, body string) apiReply {
		var a apiReply
		id := ""
		for _, data := range dataOf(t, body) {
			var r openAIReply
			strict(t, data, &r)
			if id == "" {
				id = r.ID
			}
			if r.Object != object || r.ID != id || r.Created == 0 || r.Model != "any" || a.Usage != (usage{}) {
				t.Fatalf("event %s", data)
			}
			if r.Usage != nil {
				if r.Choices == nil || len(r.Choices) > 0 {
					t.Errorf("usage with choices: %s", data)
				}
				a.Usage = *r.Usage
			}
			for _, c := range r.Choices {
				for len(a.Text) <= c.Index {
					a.Text, a.Reason = append(a.Text, ""), append(a.Reason, "")
				}
				if a.Reason[c.Index] != "" {
					t.Errorf("choice %d goes on after its end", c.Index)
				}
				a.Text[c.Index] += c.Text
				if c.Delta != nil && c.Delta.Content != nil {
					if (a.Text[c.Index] == "" && *c.Delta.Content == "") != (c.Delta.Role == "assistant") {
						t.Errorf("the role isn't said first: %s", data)
					}
					a.Text[c.Index] += *c.Delta.Content
				}
				if c.FinishReason != nil {
					a.Reason[c.Index] = *c.FinishReason
				}
			}
		}
		return a
	}
}

// ways are the routes and forms, with a body for a user's message.
var ways = []struct {
	name, route string
	body        string // with %s for the quoted text, and further fields behind
	read        func(*testing.T, string) apiReply
	chat        bool // the text is a message
	several     bool // knows n
}{
	{"native messages", nativeRoute, `{"messages":[{"role":"user","content":%s}]%s}`, readNative, true, false},
	{"native messages, stream", nativeRoute, `{"stream":true,"messages":[{"role":"user","content":%s}]%s}`, readNativeEvents, true, false},
	{"native prompt", nativeRoute, `{"prompt":%s%s}`, readNative, true, false},
	{"native prompt, stream", nativeRoute, `{"stream":true,"prompt":%s%s}`, readNativeEvents, true, false},
	{"native raw prompt", nativeRoute, `{"raw":true,"prompt":%s%s}`, readNative, false, false},
	{"account chat", accountRoute, `{"model":"any","messages":[{"role":"user","content":%s}]%s}`, readOpenAI("chat.completion"), true, true},
	{"chat", "/v1/chat/completions", `{"model":"any","messages":[{"role":"user","content":%s}]%s}`, readOpenAI("chat.completion"), true, true},
	{"chat, parts", "/v1/chat/completions", `{"model":"any","messages":[{"role":"user","content":[{"type":"text","text":%s}]}]%s}`, readOpenAI("chat.completion"), true, true},
	{"chat, stream", "/v1/chat/completions", `{"model":"any","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%s}]%s}`, readOpenAIEvents("chat.completion.chunk"), true, true},
	{"completion", "/v1/completions", `{"model":"any","prompt":%s%s}`, readOpenAI("text_completion"), false, true},
	{"completion, stream", "/v1/completions", `{"model":"any","stream":true,"stream_options":{"include_usage":true},"prompt":%s%s}`, readOpenAIEvents("text_completion"), false, true},
}

// quoted returns s as JSON.
func quoted(s string) string {
	var b bytes.Buffer
	if err := encodeJSON(&b, s); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// TestAPIs asks the same by every route and form, of engines that all begin
// anew, and wants the same answer.
func TestAPIs(t *testing.T) {
	const text = "Is the <tide> & the \"moon\" of the harbour 夜 one, and " + passage + "?"
	var want [2]apiReply
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			s := serveAPI(t, Options{Divisor: 256})
			res, body := s.post(t, w.route, fmt.Sprintf(w.body, quoted(text), `,"max_tokens":150`), "X-Request-Id", "id-1")
			if res.StatusCode != 200 {
				t.Fatalf("status %d: %s", res.StatusCode, body)
			}
			got := w.read(t, body)
			kind := 0
			if w.chat {
				kind = 1
			}
			if want[kind].Text == nil {
				want[kind] = got
			}
			if d := cmp.Diff(want[kind], got); d != "" {
				t.Errorf("another answer than the first (-want +got):\n%s", d)
			}
			markers := 2 * kind
			if u := got.Usage; u.Prompt != CountTokens(text)+markers || u.Completion < 8 || u.Completion > 150 || u.Total != u.Prompt+u.Completion {
				t.Errorf("usage %+v", u)
			}
			if n := CountTokens(got.Text[0]); n < 8 {
				t.Errorf("answer %q", got.Text)
			}
			tenant := "acme"
			if !strings.Contains(w.route, "acme") {
				tenant = "anonymous"
			}
			labels := s.Labels()
			wantLabel := []Label{{Exchange: "id-1", Tenant: tenant, Status: 200, Expect: []Leak{}, PromptTokens: got.Usage.Prompt}}
			if d := cmp.Diff(wantLabel, labels); d != "" {
				t.Errorf("labels (-want +got):\n%s", d)
			}
		})
	}
}

func TestSeveralChoices(t *testing.T) {
	for _, w := range ways {
		if !w.several {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			s := serveAPI(t, Options{Divisor: 256})
			res, body := s.post(t, w.route, fmt.Sprintf(w.body, quoted("What is the hour of the tide?"), `,"max_tokens":40,"n":3`))
			if res.StatusCode != 200 {
				t.Fatalf("status %d: %s", res.StatusCode, body)
			}
			got := w.read(t, body)
			if len(got.Text) != 3 || got.Text[0] == got.Text[1] || got.Text[1] == got.Text[2] {
				t.Errorf("three choices: %q", got.Text)
			}
			one := CountTokens("What is the hour of the tide?")
			if got.Usage.Prompt < one || got.Usage.Prompt > one+2 {
				t.Errorf("the prompt is counted as %d tokens", got.Usage.Prompt)
			}
			if n := len(s.Labels()); n != 1 {
				t.Errorf("%d labels", n)
			}
		})
	}
	t.Run("prompts", func(t *testing.T) {
		s := serveAPI(t, Options{Divisor: 256})
		_, body := s.post(t, "/v1/completions", `{"model":"any","prompt":["one two","three four five"],"n":2,"max_tokens":20}`)
		got := readOpenAI("text_completion")(t, body)
		if len(got.Text) != 4 || got.Usage.Prompt != 5 {
			t.Errorf("two prompts, two choices each: %+v", got)
		}
	})
}

func TestMaxTokens(t *testing.T) {
	s := serveAPI(t, Options{Divisor: 64, MaxNew: 9, MaxNewLimit: 30})
	for _, tt := range []struct {
		route, more string
		most        int
	}{
		{nativeRoute, ``, 9},
		{nativeRoute, `,"max_tokens":12`, 12},
		{nativeRoute, `,"max_tokens":2000`, 30},
		{"/v1/chat/completions", `,"max_tokens":20,"max_completion_tokens":11`, 11},
	} {
		longest := 0
		for i := range 8 {
			_, body := s.post(t, tt.route, fmt.Sprintf(`{"model":"any","messages":[{"role":"user","content":"%s %d"}]%s}`, passage, i, tt.more))
			var u usage
			if tt.route == nativeRoute {
				u = readNative(t, body).Usage
			} else {
				u = readOpenAI("chat.completion")(t, body).Usage
			}
			longest = max(longest, u.Completion)
		}
		if longest != tt.most {
			t.Errorf("%s%s: answers of up to %d tokens, want %d", tt.route, tt.more, longest, tt.most)
		}
	}
}

func TestBadRequests(t *testing.T) {
	s := serveAPI(t, Options{Divisor: 256, MaxBody: 2000})
	type native struct {
		Result   *struct{}       `json:"result"`
		Success  bool            `json:"success"`
		Errors   []envelopeError `json:"errors"`
		Messages []string        `json:"messages"`
	}
	for _, tt := range []struct {
		name, route, body string
		status, code      int
		message           string
	}{
		{"not JSON", nativeRoute, `{"prompt":`, 400, codeIncomplete, "not JSON"},
		{"wrong type", nativeRoute, `{"max_tokens":"many","prompt":"x"}`, 400, codeIncomplete, "max_tokens: is of the wrong type"},
		{"nothing said", nativeRoute, `{}`, 400, codeIncomplete, "messages: is empty"},
		{"blank", nativeRoute, `{"prompt":" "}`, 400, codeIncomplete, "prompt: is empty"},
		{"no such model", "/client/v4/accounts/acme/ai/run/@cf/none", `{"prompt":"x"}`, 400, codeNoModel, "No such model"},
		{"too long a body", nativeRoute, `{"prompt":"` + strings.Repeat("x", 3000) + `"}`, 413, codeTooLarge, "2000 bytes"},
		{"an image", nativeRoute, `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, codeIncomplete, "content part 0"},
		{"over the window", nativeRoute, "", 400, codeTooLong, "is longer than the model's context length (512 tokens)."},
		{"over the window, stream", nativeRoute, "stream", 400, codeTooLong, "(512 tokens)."},

		{"not JSON", "/v1/chat/completions", `[`, 400, 0, "not JSON"},
		{"no messages", "/v1/chat/completions", `{"model":"any"}`, 400, 0, "messages: is empty"},
		{"bad role", "/v1/chat/completions", `{"messages":[{"role":"wizard","content":"x"}]}`, 400, 0, "role of message 0"},
		{"bad content", "/v1/chat/completions", `{"messages":[{"role":"user","content":7}]}`, 400, 0, "content"},
		{"negative", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":-4}`, 400, 0, "max_tokens: -4"},
		{"too many", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"n":99}`, 400, 0, "n: 99"},
		{"token ids", "/v1/completions", `{"prompt":[1,2,3]}`, 400, 0, "prompt is neither"},
		{"echo", "/v1/completions", `{"prompt":"x","echo":true}`, 400, 0, "echo"},
		{"blank", "/v1/completions", `{"prompt":["x",""]}`, 400, 0, "prompt: is empty"},
		{"over the window", "/v1/completions", "", 400, 0, "is longer than the model's context length (512 tokens)."},
	} {
		t.Run(strings.TrimPrefix(tt.route, "/")+" "+tt.name, func(t *testing.T) {
			s := s
			body := tt.body
			if body == "" || body == "stream" {
				s = serveAPI(t, Options{Divisor: 2048})
				body = fmt.Sprintf(`{"prompt":"%s","stream":%v}`, strings.Repeat("word ", 600), body == "stream")
			}
			res, got := s.post(t, tt.route, body)
			if res.StatusCode != tt.status || res.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("status %d, %s", res.StatusCode, got)
			}
			var message string
			if tt.route == "/v1/chat/completions" || tt.route == "/v1/completions" {
				var f struct {
					Object  string  `json:"object"`
					Message string  `json:"message"`
					Type    string  `json:"type"`
					Param   *string `json:"param"`
					Code    int     `json:"code"`
				}
				strict(t, got, &f)
				if f.Object != "error" || f.Type != "BadRequestError" || f.Code != tt.status || f.Param != nil {
					t.Errorf("error %+v", f)
				}
				message = f.Message
			} else {
				var f native
				strict(t, got, &f)
				if f.Success || len(f.Errors) != 1 || f.Errors[0].Code != tt.code || f.Result == nil || f.Messages == nil {
					t.Fatalf("envelope %s", got)
				}
				message = f.Errors[0].Message
			}
			if !strings.Contains(message, tt.message) {
				t.Errorf("message %q, want one with %q", message, tt.message)
			}
		})
	}
}

// TestOversizedIsRefused holds what a correct engine says to a prompt between
// the pool and the window.
func TestOversizedIsRefused(t *testing.T) {
	long := strings.Repeat("word ", 800)
	s := serveAPI(t, Options{Divisor: 1024})
	const message = "Input length (800 tokens) exceeds the maximum allowed length (634 tokens)."
	res, body := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt":%q}`, strings.TrimSpace(long)))
	if res.StatusCode != 400 || !strings.Contains(body, message) {
		t.Errorf("whole: status %d, %s", res.StatusCode, body)
	}
	// A stream of SGLang has begun by then.
	res, body = s.post(t, "/v1/completions", fmt.Sprintf(`{"stream":true,"prompt":%q}`, strings.TrimSpace(long)))
	var f struct {
		Error struct {
			Object  string  `json:"object"`
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    int     `json:"code"`
		} `json:"error"`
	}
	data := dataOf(t, body)
	strict(t, data[0], &f)
	if res.StatusCode != 200 || len(data) != 1 || f.Error.Code != 400 || !strings.HasPrefix(f.Error.Message, message) || f.Error.Type != "BadRequestError" {
		t.Errorf("stream: status %d, %s", res.StatusCode, body)
	}
	for i, l := range s.Labels() {
		if l.Status != 400 || !l.Oversized || l.PromptTokens != 800 || len(l.Expect) > 0 || l.ForeignTokens > 0 {
			t.Errorf("label %d: %+v", i, l)
		}
	}
}

func TestLabelIDs(t *testing.T) {
	s := serveAPI(t, Options{Divisor: 256})
	const body = `{"model":"any","max_tokens":8,"messages":[{"role":"user","content":"x"}]}`
	res, _ := s.post(t, "/v1/chat/completions", body, "X-Request-Id", "ok-1:a.b_c")
	if id := res.Header.Get("X-Request-Id"); id != "ok-1:a.b_c" {
		t.Errorf("a sane id becomes %q", id)
	}
	res, got := s.post(t, "/v1/chat/completions", body, "X-Request-Id", "bad id; drop", "Authorization", "Bearer key-7")
	var r openAIReply
	strict(t, got, &r)
	if id := res.Header.Get("X-Request-Id"); id != r.ID || !strings.HasPrefix(id, "chatcmpl-") {
		t.Errorf("without a sane id the header says %q, the body %q", id, r.ID)
	}
	s.post(t, nativeRoute, body, "Authorization", "Bearer key-7")
	_, ndjson := s.get(t, "/sim/labels")
	var labels []Label
	for line := range strings.Lines(ndjson) {
		var l Label
		strict(t, line, &l)
		labels = append(labels, l)
	}
	if d := cmp.Diff(s.Labels(), labels); d != "" {
		t.Errorf("/sim/labels (-want +got):\n%s", d)
	}
	var who []string
	for _, l := range labels {
		who = append(who, l.Tenant)
	}
	if d := cmp.Diff([]string{"anonymous", "key-7", "acme"}, who); d != "" {
		t.Errorf("tenants (-want +got):\n%s", d)
	}
	if labels[1].Exchange != r.ID {
		t.Errorf("label of %q goes by %q", r.ID, labels[1].Exchange)
	}
}

func TestInfoRoutes(t *testing.T) {
	s := serveAPI(t, Options{Divisor: 64})
	if res, _ := s.get(t, "/health"); res.StatusCode != 200 {
		t.Errorf("/health: %d", res.StatusCode)
	}
	var models struct {
		Object string `json:"object"`
		Data   []struct {
			ID          string `json:"id"`
			Object      string `json:"object"`
			Created     int64  `json:"created"`
			OwnedBy     string `json:"owned_by"`
			Root        string `json:"root"`
			MaxModelLen int    `json:"max_model_len"`
		} `json:"data"`
	}
	_, body := s.get(t, "/v1/models")
	strict(t, body, &models)
	if len(models.Data) != 1 || models.Data[0].ID != defaultModel || models.Data[0].MaxModelLen != 16_384 {
		t.Errorf("/v1/models: %s", body)
	}
	for role, tokens := range map[string]int{"prefill": 10_624, "decode": 32_768} {
		var info nodeInfo
		_, body := s.get(t, "/server_info?role="+role)
		strict(t, body, &info)
		if info.MaxTotalTokens != tokens || info.Mode != role || info.PageSize != 64 || info.InternalStates[0].MemoryUsage.TokenCapacity != tokens {
			t.Errorf("/server_info of %s: %s", role, body)
		}
		if want := min(16_384, tokens) - 1 - 5; info.MaxReqInputLen != want {
			t.Errorf("%s refuses from %d tokens on, want %d", role, info.MaxReqInputLen, want)
		}
	}
	var both struct {
		Prefill        []nodeInfo      `json:"prefill"`
		Decode         []nodeInfo      `json:"decode"`
		InternalStates []internalState `json:"internal_states"`
	}
	_, body = s.get(t, "/get_server_info")
	strict(t, body, &both)
	if len(both.Prefill) != 1 || len(both.Decode) != 1 || len(both.InternalStates) != 2 || both.Prefill[0].Mode != "prefill" {
		t.Errorf("/get_server_info: %s", body)
	}
	for _, route := range []string{"/server_info?role=x", "/metrics?role=x"} {
		if res, _ := s.get(t, route); res.StatusCode != 400 {
			t.Errorf("%s: %d", route, res.StatusCode)
		}
	}
}

func TestMetrics(t *testing.T) {
	s := serveAPI(t, Options{Divisor: 64})
	s.post(t, nativeRoute, `{"prompt":"What is the tide?","max_tokens":8}`)
	s.post(t, nativeRoute, `{`)
	_, body := s.get(t, "/metrics")
	for _, want := range []string{
		`sglang:max_total_num_tokens{engine_type="prefill",model_name="@cf/zai-org/glm-5.3"} 10624`,
		`sglang:max_total_num_tokens{engine_type="decode",model_name="@cf/zai-org/glm-5.3"} 32768`,
		`sglang:context_len{engine_type="prefill",model_name="@cf/zai-org/glm-5.3"} 16384`,
		`sglang:num_pages{engine_type="prefill",model_name="@cf/zai-org/glm-5.3"} 166`,
		`sglang:page_size{engine_type="decode",model_name="@cf/zai-org/glm-5.3"} 64`,
		`sglang:num_requests_total{engine_type="decode",model_name="@cf/zai-org/glm-5.3"} 1`,
		`sglang:prompt_tokens_total{engine_type="decode",model_name="@cf/zai-org/glm-5.3"} 7`,
		`sglang:e2e_request_latency_seconds_count 1`,
		`sglang:time_to_first_token_seconds_count 1`,
		`sglang:http_responses_total{endpoint="POST /client/v4/accounts/{account}/ai/run/{model...}",status_code="400"} 1`,
		`sim:labels_dropped_total 0`,
	} {
		if !slices.Contains(strings.Split(body, "\n"), want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	_, body = s.get(t, "/metrics?role=decode")
	if strings.Contains(body, `"prefill"`) || !strings.Contains(body, `engine_type="decode"`) {
		t.Errorf("/metrics?role=decode says %s", body)
	}
}

// TestDisconnectCancels leaves in the middle of answers.
func TestDisconnectCancels(t *testing.T) {
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream %v", stream), func(t *testing.T) {
			// Five tokens a second: the answer is far from complete.
			s := serveAPI(t, Options{Divisor: 64, DecodeRate: 5})
			ctx, leave := context.WithCancel(t.Context())
			body := fmt.Sprintf(`{"prompt":%q,"stream":%v,"max_tokens":500}`, passage, stream)
			q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+nativeRoute, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("X-Request-Id", "gone")
			if stream {
				res, err := s.client.Do(q)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				leave()
			} else {
				go func() {
					// The engine runs it when it decodes.
					for s.Stats().Decode.Running == 0 {
						select {
						case <-t.Context().Done():
							return
						default:
						}
					}
					leave()
				}()
				if res, err := s.client.Do(q); err == nil {
					res.Body.Close()
					t.Error("an answer came")
				}
			}
			<-s.left
			want := []Label{{Exchange: "gone", Tenant: "acme", Status: 499, Expect: []Leak{}, PromptTokens: CountTokens(passage) + 2, Aborted: true}}
			if d := cmp.Diff(want, s.Labels()); d != "" {
				t.Errorf("labels (-want +got):\n%s", d)
			}
			if st := s.Stats(); st.Cancelled != 1 || st.Finished != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

// TestShutdownBreaksStreams closes the engine under a stream.
func TestShutdownBreaksStreams(t *testing.T) {
	s := serveAPI(t, Options{Divisor: 64, DecodeRate: 5})
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/completions", strings.NewReader(`{"prompt":"x","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	s.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil || bytes.Contains(b, []byte("[DONE]")) {
		t.Errorf("the stream ends as if it were whole: %q", b)
	}
	if res, body := s.post(t, "/v1/completions", `{"prompt":"x"}`); res.StatusCode != 503 {
		t.Errorf("afterwards: %d, %s", res.StatusCode, body)
	}
}

func TestBusyEngine(t *testing.T) {
	s := serveAPI(t, Options{Divisor: 64, MaxPending: 1, MaxTenants: 1})
	res, body := s.post(t, "/v1/chat/completions", `{"n":3,"messages":[{"role":"user","content":"x"}]}`, "Authorization", "Bearer a")
	if res.StatusCode != 503 || !strings.Contains(body, "as many requests as it can") {
		t.Errorf("three answers of an engine that gives one: %d, %s", res.StatusCode, body)
	}
	if res, body := s.post(t, nativeRoute, `{"prompt":"x"}`); res.StatusCode != 429 || !strings.Contains(body, "3040") {
		t.Errorf("a second tenant: %d, %s", res.StatusCode, body)
	}
	if res, _ := s.post(t, "/v1/completions", `{"prompt":"x"}`, "Authorization", "Bearer a"); res.StatusCode != 200 {
		t.Errorf("the first tenant, later: %d", res.StatusCode)
	}
}

func TestByteTokensAreWholeCharacters(t *testing.T) {
	// A vocabulary that the background has filled: the prompt is all bytes.
	s := serveAPI(t, Options{Divisor: 64, MaxPieces: 1})
	_, body := s.post(t, "/v1/completions", `{"model":"any","stream":true,"stream_options":{"include_usage":true},"max_tokens":400,"prompt":"Füße 夜の港 и море 😀 Füße 夜の港"}`)
	got := readOpenAIEvents("text_completion")(t, body)
	if strings.ContainsRune(strings.Trim(got.Text[0], "\ufffd"), '\ufffd') {
		t.Errorf("characters are torn: %q", got.Text[0])
	}
}
