package dialect

import "github.com/tidwall/gjson"

// responses reads one field of a request to the Responses API.
func (r *request) responses(key string, v gjson.Result) {
	if isNull(v) {
		return
	}
	switch key {
	case "input":
		if v.IsArray() {
			r.messages(v)
		} else {
			r.text(User, "input", -1, v)
		}
	case "instructions":
		if v.IsArray() {
			r.messages(v)
		} else {
			r.text(System, "instructions", -1, v)
		}
	case "prompt":
		r.unseen(ReasonStored)
		for _, f := range v.Get("variables").All() {
			if f.IsObject() {
				r.part(User, -1, f)
			} else {
				r.text(User, "prompt.variables", -1, f)
			}
		}
	case "previous_response_id", "conversation":
		r.unseen(ReasonStored)
	case "text":
		r.schema(v.Get("format"), 0)
	default:
		r.field(key, v)
	}
	if key == "tools" {
		for _, t := range v.All() {
			r.text(System, "tools[].server_description", -1, t.Get("server_description"))
			if t.Get("vector_store_ids").Exists() {
				r.unseen(ReasonStored)
			}
		}
	}
}

// pastItem reads an item that the server or one of its tools made earlier, and
// says whether it knows the type.
func (r *request) pastItem(i int, itemType string, v gjson.Result) bool {
	each := func(role Role, v gjson.Result, field string) {
		for _, e := range v.All() {
			if field != "" {
				e = e.Get(field)
			}
			r.source(role, e)
		}
	}
	switch itemType {
	case "mcp_call", "mcp_approval_request":
		r.call(i, v)
		r.source(Tool, v.Get("output"))
	case "code_interpreter_call":
		r.source(Assistant, v.Get("code"))
		each(Tool, v.Get("outputs"), "logs")
	case "file_search_call":
		each(Assistant, v.Get("queries"), "")
		each(Tool, v.Get("results"), "text")
	case "web_search_call":
		r.source(Assistant, v.Get("action.query"))
	case "shell_call", "local_shell_call":
		each(Assistant, v.Get("action.commands"), "")
		each(Assistant, v.Get("action.command"), "")
	case "shell_call_output", "local_shell_call_output", "apply_patch_call_output":
		if out := v.Get("output"); out.IsArray() {
			each(Tool, out, "stdout")
			each(Tool, out, "stderr")
		} else {
			r.source(Tool, out)
		}
	case "apply_patch_call":
		r.source(Assistant, v.Get("operation.diff"))
	case "computer_call":
		r.source(Assistant, v.Get("action"))
	case "computer_call_output", "image_generation_call":
		r.unseen(ReasonMedia)
	case "compaction":
		r.unseen(ReasonEncrypted)
	case "mcp_list_tools", "mcp_approval_response":
	default:
		return false
	}
	return true
}
