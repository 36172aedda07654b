package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// The blocks of one choice's content and reasoning. Tool calls count theirs
// from zero, in channels of their own.
const (
	blockMain       = 0
	blockTranscript = 1 // content: what the audio of the answer says
	blockResponse   = 2 // content: Workers AI's own field, where it differs from the choices
	blockOther      = 1 // reasoning: a second field with another text
	blockDetails    = 2 // reasoning: the detailed list, where it differs
)

// readMessage reads a message or a delta of choice i.
func readMessage(o *output, i int, c *choice, v gjson.Result) {
	var reasoning, other, details gjson.Result
	for k, f := range v.All() {
		switch k.Str {
		case "content":
			readContent(o, i, f)
		case "refusal":
			o.text(place{i, Refusal, blockMain}, "refusal", f)
		case "reasoning_content":
			reasoning = f
		case "reasoning":
			other = f
		case "reasoning_details":
			details = f
		case "tool_calls":
			readToolCalls(o, i, c, f)
		case "function_call":
			if f.IsObject() {
				readFunction(o, i, 0, f)
			} else if !isNull(f) {
				o.misfit("function_call", f)
			}
		case "audio":
			if f.IsObject() {
				o.text(place{i, Content, blockTranscript}, "audio.transcript", f.Get("transcript"))
				o.unseen(ReasonMedia)
			}
		case "images":
			if f.IsArray() && f.Get("0").Exists() {
				o.unseen(ReasonMedia)
			}
		}
	}
	if reasoning.Exists() || other.Exists() || details.Exists() {
		readReasoning(o, i, reasoning, other, details)
	}
}

// readReasoning reads the three fields in which servers send reasoning. Some
// send the same text in two of them; it is given once, and also not again if
// the second was cut off.
func readReasoning(o *output, i int, reasoning, other, details gjson.Result) {
	p := place{i, Reasoning, blockMain}
	said := ""
	if !isNull(reasoning) {
		o.text(p, "reasoning_content", reasoning)
		said = reasoning.Str
	}
	if !isNull(other) && !repeats(said, other) {
		if said != "" {
			p.block = blockOther
		}
		o.text(p, "reasoning", other)
		said = other.Str
	}
	if !details.IsArray() {
		return
	}
	same, rest := true, said
	for _, d := range details.All() {
		if d.Get("type").Str == "reasoning.encrypted" {
			o.unseen(ReasonEncrypted)
		}
		var ok bool
		if rest, ok = strings.CutPrefix(rest, detail(d).Str); !ok {
			same = false
		}
	}
	if same {
		return
	}
	p.block = blockMain
	if said != "" {
		p.block = blockDetails
	}
	for _, d := range details.All() {
		o.text(p, "reasoning_details[]", detail(d))
	}
}

// repeats says whether v says nothing beyond what another field said.
func repeats(said string, v gjson.Result) bool {
	return v.Type == gjson.String && said != "" && strings.HasPrefix(said, v.Str)
}

// detail returns the text of one element of reasoning_details.
func detail(v gjson.Result) gjson.Result {
	if t := v.Get("text"); t.Exists() {
		return t
	}
	return v.Get("summary")
}

// readContent reads content, which is a string or, from Mistral, a list of
// parts. Parts join to one text, as the parts of a stream do.
func readContent(o *output, i int, v gjson.Result) {
	p := place{i, Content, blockMain}
	switch {
	case v.IsArray():
		for _, part := range v.All() {
			readPart(o, i, part)
		}
	case v.IsObject() && v.Get("text").Type == gjson.String:
		o.misfit("content", v)
		readPart(o, i, v)
	default:
		o.text(p, "content", v)
	}
}

// readPart reads one part of content.
func readPart(o *output, i int, v gjson.Result) {
	p := place{i, Content, blockMain}
	if !v.IsObject() {
		o.text(p, "content[]", v)
		return
	}
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "text":
			o.text(p, "content[].text", f)
			known = true
		case "refusal":
			o.text(place{i, Refusal, blockMain}, "content[].refusal", f)
			known = true
		case "thinking":
			t := place{i, Reasoning, blockMain}
			if f.IsArray() {
				for _, part := range f.All() {
					o.text(t, "content[].thinking[].text", part.Get("text"))
				}
			} else {
				o.text(t, "content[].thinking", f)
			}
			known = true
		}
	}
	if known {
		return
	}
	switch t := v.Get("type").Str; {
	case isMediaPart(t):
		o.unseen(ReasonMedia)
	case t != "reference": // Mistral's citations, by number
		o.fault(ReasonShape, "content[] has no text")
	}
}

// isMediaPart says whether the type of a content part names media.
func isMediaPart(partType string) bool {
	for _, m := range [...]string{"image", "audio", "video", "file", "document"} {
		if strings.Contains(partType, m) {
			return true
		}
	}
	return false
}

// readToolCalls reads the tool calls of a message or a delta.
func readToolCalls(o *output, i int, c *choice, v gjson.Result) {
	if !v.IsArray() {
		if !isNull(v) {
			o.misfit("tool_calls", v)
		}
		return
	}
	for _, call := range v.All() {
		if !call.IsObject() {
			if !isNull(call) {
				o.misfit("tool_calls[]", call)
			}
			continue
		}
		var index, id, function gjson.Result
		for k, f := range call.All() {
			switch k.Str {
			case "index":
				index = f
			case "id":
				id = f
			case "function", "custom":
				if f.IsObject() {
					function = f
				}
			}
		}
		if !function.Exists() {
			function = call // Workers AI's own form
		}
		block := c.call(index, id, function.Get("name"))
		o.text(place{i, ToolID, block}, "tool_calls[].id", id)
		readFunction(o, i, block, function)
	}
}

// call returns the block of a tool call, or of a further piece of one. Without
// an index, a new id or a name begins a new call.
func (c *choice) call(index, id, name gjson.Result) int {
	if index.Type == gjson.Number && index.Num >= 0 {
		c.block, c.calls, c.callID = count(index), true, ""
		return c.block
	}
	newID := id.Str != "" && id.Str != c.callID
	switch {
	case !c.calls:
		c.calls = true
	case newID || id.Str == "" && name.Str != "":
		c.block++
	}
	if newID {
		c.callID = word(id, 256)
	}
	return c.block
}

// readFunction reads the name and the arguments of a call.
func readFunction(o *output, i, block int, v gjson.Result) {
	for k, f := range v.All() {
		switch k.Str {
		case "name":
			o.text(place{i, ToolName, block}, "the name of a tool call", f)
		case "arguments":
			o.arguments(place{i, ToolArgs, block}, f)
		case "input": // of OpenAI's custom tools, which is no JSON
			o.source(place{i, ToolArgs, block}, f)
		}
	}
}
