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
// instead, and end with [DONE] or just so. Models of other makers answer in the
// shape of their maker's API.
//
// A batch goes in with queueRequest, and its answer is fetched by sending the
// request_id that it got to the same path. [Info.Queued] and [Prompt.Poll] name
// that id, so that a caller can join the two.
type workersAI struct{}

func (workersAI) Name() string { return "workers-ai" }

// Match accepts any prefix before /accounts/{id}/ai/run.
func (workersAI) Match(method, path string) bool {
	_, ok := workersAIModel(path)
	return ok && method == "POST"
}

func (workersAI) About() About {
	return About{
		API: "Workers AI native: all text tasks, batches, the {model, input} envelope; AI Gateway's workers-ai and run",
		Paths: []string{"POST /client/v4/accounts/{account}/ai/run/{model}", "POST /client/v4/accounts/{account}/ai/run",
			"POST /v1/{account}/{gateway}/workers-ai/{model}", "POST /v1/{account}/{gateway}/run"},
		Formats: []string{formatJSON, formatSSE},
	}
}

func (workersAI) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, _ := workersAIModel(path)
	return readRequest("workers-ai", model, body, h, func(r *request, v gjson.Result) {
		r.prompt.Model = model
		if input := v.Get("input"); input.IsObject() {
			name(&r.prompt.Model, v.Get("model"))
			r.prompt.Stream = v.Get("stream").Type == gjson.True
			v = input
		}
		r.workersAI(v)
	})
}

func (workersAI) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: newWorkersAIAnswer().read, media: true, remember: true})
}

func (workersAI) Error(status int, message string, h Header) []byte {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	v := struct {
		Result   any       `json:"result"`
		Success  bool      `json:"success"`
		Errors   []failure `json:"errors"`
		Messages []string  `json:"messages"`
	}{Errors: []failure{{status, message}}, Messages: []string{}}
	if h == nil {
		return marshal(v)
	}
	return ending(h, "", v, doneEvent)
}

// workersAIModel returns the model that a native path names, which is "" for
// the path that leaves it to the body, and whether path is a native one at all.
// AI Gateway's own form is /workers-ai/{model}.
func workersAIModel(path string) (string, bool) {
	if !strings.Contains(path, "run") && !strings.Contains(path, "workers-ai") && !strings.Contains(path, "%") {
		return "", false // most paths of other APIs
	}
	s := segments(path)
	for i := range s {
		switch {
		case i+3 < len(s) && s[i] == "accounts" && s[i+2] == "ai" && s[i+3] == "run":
			return strings.Join(s[i+4:], "/"), true
		case s[i] == "v1" && i+4 == len(s) && s[i+3] == "run" && isAccount(s[i+1]): // AI Gateway
			return "", true
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
		case "system": // in the envelope, for Anthropic's models
			r.blocks(System, "system", -1, f)
		case "contents": // and for Google's
			r.gemini(v)
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
			if r.prompt.Poll = word(f, 256); r.prompt.Poll != "" {
				r.unseen(ReasonStored)
			}
		}
	}
}

// batch reads the runs that a request with queueRequest holds.
func (r *request) batch(v gjson.Result) {
	r.each("requests", v, func(i int, e gjson.Result) {
		switch {
		case !e.IsObject():
			r.misfit("requests[]", i, e)
		case e.Get("requests").Exists():
			r.fault(ReasonShape, "a batch inside a batch")
		default:
			r.workersAI(e)
		}
	})
}

// workersAIAnswer reads the replies of Workers AI.
type workersAIAnswer struct{ shapes *shapes }

func newWorkersAIAnswer() *workersAIAnswer { return &workersAIAnswer{newShapes()} }

// read reads a reply or one event of a stream.
func (w *workersAIAnswer) read(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	result := v.Get("result")
	if !result.Exists() {
		w.result(o, v, true)
		return
	}
	name(&o.info.Model, v.Get("model"))
	failed := readError(o, v)
	if e := v.Get("error"); !isNull(e) {
		o.failure(errorCode(e))
		failed = true
	}
	switch {
	case failed && result.IsObject() && len(result.Map()) == 0: // {} beside the errors
	case result.IsObject():
		w.result(o, result, true)
	case result.IsArray(): // labels with scores, which are no text
	case !isNull(result):
		o.text(place{0, Content, blockMain}, "result", result)
	case !failed:
		o.fault(ReasonShape, "neither a result nor an error")
	}
}

// result reads what one run gave. Only the outermost result can be a batch.
func (w *workersAIAnswer) result(o *output, v gjson.Result, outer bool) {
	if w.shapes.known(o, v) {
		return
	}
	i := o.base
	var response, responses, id, status, text, segments gjson.Result
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
		case "summary", "translated_text", "description":
			o.text(place{i, Content, blockMain}, k.Str, f)
		case "text": // of speech
			text = f
			o.text(place{i, Content, blockMain}, "text", f)
		case "segments":
			segments = f
			known = was
		case "results": // of speech, in Deepgram's form
			w.channels(o, f)
		case "output":
			w.shapes.responses.items(o, f)
		case "responses":
			responses = f
		case "request_id":
			name(&o.info.ID, f)
			id = f
		case "status":
			status = f
			known = was
		case "image", "audio", "images", "video":
			o.unseen(ReasonMedia)
		case "p", "shape", "data", "pooling", "vtt", "word_count", "words": // padding, embeddings, the text again
		default:
			known = was
		}
	}
	if !text.Exists() {
		for _, s := range segments.All() {
			o.text(place{i, Content, blockMain}, "segments[].text", s.Get("text"))
			known = true
		}
	}
	switch status.Str {
	case "queued", "running":
		name(&o.info.Queued, id)
	}
	readResponse(o, response)
	if outer && responses.IsArray() {
		w.batch(o, responses)
	}
	if !known && !readError(o, v) {
		o.fault(ReasonShape, "no field that is known to hold a result")
	}
}

// channels reads a transcript in Deepgram's form: alternatives of each channel,
// which are one text each.
func (w *workersAIAnswer) channels(o *output, v gjson.Result) {
	block := 0
	for _, c := range v.Get("channels").All() {
		for _, a := range c.Get("alternatives").All() {
			o.text(place{o.base, Content, block}, "alternatives[].transcript", a.Get("transcript"))
			block++
		}
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

// batch reads the results of a batch, each as a choice of its own.
func (w *workersAIAnswer) batch(o *output, v gjson.Result) {
	for _, e := range v.All() {
		o.base = len(o.choices)
		o.choice(o.base)
		switch result := e.Get("result"); {
		case result.IsObject():
			w.result(o, result, false)
		case result.Type == gjson.String:
			o.source(place{o.base, Content, blockMain}, result)
		case !isNull(e.Get("error")):
			o.failure(errorCode(e.Get("error")))
		case !readError(o, e):
			o.fault(ReasonShape, "an answer of the batch has no result")
		}
	}
}
