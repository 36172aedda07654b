package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// cohereV2 speaks Cohere's chat of version 2. A stream is server-sent events
// whose data names their type; a block is named by its index, which content and
// tool calls each count from zero.
type cohereV2 struct{}

func (cohereV2) Name() string { return "cohere-v2" }

func (cohereV2) About() About {
	return About{API: "Cohere v2 chat", Paths: []string{"POST /v2/chat"}, Formats: []string{formatJSON, formatSSE}}
}

func (cohereV2) Match(method, path string) bool {
	s := ends(path)
	return method == "POST" && at(s, 0) == "chat" && at(s, 1) == "v2"
}

func (cohereV2) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return readRequest("cohere-v2", "", body, h, func(r *request, v gjson.Result) { r.cohereV2(v) })
}

func (cohereV2) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readCohereV2})
}

func (cohereV2) Error(status int, message string, h Header) []byte {
	if h == nil {
		return marshal(map[string]string{"message": message})
	}
	type delta struct {
		Error  string `json:"error"`
		Finish string `json:"finish_reason"`
	}
	return ending(h, "message-end", struct {
		Type  string `json:"type"`
		Delta delta  `json:"delta"`
	}{"message-end", delta{message, "ERROR"}}, "")
}

// readCohereV2 reads a whole answer or one event.
func readCohereV2(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	name(&o.info.ID, v.Get("id"))
	i := count(v.Get("index"))
	message := v.Get("delta.message")
	switch v.Get("type").Str {
	case "message-start", "content-start", "content-delta":
		content := message.Get("content")
		o.text(place{o.base, Content, i}, "content.text", content.Get("text"))
		o.text(place{o.base, Reasoning, i}, "content.thinking", content.Get("thinking"))
	case "tool-plan-delta":
		o.text(place{o.base, Reasoning, secondBlock}, "tool_plan", message.Get("tool_plan"))
	case "tool-call-start", "tool-call-delta":
		cohereCall(o, i, message.Get("tool_calls"))
	case "content-end", "tool-call-end", "citation-start", "citation-end":
	case "message-end":
		o.done = true
		delta := v.Get("delta")
		if e := delta.Get("error"); !isNull(e) {
			o.failure(errorCode(e))
		}
		o.finish(o.choice(o.base), delta.Get("finish_reason"))
		readCohereUsage(o, delta.Get("usage"))
	default:
		readCohereMessage(o, v)
	}
}

// cohereCall reads call i of a tool, or a piece of it.
func cohereCall(o *output, i int, v gjson.Result) {
	o.text(place{o.base, ToolID, i}, "tool_calls.id", v.Get("id"))
	o.text(place{o.base, ToolName, i}, "tool_calls.function.name", v.Get("function.name"))
	o.arguments(place{o.base, ToolArgs, i}, v.Get("function.arguments"))
}

// readCohereMessage reads a whole answer.
func readCohereMessage(o *output, v gjson.Result) {
	m := v.Get("message")
	if !m.IsObject() {
		if !readError(o, v) {
			o.fault(ReasonShape, "neither a message nor an error")
		}
		return
	}
	o.each("message.content", m.Get("content"), func(i int, part gjson.Result) {
		o.text(place{o.base, Content, i}, "content[].text", part.Get("text"))
		o.text(place{o.base, Reasoning, i}, "content[].thinking", part.Get("thinking"))
	})
	o.text(place{o.base, Reasoning, secondBlock}, "tool_plan", m.Get("tool_plan"))
	o.each("message.tool_calls", m.Get("tool_calls"), func(i int, c gjson.Result) { cohereCall(o, i, c) })
	o.finish(o.choice(o.base), v.Get("finish_reason"))
	readCohereUsage(o, v.Get("usage"))
}

// readCohereUsage reads token counts, of the whole or, failing that, those that
// are billed.
func readCohereUsage(o *output, v gjson.Result) {
	tokens := v.Get("tokens")
	if !tokens.IsObject() {
		tokens = v.Get("billed_units")
	}
	if n := tokens.Get("input_tokens"); n.Exists() {
		o.info.PromptTokens = count(n)
	}
	if n := tokens.Get("output_tokens"); n.Exists() {
		o.info.CompletionTokens = count(n)
	}
	if n := v.Get("cached_tokens"); n.Exists() {
		o.info.CachedTokens = count(n)
	}
}

