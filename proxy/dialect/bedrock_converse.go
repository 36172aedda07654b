package dialect

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

// bedrockConverse speaks Bedrock's Converse: one form for every maker's models.
// The frames of a stream name their events in a header.
type bedrockConverse struct{}

func (bedrockConverse) Name() string { return "bedrock-converse" }

func (bedrockConverse) About() About {
	return About{
		API:     "AWS Bedrock Converse",
		Paths:   []string{"POST /model/{model}/converse", "POST /model/{model}/converse-stream"},
		Formats: []string{formatJSON, formatFrames},
	}
}

func (bedrockConverse) Match(method, path string) bool {
	_, ok := bedrockModel(path, "converse", "converse-stream")
	return ok && method == "POST"
}

func (bedrockConverse) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, _ := bedrockModel(path, "converse", "converse-stream")
	return readRequest("bedrock-converse", model, body, h, func(r *request, v gjson.Result) {
		r.prompt.Model = model
		r.prompt.Stream = strings.HasSuffix(path, "stream")
		if strings.Contains(model, ":prompt/") {
			r.unseen(ReasonStored)
		}
		// Wherever it stands, the model reads it first.
		r.each("system", v.Get("system"), func(_ int, b gjson.Result) { r.converseBlock(System, b) })
		for k, f := range v.All() {
			switch k.Str {
			case "messages":
				r.converseMessages(f)
			case "toolConfig":
				r.converseTools(f)
			case "promptVariables":
				for _, e := range f.All() {
					r.text(User, "promptVariables", -1, e.Get("text"))
				}
			}
		}
	})
}

func (bedrockConverse) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readConverseBody, frame: readConverseFrame, single: true})
}

func (bedrockConverse) Error(_ int, message string, h Header) []byte { return bedrockError(message, h) }

// readConverseBody reads a whole answer.
func readConverseBody(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	if !readConverse(o, v) && !readError(o, v) {
		o.fault(ReasonShape, "neither output, usage nor an error")
	}
}

// readConverseFrame reads one frame of a stream.
func readConverseFrame(o *output, m eventstream.Message) {
	if bedrockFailure(o, m) {
		return
	}
	event := frameHeader(m, ":event-type")
	o.payload(m.Payload, func(o *output, v gjson.Result) {
		if !readConverseEvent(o, event, v) {
			o.fault(ReasonShape, "an event of an unknown type")
		}
	})
}

// readConverse reads a whole answer, or an event that is wrapped in its own
// name, as Nova's invocations send it, and says whether v is one.
func readConverse(o *output, v gjson.Result) bool {
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "output":
			if !f.Get("message").IsObject() {
				continue
			}
			o.each("output.message.content", f.Get("message.content"), func(i int, b gjson.Result) { readConverseBlock(o, i, b) })
			known = true
		case "stopReason":
			o.finish(o.choice(o.base), f)
			known = true
		case "usage":
			known = readConverseUsage(o, f) || known
		default:
			if f.IsObject() && readConverseEvent(o, k.Str, f) {
				known = true
			}
		}
	}
	return known
}

// readConverseUsage reads token counts and says whether v has them. Those of
// the cache are counted apart.
func readConverseUsage(o *output, v gjson.Result) bool {
	n := v.Get("inputTokens")
	if !n.Exists() {
		return false
	}
	cached := v.Get("cacheReadInputTokens")
	if !cached.Exists() {
		cached = v.Get("cacheReadInputTokenCount") // Nova
	}
	o.info.CachedTokens = count(cached)
	o.info.PromptTokens = count(n) + count(cached) + count(v.Get("cacheWriteInputTokens"))
	o.info.CompletionTokens = count(v.Get("outputTokens"))
	return true
}

// readConverseBlock reads whole block i.
func readConverseBlock(o *output, i int, v gjson.Result) {
	p := place{o.base, Content, i}
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "text":
			o.text(p, "content[].text", f)
		case "toolUse":
			readConverseCall(o, i, f)
			o.arguments(place{o.base, ToolArgs, i}, f.Get("input"))
		case "reasoningContent":
			readConverseReasoning(o, i, f)
			o.text(place{o.base, Reasoning, i}, "reasoningText.text", f.Get("reasoningText.text"))
		case "citationsContent":
			for _, c := range f.Get("content").All() {
				o.text(p, "citationsContent.content[].text", c.Get("text"))
			}
		case "guardContent":
			o.text(p, "guardContent.text.text", f.Get("text.text"))
		case "image", "video", "document", "audio":
			o.unseen(ReasonMedia)
		default:
			continue
		}
		known = true
	}
	if !known {
		o.fault(ReasonShape, "a block of an unknown type")
	}
}

