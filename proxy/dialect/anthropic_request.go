package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// fields reads the fields of v that the APIs share.
func (r *request) fields(v gjson.Result) {
	for k, f := range v.All() {
		r.field(k.Str, f)
	}
}

// anthropic reads a request for a message.
func (r *request) anthropic(v gjson.Result) {
	r.blocks(System, "system", -1, v.Get("system")) // wherever it stands, the model reads it first
	for k, f := range v.All() {
		switch k.Str {
		case "messages":
			r.eachMessage(f, func(i int, role Role, m gjson.Result) {
				r.blocks(role, "messages[].content", i, m.Get("content"))
			})
		case "container":
			if f.Type == gjson.String {
				r.unseen(ReasonStored)
			}
		case "output_format", "output_config":
			r.schema(f, 0)
		default:
			r.field(k.Str, f)
		}
	}
}

// blocks reads content of Anthropic's API, which was found at where: a string
// or a list of blocks.
func (r *request) blocks(role Role, where string, i int, v gjson.Result) {
	switch {
	case v.IsArray():
		for _, b := range v.All() {
			r.block(role, b)
		}
	case v.IsObject():
		r.misfit(where, i, v)
		r.block(role, v)
	default:
		r.text(role, where, i, v)
	}
}

// block reads one block.
func (r *request) block(role Role, v gjson.Result) {
	if !v.IsObject() {
		r.text(role, "content[]", -1, v)
		return
	}
	if !r.typedBlock(role, v) {
		r.part(role, -1, v)
	}
}

// typedBlock reads a block of Anthropic's API and says whether v is one.
func (r *request) typedBlock(role Role, v gjson.Result) bool {
	switch t := v.Get("type").Str; {
	case t == "text":
		r.text(role, "content[].text", -1, v.Get("text"))
	case t == "thinking":
		r.text(Assistant, "content[].thinking", -1, v.Get("thinking"))
	case t == "redacted_thinking":
		r.unseen(ReasonEncrypted)
	case t == "compaction":
		r.text(Assistant, "content[].content", -1, v.Get("content"))
	case strings.HasSuffix(t, "tool_use"):
		r.text(Assistant, "content[].name", -1, v.Get("name"))
		r.arguments(Assistant, v.Get("input"))
	case strings.HasSuffix(t, "tool_result"):
		r.toolResult(v.Get("content"), 0)
	case t == "search_result":
		r.text(role, "content[].title", -1, v.Get("title"))
		r.blocks(role, "content[].content", -1, v.Get("content"))
	case t == "document":
		r.text(role, "content[].title", -1, v.Get("title"))
		r.text(role, "content[].context", -1, v.Get("context"))
		switch source := v.Get("source"); source.Get("type").Str {
		case "text":
			r.text(role, "content[].source.data", -1, source.Get("data"))
		case "content":
			r.blocks(role, "content[].source.content", -1, source.Get("content"))
		case "file":
			r.unseen(ReasonStored)
		default:
			r.unseen(ReasonMedia)
		}
	case isMediaPart(t):
		r.unseen(ReasonMedia)
	case t == "container_upload":
		r.unseen(ReasonStored)
	default:
		return false
	}
	return true
}

// toolResult reads what a tool gave, whatever its shape.
func (r *request) toolResult(v gjson.Result, depth int) {
	switch {
	case v.Type == gjson.String:
		r.add(Tool, stringOf(v))
	case depth == maxResultDepth:
	case v.IsArray():
		for _, e := range v.All() {
			r.toolResult(e, depth+1)
		}
	case v.IsObject():
		media := v.Get("type").Str == "base64" || isMediaPart(v.Get("type").Str) && v.Get("type").Str != "document"
		for k, f := range v.All() {
			switch k.Str {
			case "text", "title", "stdout", "stderr", "content", "source", "data":
				if media {
					r.unseen(ReasonMedia)
				} else {
					r.toolResult(f, depth+1)
				}
			case "encrypted_content":
				r.unseen(ReasonEncrypted)
			}
		}
	}
}
