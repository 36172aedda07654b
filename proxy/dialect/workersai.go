package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// workersAI speaks the native API of Cloudflare Workers AI.
//
// The model stands in the path behind /ai/run/ and has slashes; without one,
// the body is {model, input}. A request says what it wants of the model by the
// fields it has: prompt or messages (generation), input (the Responses form),
// text, input_text, query and contexts (the smaller tasks), requests (a batch).
// A reply is {result, success, errors, messages}, or the bare result. The
// result's response is a string, or what JSON mode made: an object, a number.
// Streams send {"response": ..., "p": padding}, some models OpenAI's chunks
// instead, and end with [DONE] or just so.
type workersAI struct{}

func (workersAI) Name() string { return "workers-ai" }

// Match accepts any prefix before /accounts/{id}/ai/run.
func (workersAI) Match(method, path string) bool {
	_, ok := workersAIModel(path)
	return ok && method == "POST"
}

func (workersAI) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, _ := workersAIModel(path)
	p, err := readRequest(body, h, func(r *request, v gjson.Result) {
		r.prompt.Model = model
		if input := v.Get("input"); input.IsObject() {
			name(&r.prompt.Model, v.Get("model"))
			r.prompt.Stream = v.Get("stream").Type == gjson.True
			v = input
		}
		r.workersAI(v)
	})
	if p.Model == "" {
		p.Model = model
	}
	return p, err
}

func (workersAI) Decoder(contentType string) Decoder { return newDecoder(contentType, readWorkersAI) }

// workersAIModel returns the model that a native path names, which is "" for
// the path that leaves it to the body, and whether path is a native one at all.
// AI Gateway's own form is /workers-ai/{model}.
func workersAIModel(path string) (string, bool) {
	s := segments(path)
	for i := range s {
		switch {
		case i+3 < len(s) && s[i] == "accounts" && s[i+2] == "ai" && s[i+3] == "run":
			return strings.Join(s[i+4:], "/"), true
		case s[i] == "workers-ai" && i+1 < len(s) && !isVersion(s[i+1]):
			rest := s[i+1:]
			if rest[0] == "run" {
				rest = rest[1:]
			}
			return strings.Join(rest, "/"), true
		}
	}
	return "", false
}

// workersAI reads the input of one run.
func (r *request) workersAI(v gjson.Result) {
	for k, f := range v.All() {
		if r.field(k.Str, f) || isNull(f) {
			continue
		}
		switch k.Str {
		case "input":
			if f.IsArray() {
				r.messages(f)
			} else {
				r.text(User, "input", -1, f)
			}
		case "text":
			r.texts(User, "text", f)
		case "input_text", "query", "initial_prompt":
			r.text(User, k.Str, -1, f)
		case "contexts":
			r.documents("contexts[]", f)
		case "image", "image_b64", "mask", "mask_image", "audio", "video":
			r.unseen(ReasonMedia)
		case "requests":
			r.batch(f)
		case "request_id": // a poll, whose prompts came with an earlier request
			r.unseen(ReasonStored)
		}
	}
}

// batch reads the runs that a request with queueRequest holds.
func (r *request) batch(v gjson.Result) {
	if !v.IsArray() {
		r.misfit("requests", -1, v)
		return
	}
	i := 0
	for _, e := range v.All() {
		switch {
		case !e.IsObject():
			r.misfit("requests[]", i, e)
		case e.Get("requests").Exists():
			r.fault(ReasonShape, "a batch inside a batch")
		default:
			r.workersAI(e)
		}
		i++
	}
}

// readWorkersAI reads a reply or one event of a stream.
func readWorkersAI(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	result := v.Get("result")
	if !result.Exists() {
		readResult(o, v, true)
		return
	}
	name(&o.info.Model, v.Get("model"))
	failed := readError(o, v)
	if e := v.Get("error"); !isNull(e) {
		o.failure(errorCode(e))
		failed = true
	}
	switch {
	case result.IsObject():
		readResult(o, result, true)
	case result.IsArray(): // labels with scores, which are no text
	case !isNull(result):
		o.text(place{0, Content, blockMain}, "result", result)
	case !failed:
		o.fault(ReasonShape, "neither a result nor an error")
	}
}