func readConverseCall(o *output, i int, v gjson.Result) {
	o.text(place{o.base, ToolID, i}, "toolUse.toolUseId", v.Get("toolUseId"))
	o.text(place{o.base, ToolName, i}, "toolUse.name", v.Get("name"))
}

func readConverseReasoning(o *output, i int, v gjson.Result) {
	if v.Get("redactedContent").Exists() {
		o.unseen(ReasonEncrypted)
	}
	o.text(place{o.base, Reasoning, i}, "reasoningContent.text", v.Get("text"))
}

// readConverseEvent reads one event of a stream and says whether it is one.
func readConverseEvent(o *output, event string, v gjson.Result) bool {
	i := count(v.Get("contentBlockIndex"))
	switch event {
	case "messageStart", "contentBlockStop":
	case "contentBlockStart":
		readConverseCall(o, i, v.Get("start.toolUse"))
	case "contentBlockDelta":
		d := v.Get("delta")
		o.text(place{o.base, Content, i}, "delta.text", d.Get("text"))
		o.arguments(place{o.base, ToolArgs, i}, d.Get("toolUse.input"))
		readConverseReasoning(o, i, d.Get("reasoningContent"))
	case "messageStop":
		o.finish(o.choice(o.base), v.Get("stopReason"))
	case "metadata":
		readConverseUsage(o, v.Get("usage"))
	default:
		return false
	}
	return true
}

// converseMessages reads messages whose blocks are named by their only field,
// or by their type, as Anthropic's are.
func (r *request) converseMessages(v gjson.Result) {
	r.eachMessage(v, func(i int, role Role, m gjson.Result) {
		if c := m.Get("content"); !c.IsArray() {
			r.content(role, i, c)
		} else {
			for _, b := range c.All() {
				if b.Get("type").Exists() {
					r.block(role, b)
				} else {
					r.converseBlock(role, b)
				}
			}
		}
		for _, c := range m.Get("tool_calls").All() {
			r.call(i, c)
		}
	})
}

// converseBlock reads one block that is named by its only field.
func (r *request) converseBlock(role Role, v gjson.Result) {
	if v.Type == gjson.String {
		r.text(role, "content[]", -1, v)
		return
	}
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "text":
			r.text(role, "content[].text", -1, f)
		case "toolUse":
			r.text(Assistant, "content[].toolUse.name", -1, f.Get("name"))
			r.arguments(Assistant, f.Get("input"))
		case "toolResult":
			for _, c := range f.Get("content").All() {
				if j := c.Get("json"); j.Exists() {
					r.source(Tool, j)
				} else {
					r.converseBlock(Tool, c)
				}
			}
		case "json":
			r.source(role, f)
		case "guardContent":
			r.text(role, "content[].guardContent.text.text", -1, f.Get("text.text"))
		case "reasoningContent":
			r.text(Assistant, "content[].reasoningContent.reasoningText.text", -1, f.Get("reasoningText.text"))
			if f.Get("redactedContent").Exists() {
				r.unseen(ReasonEncrypted)
			}
		case "document":
			if t := f.Get("source.text"); t.Exists() {
				r.text(role, "content[].document.source.text", -1, t)
			} else if c := f.Get("source.content"); c.IsArray() {
				for _, b := range c.All() {
					r.converseBlock(role, b)
				}
			} else {
				r.unseen(ReasonMedia)
			}
		case "searchResult", "citationsContent":
			r.text(role, "content[].searchResult.title", -1, f.Get("title"))
			for _, c := range f.Get("content").All() {
				r.text(role, "content[].searchResult.content[].text", -1, c.Get("text"))
			}
		case "image", "video", "audio":
			r.unseen(ReasonMedia)
		case "cachePoint":
		default:
			continue
		}
		known = true
	}
	if !known {
		r.fault(ReasonShape, "a content block of an unknown type")
	}
}

// converseTools reads the tools that the model may call.
func (r *request) converseTools(v gjson.Result) {
	for _, t := range v.Get("tools").All() {
		spec := t.Get("toolSpec")
		r.text(System, "toolConfig.tools[].toolSpec.name", -1, spec.Get("name"))
		r.text(System, "toolConfig.tools[].toolSpec.description", -1, spec.Get("description"))
		r.schema(spec.Get("inputSchema.json"), 0)
	}
}
