package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// anthropicMessages speaks Anthropic's Messages API, as Cloudflare, SGLang,
// vLLM, Ollama, llama.cpp and others serve it too, and its endpoint that counts
// tokens.
//
// An answer is a list of blocks; a stream names the block of each delta, and
// the deltas of several may alternate. A gateway that tries again in the middle
// of a stream sends a second message_start: the client has seen the text of
// both messages, so the blocks of the second are numbered on.
type anthropicMessages struct{}

func (anthropicMessages) Name() string { return "anthropic-messages" }

func (anthropicMessages) About() About {
	return About{
		API: "Anthropic Messages: Anthropic, Workers AI, SGLang, vLLM, Ollama, llama.cpp",
		Paths: []string{"POST /v1/messages", "POST /v1/messages/count_tokens", "POST /anthropic/v1/messages",
			"POST /client/v4/accounts/{account}/ai/v1/messages"},
		Formats: []string{formatJSON, formatSSE},
	}
}

// Match wants a version before /messages: OpenAI's threads have messages too.
func (anthropicMessages) Match(method, path string) bool {
	s, i := ends(path), 0
	if at(s, 0) == "count_tokens" {
		i = 1
	}
	return method == "POST" && at(s, i) == "messages" && (isVersion(at(s, i+1)) || at(s, i+1) == "anthropic")
}

func (anthropicMessages) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return readRequest("anthropic-messages", "", body, h, func(r *request, v gjson.Result) { r.anthropic(v) })
}

func (anthropicMessages) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: newAnthropic().read})
}

func (anthropicMessages) Error(status int, message string, h Header) []byte {
	return anthropicRefusal(status, message, h)
}

// anthropicRefusal returns an error of Anthropic's APIs.
func anthropicRefusal(status int, message string, h Header) []byte {
	type failure struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	kind := errorType(status)
	if kind == "server_error" {
		kind = "api_error"
	}
	v := struct {
		Type  string  `json:"type"`
		Error failure `json:"error"`
	}{"error", failure{kind, message}}
	if h == nil {
		return marshal(v)
	}
	return ending(h, "error", v, "")
}

// anthropicComplete speaks Anthropic's older API of text completions.
type anthropicComplete struct{}

func (anthropicComplete) Name() string { return "anthropic-complete" }

func (anthropicComplete) About() About {
	return About{API: "Anthropic Text Completions (legacy)", Paths: []string{"POST /v1/complete"}, Formats: []string{formatJSON, formatSSE}}
}

func (anthropicComplete) Match(method, path string) bool {
	s := ends(path)
	return method == "POST" && at(s, 0) == "complete" && isVersion(at(s, 1))
}

func (anthropicComplete) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return readRequest("anthropic-complete", "", body, h, func(r *request, v gjson.Result) { r.fields(v) })
}

func (anthropicComplete) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: newAnthropic().read, single: true})
}

func (anthropicComplete) Error(status int, message string, h Header) []byte {
	return anthropicRefusal(status, message, h)
}

// anthropicBatches speaks Anthropic's batches: requests that go in together,
// and whose results are fetched later, in lines.
type anthropicBatches struct{}

func (anthropicBatches) Name() string { return "anthropic-batches" }

func (anthropicBatches) About() About {
	return About{API: "Anthropic Message Batches", Paths: []string{"POST /v1/messages/batches", "GET /v1/messages/batches/{id}/results"},
		Formats: []string{formatJSON, formatLines}}
}

func (anthropicBatches) Match(method, path string) bool {
	s := ends(path)
	switch method {
	case "POST":
		return at(s, 0) == "batches" && at(s, 1) == "messages"
	case "GET":
		return at(s, 0) == "results" && at(s, 2) == "batches" && at(s, 3) == "messages"
	}
	return false
}

func (anthropicBatches) Prompt(body []byte, path string, h Header) (Prompt, error) {
	s := ends(path)
	if at(s, 0) == "results" {
		return Prompt{Poll: at(s, 1), Unseen: []Reason{ReasonStored}}, nil
	}
	return readRequest("anthropic-batches", "", body, h, func(r *request, v gjson.Result) {
		r.each("requests", v.Get("requests"), func(_ int, e gjson.Result) { r.anthropic(e.Get("params")) })
	})
}

