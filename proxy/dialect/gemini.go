package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// gemini speaks Google's API of contents and parts, as the Gemini API and
// Vertex AI serve it.
//
// The model and the action stand together in the last segment of the path, as
// in models/gemini-2.5-pro:streamGenerateContent. A stream is server-sent
// events if it was asked for with alt=sse, and a JSON array otherwise. Each
// element is a whole response that holds the next pieces; a finish reason may
// stand in every one of them, so it marks no end. Clients of the older kind
// have enumerations sent as numbers.
type gemini struct{}

func (gemini) Name() string { return "gemini" }

func (gemini) About() About {
	return About{
		API: "Gemini API and Vertex AI",
		Paths: []string{"POST /v1beta/models/{model}:generateContent", "POST /v1beta/models/{model}:streamGenerateContent",
			"POST /v1/projects/{project}/locations/{location}/publishers/google/models/{model}:generateContent",
			"POST /v1beta/models/{model}:countTokens", "POST /v1beta/models/{model}:embedContent", "POST /v1beta/models/{model}:batchEmbedContents"},
		Formats: []string{formatJSON, formatSSE, formatArray},
	}
}

// modelAction splits the last segment of a path into model and action.
func modelAction(path string) (model, action string) {
	model, action, ok := strings.Cut(at(ends(path), 0), ":")
	if !ok {
		return "", ""
	}
	return model, action
}

func (gemini) Match(method, path string) bool {
	if method != "POST" || !strings.ContainsAny(path, ":%") {
		return false
	}
	switch _, action := modelAction(path); action {
	case "generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents", "computeTokens":
		return true
	}
	return false
}

func (gemini) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, action := modelAction(path)
	return readRequest("gemini", model, body, h, func(r *request, v gjson.Result) {
		r.prompt.Model = model
		r.prompt.Stream = strings.HasPrefix(action, "stream")
		r.gemini(v)
	})
}

func (gemini) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: newGoogle().read, array: true})
}

func (gemini) Error(status int, message string, h Header) []byte {
	return googleError(status, message, h)
}

// googleError returns an error of Google's APIs.
func googleError(status int, message string, h Header) []byte {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	}
	word := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}[status]
	if word == "" {
		word = "INTERNAL"
	}
	v := struct {
		Error failure `json:"error"`
	}{failure{status, message, word}}
	switch {
	case h == nil:
		return marshal(v)
	case isJSON(mediaType(h.Get("Content-Type"))): // an array, behind one of its elements
		return append(append([]byte(",\n"), marshal(v)...), "\n]"...)
	}
	return ending(h, "", v, "")
}

// google reads the answers of Google's API.
type google struct {
	calls map[int]*googleCall // by candidate
}

// googleCall is the call of a tool whose pieces are coming.
type googleCall struct {
	block int
	path  string // of the argument that the last piece was of
	more  bool   // further pieces belong to it
}

func newGoogle() *google { return &google{map[int]*googleCall{}} }

// read reads a response, or a list of them.
func (g *google) read(o *output, v gjson.Result) {
	if v.IsArray() {
		for _, e := range v.All() {
			g.response(o, e)
		}
		return
	}
	g.response(o, v)
}

func (g *google) response(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	if !g.known(o, v) && !readError(o, v) {
		o.fault(ReasonShape, "neither candidates, usage nor an error")
	}
}

// known reads a response and says whether it is one.
func (g *google) known(o *output, v gjson.Result) bool {
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "responseId":
			name(&o.info.ID, f)
		case "modelVersion":
			name(&o.info.Model, f)
		case "candidates":
			o.each("candidates", f, func(pos int, c gjson.Result) { g.candidate(o, pos, c) })
			known = true
		case "usageMetadata":
			if n := f.Get("promptTokenCount"); n.Exists() {
				o.info.PromptTokens = count(n)
			}
			if n := count(f.Get("candidatesTokenCount")) + count(f.Get("thoughtsTokenCount")); n > 0 {
				o.info.CompletionTokens = n
			}
			if n := f.Get("cachedContentTokenCount"); n.Exists() {
				o.info.CachedTokens = count(n)
			}
			known = true
		case "promptFeedback":
			if b := f.Get("blockReason"); !isNull(b) {
				o.failure(enum(b, nil))
			}
			known = true
		case "error":
			o.failure(googleCode(f))
			known = true
		case "totalTokens":
			o.info.PromptTokens = count(f)
			known = true
		case "embedding", "embeddings", "tokensInfo":
			known = true
		}
	}
	return known
}

