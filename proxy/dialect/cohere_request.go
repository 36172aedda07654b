package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// cohereV2 reads a request for chat of version 2.
func (r *request) cohereV2(v gjson.Result) {
	for k, f := range v.All() {
		switch k.Str {
		case "messages":
			r.eachMessage(f, r.cohereMessage)
		case "documents":
			r.cohereDocuments(User, f)
		default:
			r.field(k.Str, f)
		}
	}
}

// cohereMessage reads one message of version 2.
func (r *request) cohereMessage(i int, role Role, v gjson.Result) {
	if c := v.Get("content"); c.IsArray() {
		for _, p := range c.All() {
			if d := p.Get("document"); d.Exists() {
				r.cohereDocument(role, d)
			} else {
				r.part(role, i, p)
			}
		}
	} else {
		r.content(role, i, c)
	}
	r.text(Assistant, "messages[].tool_plan", i, v.Get("tool_plan"))
	for _, c := range v.Get("tool_calls").All() {
		r.call(i, c)
	}
}

// cohereDocuments reads documents: strings, or objects of named strings.
func (r *request) cohereDocuments(role Role, v gjson.Result) {
	r.each("documents", v, func(_ int, d gjson.Result) { r.cohereDocument(role, d) })
}

func (r *request) cohereDocument(role Role, v gjson.Result) {
	switch data := v.Get("data"); {
	case v.Type == gjson.String:
		r.text(role, "documents[]", -1, v)
	case data.Type == gjson.String:
		r.text(role, "documents[].data", -1, data)
	case data.IsObject():
		v = data
		fallthrough
	case v.IsObject():
		for k, f := range v.All() {
			if f.Type == gjson.String && k.Str != "id" && k.Str != "url" {
				r.text(role, "documents[]", -1, f)
			}
		}
	}
}

// cohereV1 reads a request of version 1, of any kind.
func (r *request) cohereV1(v gjson.Result) {
	for k, f := range v.All() {
		if !isNull(f) {
			r.cohereV1Field(k.Str, f)
		}
	}
}

// cohereV1Field reads one field of such a request.
func (r *request) cohereV1Field(key string, v gjson.Result) {
	switch key {
	case "preamble":
		r.text(System, "preamble", -1, v)
	case "message", "text", "query":
		r.text(User, key, -1, v)
	case "texts":
		r.texts(User, "texts", v)
	case "chat_history":
		r.each("chat_history", v, func(i int, m gjson.Result) {
			role := roleOf(strings.ToLower(m.Get("role").Str))
			if m.Get("role").Str == "CHATBOT" {
				role = Assistant
			}
			r.text(role, "chat_history[].message", i, m.Get("message"))
			r.cohereCalls(m.Get("tool_calls"))
			r.cohereResults(m.Get("tool_results"))
		})
	case "documents":
		r.cohereDocuments(User, v)
	case "tool_results":
		r.cohereResults(v)
	case "tools":
		for _, t := range v.All() {
			r.text(System, "tools[].name", -1, t.Get("name"))
			r.text(System, "tools[].description", -1, t.Get("description"))
			r.schema(t.Get("parameter_definitions"), 0)
		}
	case "conversation_id":
		r.unseen(ReasonStored)
	default:
		r.field(key, v)
	}
}

// cohereCalls reads calls of tools that the assistant made earlier.
func (r *request) cohereCalls(v gjson.Result) {
	for _, c := range v.All() {
		r.text(Assistant, "tool_calls[].name", -1, c.Get("name"))
		r.arguments(Assistant, c.Get("parameters"))
	}
}

// cohereResults reads what tools gave.
func (r *request) cohereResults(v gjson.Result) {
	for _, t := range v.All() {
		r.arguments(Assistant, t.Get("call.parameters"))
		for _, out := range t.Get("outputs").All() {
			r.source(Tool, out)
		}
	}
}
