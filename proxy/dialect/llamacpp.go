package dialect

import (
	"github.com/tidwall/gjson"
)

// llamaCPP speaks the own API of llama.cpp's server: completions, and fills in
// the middle of code. The last event of a stream repeats the prompt as the
// model was given it, which is no answer and is not read.
type llamaCPP struct{}

func (llamaCPP) Name() string { return "llama.cpp" }

func (llamaCPP) About() About {
	return About{API: "llama.cpp server", Paths: []string{"POST /completion", "POST /completions", "POST /infill"}, Formats: []string{formatJSON, formatSSE}}
}

func (llamaCPP) Match(method, path string) bool {
	switch at(ends(path), 0) {
	case "completion", "completions", "infill":
		return method == "POST"
	}
	return false
}

func (llamaCPP) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readRequest("llama.cpp-"+at(ends(path), 0), "", body, h, func(r *request, v gjson.Result) {
		for k, f := range v.All() {
			switch k.Str {
			case "prompt":
				r.llamaPrompt(f, 0)
			case "input_prefix", "input_suffix":
				r.text(User, k.Str, -1, f)
			case "input_extra":
				for _, e := range f.All() {
					r.text(User, "input_extra[].filename", -1, e.Get("filename"))
					r.text(User, "input_extra[].text", -1, e.Get("text"))
				}
			case "system_prompt": // until 2024
				if f.IsObject() {
					f = f.Get("prompt")
				}
				r.text(System, "system_prompt", -1, f)
			case "image_data":
				r.unseen(ReasonMedia)
			case "json_schema":
				r.schema(f, 0)
			default:
				r.field(k.Str, f)
			}
		}
	})
}

// llamaPrompt reads a prompt: a string, token ids, both mixed, a text with
// media, or a list of these.
func (r *request) llamaPrompt(v gjson.Result, depth int) {
	switch {
	case v.Type == gjson.Number:
		r.unseen(ReasonTokenIDs)
	case v.IsObject():
		r.text(User, "prompt.prompt_string", -1, v.Get("prompt_string"))
		if v.Get("multimodal_data.0").Exists() {
			r.unseen(ReasonMedia)
		}
	case v.IsArray() && depth < 2:
		for _, e := range v.All() {
			r.llamaPrompt(e, depth+1)
		}
	default:
		r.text(User, "prompt", -1, v)
	}
}

func (llamaCPP) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readLlamaCPP, single: true})
}

func (llamaCPP) Error(status int, message string, h Header) []byte {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	v := struct {
		Error failure `json:"error"`
	}{failure{status, message, errorType(status)}}
	if h == nil {
		return marshal(v)
	}
	return ending(h, "", v, "")
}

// readLlamaCPP reads a whole answer, a list of them, or one event.
func readLlamaCPP(o *output, v gjson.Result) {
	if !v.IsArray() {
		readLlamaCompletion(o, v)
		return
	}
	i := 0
	for _, e := range v.All() {
		o.base = i
		readLlamaCompletion(o, e)
		i++
	}
}

func readLlamaCompletion(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	if v.Get("choices").Exists() { // asked for in OpenAI's form
		readOpenAI(o, v)
		return
	}
	i := o.base
	if n := v.Get("index"); n.Type == gjson.Number && o.base == 0 {
		i = count(n)
	}
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "content":
			o.text(place{i, Content, blockMain}, "content", f)
			known = true
		case "reasoning_content":
			o.text(place{i, Reasoning, blockMain}, "reasoning_content", f)
		case "stop":
			known = true
			if f.Type == gjson.True {
				o.choice(i).finished = true
			} else {
				o.choice(i)
			}
		case "stop_type":
			if f.Str != "none" {
				o.finish(o.choice(i), f)
			}
		case "model":
			name(&o.info.Model, f)
		case "tokens_evaluated":
			o.info.PromptTokens = max(o.info.PromptTokens, count(f))
		case "tokens_predicted":
			o.info.CompletionTokens = max(o.info.CompletionTokens, count(f))
		case "tokens_cached":
			known = true
		case "error":
			if !isNull(f) {
				o.failure(errorCode(f))
				known = true
			}
		}
	}
	if !known && !readError(o, v) {
		o.fault(ReasonShape, "neither content nor an error")
	}
}
