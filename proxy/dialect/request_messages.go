package dialect

import "github.com/tidwall/gjson"

// roleOf maps a role as sent. A role that is not known is taken for the user's,
// whose text counts.
func roleOf(s string) Role {
	switch s {
	case "system", "developer":
		return System
	case "assistant", "model":
		return Assistant
	case "tool", "function":
		return Tool
	}
	return User
}

// messages reads a list of messages or of the items of the Responses API.
func (r *request) messages(v gjson.Result) {
	if !v.IsArray() {
		if !isNull(v) {
			r.misfit("messages", -1, v)
			r.text(User, "messages", -1, v)
		}
		return
	}
	i := 0
	for _, m := range v.All() {
		if m.IsObject() {
			r.message(i, m)
		} else {
			r.misfit("messages[]", i, m)
			r.text(User, "messages[]", i, m)
		}
		i++
	}
}

// eachMessage has read read a list of messages whose content has a form of its
// own. The role of a message that was cut off before its role is taken for the
// assistant's, which makes no donor.
func (r *request) eachMessage(v gjson.Result, read func(i int, role Role, m gjson.Result)) {
	if !v.IsArray() {
		r.messages(v) // says what is wrong
		return
	}
	i := 0
	for _, m := range v.All() {
		role := m.Get("role")
		switch {
		case !m.IsObject():
			r.misfit("messages[]", i, m)
			r.text(User, "messages[]", i, m)
		case r.cut && isNull(role):
			read(i, Assistant, m)
		default:
			if role.Type != gjson.String && !isNull(role) {
				r.misfit("messages[].role", i, role)
			}
			read(i, roleOf(role.Str), m)
		}
		i++
	}
}

// each has read read the elements of a list, which was found at where.
func (r *request) each(where string, v gjson.Result, read func(i int, e gjson.Result)) {
	if !v.IsArray() {
		if !isNull(v) {
			r.misfit(where, -1, v)
		}
		return
	}
	i := 0
	for _, e := range v.All() {
		read(i, e)
		i++
	}
}

// message reads one message or item.
func (r *request) message(i int, v gjson.Result) {
	var role, content, refusal, reasoning, other, details, calls, call, audio, itemType gjson.Result
	for k, f := range v.All() {
		switch k.Str {
		case "role":
			role = f
		case "content":
			content = f
		case "refusal":
			refusal = f
		case "reasoning_content":
			reasoning = f
		case "reasoning":
			other = f
		case "reasoning_details":
			details = f
		case "tool_calls":
			calls = f
		case "function_call":
			call = f
		case "audio":
			audio = f
		case "type":
			itemType = f
		}
	}
	if role.Type != gjson.String && !isNull(role) {
		r.misfit("messages[].role", i, role)
	}
	if isNull(role) && r.item(i, itemType.Str, v) {
		return
	}
	speaker := roleOf(role.Str)
	if r.cut && isNull(role) {
		speaker = Assistant // the role was cut off, and this one makes no donor
	}
	r.content(speaker, i, content)
	r.text(Assistant, "messages[].refusal", i, refusal)
	said := ""
	if !isNull(reasoning) {
		r.text(Assistant, "messages[].reasoning_content", i, reasoning)
		said = reasoning.Str
	}
	if !isNull(other) && !repeats(said, other) {
		r.text(Assistant, "messages[].reasoning", i, other)
		said = other.Str
	}
	if details.IsArray() {
		for _, d := range details.All() {
			if said == "" {
				r.text(Assistant, "messages[].reasoning_details[]", i, detail(d))
			}
			if d.Get("type").Str == "reasoning.encrypted" {
				r.unseen(ReasonEncrypted)
			}
		}
	}
	if calls.IsArray() {
		for _, c := range calls.All() {
			r.call(i, c)
		}
	} else if !isNull(calls) {
		r.misfit("messages[].tool_calls", i, calls)
	}
	if !isNull(call) {
		r.call(i, call)
	}
	if audio.IsObject() {
		r.unseen(ReasonStored)
	}
}

// call reads a tool call that the assistant made earlier.
func (r *request) call(i int, v gjson.Result) {
	if !v.IsObject() {
		r.misfit("messages[].tool_calls[]", i, v)
		return
	}
	for _, key := range [...]string{"function", "custom"} {
		if f := v.Get(key); f.IsObject() {
			v = f
			break
		}
	}
	for k, f := range v.All() {
		switch k.Str {
		case "name":
			r.text(Assistant, "messages[].tool_calls[].function.name", i, f)
		case "arguments":
			r.arguments(Assistant, f)
		case "input": // of a custom tool, which is no JSON
			r.source(Assistant, f)
		}
	}
}

// content reads the content of a message, which is a string or a list of parts.
func (r *request) content(role Role, i int, v gjson.Result) {
	switch {
	case v.IsArray():
		for _, p := range v.All() {
			r.part(role, i, p)
		}
	case v.IsObject():
		r.misfit("messages[].content", i, v)
		r.part(role, i, v)
	default:
		r.text(role, "messages[].content", i, v)
	}
}

// part reads one part of content.
func (r *request) part(role Role, i int, v gjson.Result) {
	if !v.IsObject() {
		r.text(role, "messages[].content[]", i, v)
		return
	}
	known := false
	partType := ""
	for k, f := range v.All() {
		switch k.Str {
		case "type":
			partType = f.Str
		case "text", "refusal":
			r.text(role, "messages[].content[].text", i, f)
			known = true
		case "thinking":
			if f.IsArray() {
				for _, p := range f.All() {
					r.text(role, "messages[].content[].thinking[].text", i, p.Get("text"))
				}
			} else {
				r.text(role, "messages[].content[].thinking", i, f)
			}
			known = true
		}
	}
	switch {
	case isMediaPart(partType):
		if known || !r.typedBlock(role, v) {
			r.unseen(ReasonMedia)
		}
	case !known && !r.typedBlock(role, v): // gateways take Anthropic's blocks too
		r.fault(ReasonShape, "a content part has no text")
	}
}

// item reads an item of the Responses API that is not a message, and says
// whether it is one.
func (r *request) item(i int, itemType string, v gjson.Result) bool {
	switch itemType {
	case "function_call", "custom_tool_call":
		r.call(i, v)
	case "function_call_output", "custom_tool_call_output":
		if out := v.Get("output"); out.IsArray() {
			r.content(Tool, i, out)
		} else {
			r.source(Tool, out)
		}
	case "reasoning":
		for _, key := range [...]string{"summary", "content"} {
			for _, s := range v.Get(key).All() {
				r.text(Assistant, "input[].summary[].text", i, s.Get("text"))
			}
		}
		if !isNull(v.Get("encrypted_content")) {
			r.unseen(ReasonEncrypted)
		}
	case "item_reference":
		r.unseen(ReasonStored)
	default:
		return r.pastItem(i, itemType, v)
	}
	return true
}