func (anthropicBatches) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: newAnthropic().batch})
}

func (anthropicBatches) Error(status int, message string, h Header) []byte {
	return anthropicRefusal(status, message, h)
}

// anthropic reads the answers of Anthropic's APIs.
type anthropic struct {
	from int // the number of the current message's first block
	next int // one more than the highest block so far
}

func newAnthropic() *anthropic { return new(anthropic) }

// read reads a message, a completion or one event.
func (r *anthropic) read(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	if !r.known(o, v) && !readError(o, v) {
		o.fault(ReasonShape, "neither a message nor an event of one")
	}
}

// known reads v and says whether it is of one of Anthropic's APIs.
func (r *anthropic) known(o *output, v gjson.Result) bool {
	switch v.Get("type").Str {
	case "message_start":
		r.from = r.next
		m := v.Get("message")
		o.info.ID, o.info.Model = "", ""
		r.message(o, m)
	case "content_block_start":
		r.block(o, count(v.Get("index")), v.Get("content_block"))
	case "content_block_delta":
		r.delta(o, count(v.Get("index")), v.Get("delta"))
	case "content_block_stop", "ping":
	case "message_delta":
		r.usage(o, v.Get("usage"))
		o.finish(o.choice(o.base), v.Get("delta.stop_reason"))
	case "message_stop":
		o.done = true
	case "message":
		r.message(o, v)
	case "completion":
		r.completion(o, v)
	case "error":
		o.failure(errorCode(v.Get("error")))
	default:
		switch {
		case v.Get("content").IsArray() && (v.Get("stop_reason").Exists() || v.Get("role").Exists()):
			r.message(o, v)
		case v.Get("completion").Type == gjson.String:
			r.completion(o, v)
		case v.Get("input_tokens").Type == gjson.Number:
			r.usage(o, v)
		default:
			return false
		}
	}
	return true
}

// message reads a whole message, or the beginning of one.
func (r *anthropic) message(o *output, v gjson.Result) {
	for k, f := range v.All() {
		switch k.Str {
		case "id":
			name(&o.info.ID, f)
		case "model":
			name(&o.info.Model, f)
		case "stop_reason":
			o.finish(o.choice(o.base), f)
		case "usage":
			r.usage(o, f)
		case "content":
			if !f.IsArray() {
				o.text(place{o.base, Content, r.number(0)}, "content", f)
				continue
			}
			i := 0
			for _, b := range f.All() {
				r.block(o, i, b)
				i++
			}
		}
	}
}

// completion reads the answer of the older API, or a piece of one.
func (r *anthropic) completion(o *output, v gjson.Result) {
	name(&o.info.ID, v.Get("id"))
	name(&o.info.Model, v.Get("model"))
	o.text(place{o.base, Content, 0}, "completion", v.Get("completion"))
	o.finish(o.choice(o.base), v.Get("stop_reason"))
}

// usage reads token counts. They are totals; a prompt's tokens are counted
// apart from those that came out of the cache or went into it.
func (r *anthropic) usage(o *output, v gjson.Result) {
	if n := v.Get("input_tokens"); n.Exists() && !isNull(n) {
		cached := count(v.Get("cache_read_input_tokens"))
		o.info.PromptTokens = count(n) + cached + count(v.Get("cache_creation_input_tokens"))
		o.info.CachedTokens = cached
	}
	if n := v.Get("output_tokens"); n.Exists() {
		o.info.CompletionTokens = count(n)
	}
}

// number returns the number of the current message's block i.
func (r *anthropic) number(i int) int {
	i = min(r.from+i, maxSaid)
	r.next = max(r.next, i+1)
	return i
}