// googleCode returns the status of an error, or else its code.
func googleCode(v gjson.Result) string {
	if s := word(v.Get("status"), 64); s != "" {
		return s
	}
	return errorCode(v)
}

// finishReasons names the numbers on which both of Google's APIs agree.
var finishReasons = []string{"", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"}

// enum returns the word of an enumeration that may be sent as a number.
func enum(v gjson.Result, words []string) string {
	if v.Type == gjson.Number {
		if n := count(v); n < len(words) {
			return words[n]
		}
		return strings.Clone(v.Raw[:min(len(v.Raw), 16)])
	}
	return word(v, 64)
}

// candidate reads the candidate at position pos of its list.
func (g *google) candidate(o *output, pos int, v gjson.Result) {
	i := pos
	if n := v.Get("index"); n.Type == gjson.Number {
		i = count(n)
	}
	i += o.base
	c := o.choice(i)
	o.each("candidates[].content.parts", v.Get("content.parts"), func(_ int, part gjson.Result) { g.part(o, i, part) })
	if f := enum(v.Get("finishReason"), finishReasons); f != "" {
		c.finished = true
		if o.info.FinishReason == "" {
			o.info.FinishReason = f
		}
	}
}

// part reads one part of candidate i.
func (g *google) part(o *output, i int, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("parts[]", v)
		return
	}
	thought := v.Get("thought").Type == gjson.True
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "text":
			p := place{i, Content, blockMain}
			if thought {
				p.channel = Reasoning
			}
			o.text(p, "parts[].text", f)
		case "functionCall":
			g.call(o, i, f)
		case "executableCode":
			o.text(place{i, ToolArgs, g.next(i).block}, "parts[].executableCode.code", f.Get("code"))
		case "codeExecutionResult":
			o.text(place{i, Content, blockResponse}, "parts[].codeExecutionResult.output", f.Get("output"))
		case "inlineData", "fileData":
			o.unseen(ReasonMedia)
		case "thoughtSignature":
		default:
			continue
		}
		known = true
	}
	if !known {
		o.fault(ReasonShape, "parts[] has no text")
	}
}

// next begins a new call of candidate i.
func (g *google) next(i int) *googleCall {
	c := g.calls[i]
	switch {
	case c != nil:
		c.block, c.path = c.block+1, ""
	case len(g.calls) < maxChoices:
		c = new(googleCall)
		g.calls[i] = c
	default:
		c = new(googleCall)
	}
	return c
}

// call reads the call of a function, or a piece of one.
func (g *google) call(o *output, i int, v gjson.Result) {
	c := g.calls[i]
	if c == nil || !c.more || v.Get("name").Str != "" {
		c = g.next(i)
	}
	c.more = v.Get("willContinue").Type == gjson.True
	o.text(place{i, ToolID, c.block}, "functionCall.id", v.Get("id"))
	o.text(place{i, ToolName, c.block}, "functionCall.name", v.Get("name"))
	args := place{i, ToolArgs, c.block}
	o.source(args, v.Get("args"))
	for _, piece := range v.Get("partialArgs").All() {
		path := word(piece.Get("jsonPath"), 256)
		for _, key := range [...]string{"stringValue", "numberValue", "boolValue"} {
			value := piece.Get(key)
			if isNull(value) || value.Type == gjson.String && value.Str == "" {
				continue
			}
			if c.path != "" && path != "" && path != c.path {
				o.add(args, "\n") // another argument
			}
			o.source(args, value)
		}
		if path != "" {
			c.path = path
		}
	}
}