// cohereV1 speaks Cohere's older chat, text generation and summaries. Streams
// are JSON in lines, and the last one repeats the whole text.
type cohereV1 struct{}

func (cohereV1) Name() string { return "cohere-v1" }

func (cohereV1) About() About {
	return About{API: "Cohere v1 chat, generate, summarize", Paths: []string{"POST /v1/chat", "POST /v1/generate", "POST /v1/summarize"},
		Formats: []string{formatJSON, formatLines, formatSSE}}
}

func (cohereV1) Match(method, path string) bool {
	s := ends(path)
	if method != "POST" || at(s, 1) != "v1" {
		return false
	}
	return at(s, 0) == "chat" || at(s, 0) == "generate" || at(s, 0) == "summarize"
}

func (cohereV1) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return readRequest("cohere-v1", "", body, h, func(r *request, v gjson.Result) { r.cohereV1(v) })
}

func (cohereV1) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readCohereV1, remember: true})
}

func (cohereV1) Error(status int, message string, h Header) []byte {
	if h == nil {
		return marshal(map[string]string{"message": message})
	}
	return ending(h, "", struct {
		IsFinished bool   `json:"is_finished"`
		EventType  string `json:"event_type"`
		Finish     string `json:"finish_reason"`
		Message    string `json:"message"`
	}{true, "stream-end", "ERROR", message}, "")
}

// readCohereV1 reads a whole answer, one line or one event.
func readCohereV1(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	p := place{o.base, Content, blockMain}
	_, isEvent := v.Get("is_finished").Value().(bool)
	if !isEvent {
		if !cohereWhole(o, v) && !readError(o, v) {
			o.fault(ReasonShape, "neither an answer nor an error")
		}
		return
	}
	name(&o.info.ID, v.Get("generation_id"))
	switch v.Get("event_type").Str {
	case "text-generation", "": // text generation names no type
		p.choice += count(v.Get("index"))
		o.text(p, "text", v.Get("text"))
	case "tool-calls-chunk":
		o.text(place{o.base, Reasoning, 0}, "text", v.Get("text"))
		call := v.Get("tool_call_delta")
		i := count(call.Get("index"))
		o.text(place{o.base, ToolName, i}, "tool_call_delta.name", call.Get("name"))
		o.arguments(place{o.base, ToolArgs, i}, call.Get("parameters"))
	case "tool-calls-generation":
		cohereCalls(o, v.Get("tool_calls"))
	}
	if v.Get("is_finished").Type != gjson.True {
		return
	}
	o.done = true
	if f := v.Get("finish_reason"); strings.HasPrefix(f.Str, "ERROR") {
		o.failure(word(f, 64))
	} else {
		o.finish(o.choice(o.base), f)
	}
	if whole := v.Get("response"); whole.IsObject() {
		cohereWhole(o, whole)
	}
}

// cohereWhole reads a whole answer and says whether v is one.
func cohereWhole(o *output, v gjson.Result) bool {
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "id", "generation_id":
			name(&o.info.ID, f)
		case "text", "summary":
			o.whole(place{o.base, Content, blockMain}, k.Str, f)
			known = true
		case "generations":
			o.each("generations", f, func(i int, g gjson.Result) {
				i += o.base
				o.whole(place{i, Content, blockMain}, "generations[].text", g.Get("text"))
				o.finish(o.choice(i), g.Get("finish_reason"))
			})
			known = true
		case "tool_calls":
			cohereCalls(o, f)
		case "finish_reason":
			o.finish(o.choice(o.base), f)
		case "meta":
			readCohereUsage(o, f)
		}
	}
	return known
}

// cohereCalls reads the calls of tools of version 1.
func cohereCalls(o *output, v gjson.Result) {
	i := 0
	for _, c := range v.All() {
		o.whole(place{o.base, ToolName, i}, "tool_calls[].name", c.Get("name"))
		if p := c.Get("parameters"); o.said[place{o.base, ToolArgs, i}] == nil {
			o.arguments(place{o.base, ToolArgs, i}, p) // the pieces of a stream are spaced otherwise
		}
		i++
	}
}