// block reads a whole block, or the beginning of one.
func (r *anthropic) block(o *output, i int, v gjson.Result) {
	n := r.number(i)
	p := place{o.base, Content, n}
	switch t := v.Get("type").Str; {
	case t == "text":
		o.text(p, "content[].text", v.Get("text"))
		for _, c := range v.Get("citations").All() {
			r.citation(o, n, c)
		}
	case t == "thinking":
		p.channel = Reasoning
		o.text(p, "content[].thinking", v.Get("thinking"))
	case t == "redacted_thinking":
		o.unseen(ReasonEncrypted)
	case strings.HasSuffix(t, "tool_use"):
		o.text(place{o.base, ToolID, n}, "content[].id", v.Get("id"))
		o.text(place{o.base, ToolName, n}, "content[].name", v.Get("name"))
		// A stream begins with an empty object, and pieces follow.
		if in := v.Get("input"); in.IsObject() && len(strings.Trim(in.Raw, "{} \t\r\n")) > 0 || in.Type == gjson.String {
			o.arguments(place{o.base, ToolArgs, n}, in)
		}
	case strings.HasSuffix(t, "tool_result"):
		r.result(o, p, v.Get("content"), 0)
	case t == "compaction":
		o.text(p, "content[].content", v.Get("content"))
	case isMediaPart(t) || t == "container_upload":
		o.unseen(ReasonMedia)
	default:
		o.fault(ReasonShape, "a block of an unknown type")
	}
}

// delta reads a piece of block i.
func (r *anthropic) delta(o *output, i int, v gjson.Result) {
	n := r.number(i)
	switch v.Get("type").Str {
	case "text_delta":
		o.text(place{o.base, Content, n}, "delta.text", v.Get("text"))
	case "thinking_delta":
		o.text(place{o.base, Reasoning, n}, "delta.thinking", v.Get("thinking"))
	case "input_json_delta":
		o.arguments(place{o.base, ToolArgs, n}, v.Get("partial_json"))
	case "compaction_delta":
		o.text(place{o.base, Content, n}, "delta.content", v.Get("content"))
	case "citations_delta":
		r.citation(o, n, v.Get("citation"))
	case "signature_delta":
	default:
		o.fault(ReasonShape, "a delta of an unknown type")
	}
}

// citation reads the quotation of a citation and the title of what it is from,
// which stand nowhere else in the answer.
func (r *anthropic) citation(o *output, block int, v gjson.Result) {
	o.text(place{o.base, Content, block + secondBlock}, "citations[].cited_text", v.Get("cited_text"))
	o.text(place{o.base, Content, block + 2*secondBlock}, "citations[].document_title", v.Get("document_title"))
}

// maxResultDepth bounds how deep the result of a server's tool is read.
const maxResultDepth = 8

// result reads what a tool of the server gave: its shape depends on the tool,
// so every field that holds text is read.
func (r *anthropic) result(o *output, p place, v gjson.Result, depth int) {
	switch {
	case v.Type == gjson.String:
		o.text(p, "", v)
	case depth == maxResultDepth:
	case v.IsArray():
		for _, e := range v.All() {
			r.result(o, p, e, depth+1)
		}
	case v.IsObject():
		media := v.Get("type").Str == "base64"
		for k, f := range v.All() {
			switch k.Str {
			case "text", "title", "stdout", "stderr", "content", "source", "data":
				if media {
					o.unseen(ReasonMedia)
				} else {
					r.result(o, p, f, depth+1)
				}
			case "encrypted_content":
				o.unseen(ReasonEncrypted)
			}
		}
	}
}

// batch reads one line of a batch's results, or the batch itself.
func (r *anthropic) batch(o *output, v gjson.Result) {
	result := v.Get("result")
	switch {
	case result.IsObject():
		o.done, o.batch = true, true // each line may be the last
		o.base = len(o.choices)
		o.choice(o.base)
		r.from, r.next = 0, 0
		if m := result.Get("message"); m.IsObject() {
			r.message(o, m)
		} else if e := result.Get("error"); !isNull(e) {
			o.failure(errorCode(e.Get("error")))
		}
	case v.Get("type").Str == "message_batch":
		name(&o.info.ID, v.Get("id"))
		name(&o.info.Queued, v.Get("id"))
	default:
		r.read(o, v)
	}
}