// readResult reads what one run gave. Only the outermost result can be a batch.
func readResult(o *output, v gjson.Result, outer bool) {
	i := o.base
	var response, responses gjson.Result
	known := false
	for k, f := range v.All() {
		if readEnvelope(o, k.Str, f) {
			known = true
			continue
		}
		was := known
		known = true
		switch k.Str {
		case "response":
			response = f
		case "tool_calls":
			readToolCalls(o, i, o.choice(i), f)
		case "finish_reason":
			o.finish(o.choice(i), f)
		case "summary", "translated_text", "description", "text":
			o.text(place{i, Content, blockMain}, k.Str, f)
		case "output":
			readItems(o, i, f)
		case "responses":
			responses = f
		case "request_id":
			name(&o.info.ID, f)
		case "p", "shape", "data", "pooling", "vtt": // padding, embeddings, the text again
		case "type":
			if strings.HasPrefix(f.Str, "response.") {
				o.fault(ReasonShape, "an event of the Responses API")
				return
			}
			known = was
		default:
			known = was
		}
	}
	readResponse(o, response)
	if outer && responses.IsArray() {
		readBatch(o, responses)
	}
	if !known && !readError(o, v) {
		o.fault(ReasonShape, "no field that is known to hold a result")
	}
}

// readResponse reads the field that is named so. Some models fill the choices
// of a chat completion with the same text.
func readResponse(o *output, v gjson.Result) {
	p := place{o.base, Content, blockMain}
	switch {
	case !v.Exists():
		return
	case v.IsArray(): // ranks, or strings from JSON mode
		for _, e := range v.All() {
			if e.Type == gjson.String {
				o.source(p, e)
			}
		}
		return
	case v.Type == gjson.String:
		var given strings.Builder
		for _, d := range o.dst[o.from:] {
			if d.Choice == p.choice && d.Channel == Content && d.Block == blockMain {
				given.WriteString(d.Text)
			}
		}
		switch {
		case given.Len() == 0:
		case strings.HasPrefix(given.String(), v.Str):
			return
		default:
			p.block = blockResponse
		}
	}
	o.choice(p.choice)
	o.source(p, v)
}

// readBatch reads the results of a batch, each as a choice of its own.
func readBatch(o *output, v gjson.Result) {
	for _, e := range v.All() {
		o.base = len(o.choices)
		o.choice(o.base)
		switch result := e.Get("result"); {
		case result.IsObject():
			readResult(o, result, false)
		case result.Type == gjson.String:
			o.source(place{o.base, Content, blockMain}, result)
		case !isNull(e.Get("error")):
			o.failure(errorCode(e.Get("error")))
		case !readError(o, e):
			o.fault(ReasonShape, "an answer of the batch has no result")
		}
	}
}

// readItems reads the output items of the Responses API, which some models
// answer with. Every piece of text is a block of its own.
func readItems(o *output, i int, v gjson.Result) {
	if !v.IsArray() {
		if !isNull(v) {
			o.misfit("output", v)
		}
		return
	}
	block := 0
	for _, item := range v.All() {
		switch t := item.Get("type").Str; t {
		case "message":
			for _, part := range item.Get("content").All() {
				o.text(place{i, Content, block}, "output[].content[].text", part.Get("text"))
				o.text(place{i, Refusal, block}, "output[].content[].refusal", part.Get("refusal"))
				block++
			}
		case "reasoning":
			for _, key := range [...]string{"summary", "content"} {
				for _, part := range item.Get(key).All() {
					o.text(place{i, Reasoning, block}, "output[].summary[].text", part.Get("text"))
					block++
				}
			}
			if !isNull(item.Get("encrypted_content")) {
				o.unseen(ReasonEncrypted)
			}
		case "function_call", "custom_tool_call":
			o.text(place{i, ToolID, block}, "output[].call_id", item.Get("call_id"))
			readFunction(o, i, block, item)
			block++
		default:
			o.fault(ReasonShape, "an item of the output is of an unknown type")
		}
	}
}
