package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// textGeneration speaks the API of Hugging Face's Text Generation Inference,
// on the paths that are its own, and that of the Inference API, which is the
// same for the text models that it serves.
//
// An answer is {generated_text, details}, in a list on some paths. A stream
// sends tokens, of which the special ones are no text, and at its end the whole
// text once more.
type textGeneration struct{}

func (textGeneration) Name() string { return "tgi" }

func (textGeneration) About() About {
	return About{API: "Text Generation Inference, Hugging Face Inference API",
		Paths: []string{"POST /", "POST /generate_stream", "POST /models/{organisation}/{model}"}, Formats: []string{formatJSON, formatSSE}}
}

func (textGeneration) Match(method, path string) bool {
	s := ends(path)
	return method == "POST" && (at(s, 0) == "" || at(s, 0) == "generate_stream" || hubModel(s) != "")
}

// hubModel returns the model that a path of the Inference API names, or "".
func hubModel(s lastSegments) string {
	if at(s, 2) == "models" && (at(s, 3) == "" || at(s, 3) == "hf-inference") {
		return at(s, 1) + "/" + at(s, 0)
	}
	return ""
}

func (textGeneration) Prompt(body []byte, path string, h Header) (Prompt, error) {
	s := ends(path)
	return readRequest("tgi", hubModel(s), body, h, func(r *request, v gjson.Result) {
		r.prompt.Stream = at(s, 0) == "generate_stream" || v.Get("stream").Type == gjson.True
		r.textGeneration(v, at(s, 0) != "generate_stream")
	})
}

// textGeneration reads a request with inputs and parameters. Full says that the
// answer begins with the inputs unless the parameters say otherwise.
func (r *request) textGeneration(v gjson.Result, full bool) {
	inputs := v.Get("inputs")
	if inputs.IsObject() {
		for _, f := range inputs.All() {
			if f.Type == gjson.String || f.IsArray() {
				r.texts(User, "inputs", f)
			}
		}
	} else {
		r.texts(User, "inputs", inputs)
	}
	for k, f := range v.All() {
		if k.Str != "inputs" && k.Str != "parameters" && k.Str != "stream" {
			r.field(k.Str, f)
		}
	}
	if p := v.Get("parameters.return_full_text"); p.Exists() && !isNull(p) {
		full = p.Type == gjson.True
	}
	if full {
		r.echoes(inputs, count(v.Get("parameters.best_of")))
	}
	r.schema(v.Get("parameters.grammar"), 0)
}

func (textGeneration) Decoder(p Prompt, h Header) Decoder {
	t := new(textGenerated)
	return newDecoder(p, h, form{read: t.read, remember: true, single: true})
}

func (textGeneration) Error(status int, message string, h Header) []byte {
	kind := "generation"
	if status >= 400 && status < 500 {
		kind = "validation"
	}
	v := struct {
		Error string `json:"error"`
		Type  string `json:"error_type"`
	}{message, kind}
	if h == nil {
		return marshal(v)
	}
	return ending(h, "error", v, "")
}

// textGenerated reads TGI's answers.
type textGenerated struct{}

// read reads a whole answer, a list of them, or one event.
func (t *textGenerated) read(o *output, v gjson.Result) {
	if !v.IsArray() {
		t.one(o, v)
		return
	}
	i := 0
	for _, e := range v.All() {
		o.base = i
		if e.IsArray() { // several answers to one of several inputs
			for _, f := range e.All() {
				t.one(o, f)
				i++
				o.base = i
			}
			continue
		}
		t.one(o, e)
		i++
	}
}

func (t *textGenerated) one(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	p := place{o.base, Content, blockMain}
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "token":
			if f.IsObject() && f.Get("special").Type != gjson.True {
				o.text(p, "token.text", f.Get("text"))
			}
			known = true
		case "generated_text":
			o.whole(p, "generated_text", f)
			known = known || !isNull(f)
			if f.Type == gjson.String {
				o.choice(o.base).finished = true
			}
		case "summary_text", "translation_text", "answer":
			o.text(p, k.Str, f)
			known = true
		case "details":
			t.details(o, f)
		case "label", "score", "embedding", "sequence": // of other tasks
			known = true
		case "error":
			if !isNull(f) {
				o.failure(errorCodeOf(v, "error_type"))
				known = true
			}
		}
	}
	if !known {
		readOpenAI(o, v) // chat, which is served on some of the same paths
	}
}

// errorCodeOf returns the code that a field of v holds.
func errorCodeOf(v gjson.Result, field string) string {
	if s := shortCode(word(v.Get(field), 64)); s != "" {
		return s
	}
	return errorCode(v.Get("error"))
}

// details reads what an answer says about itself, and the answers that lost
// against it.
func (t *textGenerated) details(o *output, v gjson.Result) {
	c := o.choice(o.base)
	o.finish(c, v.Get("finish_reason"))
	if n := v.Get("generated_tokens"); n.Exists() {
		o.info.CompletionTokens += count(n)
	}
	if n := v.Get("input_length"); n.Exists() {
		o.info.PromptTokens = count(n)
	} else if prefill := v.Get("prefill"); prefill.IsArray() && len(prefill.Raw) > 2 {
		o.info.PromptTokens = strings.Count(prefill.Raw, `"id"`)
	}
	i := o.base + 1
	for _, e := range v.Get("best_of_sequences").All() {
		o.whole(place{i, Content, blockMain}, "best_of_sequences[].generated_text", e.Get("generated_text"))
		i++
	}
}
