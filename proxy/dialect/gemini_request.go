package dialect

import "github.com/tidwall/gjson"

// gemini reads a request for content, for embeddings or for a count of tokens.
func (r *request) gemini(v gjson.Result) {
	for _, key := range [...]string{"systemInstruction", "system_instruction"} {
		r.parts(System, v.Get(key)) // wherever it stands, the model reads it first
	}
	for k, f := range v.All() {
		if isNull(f) {
			continue
		}
		switch k.Str {
		case "contents":
			if f.IsArray() {
				for _, c := range f.All() {
					r.parts(User, c)
				}
			} else {
				r.parts(User, f)
			}
		case "content": // of a request for an embedding
			r.parts(User, f)
		case "requests":
			r.each("requests", f, func(_ int, e gjson.Result) { r.parts(User, e.Get("content")) })
		case "generateContentRequest", "generate_content_request":
			r.gemini(f)
		case "cachedContent", "cached_content":
			r.unseen(ReasonStored)
		case "tools":
			for _, t := range f.All() {
				for _, key := range [...]string{"functionDeclarations", "function_declarations"} {
					for _, d := range t.Get(key).All() {
						r.text(System, "tools[].functionDeclarations[].name", -1, d.Get("name"))
						r.text(System, "tools[].functionDeclarations[].description", -1, d.Get("description"))
						for _, key := range [...]string{"parameters", "parametersJsonSchema", "response"} {
							r.schema(d.Get(key), 0)
						}
					}
				}
			}
		case "generationConfig", "generation_config":
			for _, key := range [...]string{"responseSchema", "response_schema", "responseJsonSchema"} {
				r.schema(f.Get(key), 0)
			}
		}
	}
}

// parts reads a content: a role and its parts. Without a role of its own it
// has the given one.
func (r *request) parts(role Role, v gjson.Result) {
	if !v.IsObject() {
		r.text(role, "contents[]", -1, v)
		return
	}
	if s := v.Get("role"); s.Exists() && role != System {
		role = roleOf(s.Str)
	} else if r.cut && role == User {
		role = Assistant // the role was cut off, and this one makes no donor
	}
	list := v.Get("parts")
	if list.IsObject() {
		r.geminiPart(role, list)
		return
	}
	r.each("contents[].parts", list, func(_ int, p gjson.Result) { r.geminiPart(role, p) })
}

// geminiPart reads one part.
func (r *request) geminiPart(role Role, v gjson.Result) {
	if !v.IsObject() {
		r.misfit("contents[].parts[]", -1, v)
		r.text(role, "contents[].parts[]", -1, v)
		return
	}
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "text":
			r.text(role, "parts[].text", -1, f)
		case "functionCall", "function_call":
			r.text(Assistant, "parts[].functionCall.name", -1, f.Get("name"))
			r.source(Assistant, f.Get("args"))
		case "functionResponse", "function_response":
			r.source(Tool, f.Get("response"))
		case "executableCode", "executable_code":
			r.text(Assistant, "parts[].executableCode.code", -1, f.Get("code"))
		case "codeExecutionResult", "code_execution_result":
			r.text(Tool, "parts[].codeExecutionResult.output", -1, f.Get("output"))
		case "inlineData", "fileData", "inline_data", "file_data":
			r.unseen(ReasonMedia)
		case "thoughtSignature", "thought_signature":
		default:
			continue
		}
		known = true
	}
	if !known {
		r.fault(ReasonShape, "parts[] has no text")
	}
}
