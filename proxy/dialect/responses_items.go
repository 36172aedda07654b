package dialect

import "github.com/tidwall/gjson"

// whole gives what v, the whole text of p, says beyond the pieces that came.
func (o *output) whole(p place, where string, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		o.rest(p, stringOf(v))
	case !isNull(v):
		o.misfit(where, v)
		o.rest(p, sourceOf(v))
	}
}

// wholeSource is whole for a text that may be JSON of any type.
func (o *output) wholeSource(p place, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		o.rest(p, stringOf(v))
	case !isNull(v):
		o.rest(p, sourceOf(v))
	}
}

// part reads one part of a message.
func (r *responses) part(o *output, item, n int, v gjson.Result) {
	p := r.at(o, Content, item, "content", n)
	switch t := v.Get("type").Str; {
	case v.Type == gjson.String:
		o.whole(p, "output[].content", v)
	case t == "refusal":
		p.channel = Refusal
		o.whole(p, "output[].content[].refusal", v.Get("refusal"))
	case t == "reasoning_text":
		o.whole(r.at(o, Reasoning, item, "reasoning", n), "output[].content[].text", v.Get("text"))
	case v.Get("text").Exists():
		o.whole(p, "output[].content[].text", v.Get("text"))
	case v.Get("transcript").Exists():
		o.whole(r.at(o, Content, item, "transcript", 0), "output[].content[].transcript", v.Get("transcript"))
		o.unseen(ReasonMedia)
	case isMediaPart(t):
		o.unseen(ReasonMedia)
	default:
		o.fault(ReasonShape, "a part of the output has no text")
	}
}

// item reads output item number n.
func (r *responses) item(o *output, n int, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("output[]", v)
		return
	}
	args := func(v gjson.Result) { o.wholeSource(r.at(o, ToolArgs, n, "call", 0), v) } // no JSON in a string
	call := func() {
		o.whole(r.at(o, ToolID, n, "call", 0), "output[].call_id", v.Get("call_id"))
		o.whole(r.at(o, ToolName, n, "call", 0), "output[].name", v.Get("name"))
	}
	list := func(c Channel, kind string, v gjson.Result, of func(gjson.Result) gjson.Result) {
		i := 0
		for _, e := range v.All() {
			o.wholeSource(r.at(o, c, n, kind, i), of(e))
			i++
		}
	}
	self := func(v gjson.Result) gjson.Result { return v }
	field := func(name string) func(gjson.Result) gjson.Result {
		return func(v gjson.Result) gjson.Result { return v.Get(name) }
	}
	switch t := v.Get("type").Str; t {
	case "message", "":
		i := 0
		for _, part := range v.Get("content").All() {
			r.part(o, n, i, part)
			i++
		}
	case "reasoning":
		list(Reasoning, "summary", v.Get("summary"), field("text"))
		list(Reasoning, "reasoning", v.Get("content"), field("text"))
		if !isNull(v.Get("encrypted_content")) {
			o.unseen(ReasonEncrypted)
		}
	case "function_call", "mcp_call", "mcp_approval_request":
		call()
		o.wholeArguments(r.at(o, ToolArgs, n, "call", 0), v.Get("arguments"))
		o.wholeSource(r.at(o, Content, n, "output", 0), v.Get("output"))
	case "custom_tool_call":
		call()
		args(v.Get("input"))
	case "code_interpreter_call":
		args(v.Get("code"))
		list(Content, "logs", v.Get("outputs"), field("logs"))
	case "file_search_call":
		list(ToolArgs, "query", v.Get("queries"), self)
		list(Content, "result", v.Get("results"), field("text"))
	case "web_search_call":
		args(v.Get("action.query"))
	case "shell_call", "local_shell_call":
		list(ToolArgs, "command", v.Get("action.commands"), self)
		list(ToolArgs, "command", v.Get("action.command"), self)
	case "shell_call_output":
		list(Content, "stdout", v.Get("output"), field("stdout"))
		list(Content, "stderr", v.Get("output"), field("stderr"))
	case "apply_patch_call":
		args(v.Get("operation.diff"))
	case "computer_call":
		args(v.Get("action"))
	case "image_generation_call":
		o.unseen(ReasonMedia)
		o.whole(r.at(o, Content, n, "revised_prompt", 0), "output[].revised_prompt", v.Get("revised_prompt"))
	case "compaction":
		o.unseen(ReasonEncrypted)
	case "mcp_list_tools", "item_reference":
	default:
		o.fault(ReasonShape, "an item of the output is of an unknown type")
	}
}
