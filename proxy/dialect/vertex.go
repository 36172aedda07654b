package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// vertexRaw speaks what Vertex AI passes on to the models of others: Anthropic's
// Messages, or chat completions.
type vertexRaw struct{}

func (vertexRaw) Name() string { return "vertex-raw" }

func (vertexRaw) About() About {
	return About{
		API: "Vertex AI raw predictions: Anthropic, Mistral and others",
		Paths: []string{"POST /v1/projects/{project}/locations/{location}/publishers/anthropic/models/{model}:rawPredict",
			"POST /v1/projects/{project}/locations/{location}/publishers/anthropic/models/{model}:streamRawPredict"},
		Formats: []string{formatJSON, formatSSE},
	}
}

func (vertexRaw) Match(method, path string) bool {
	if method != "POST" || !strings.ContainsAny(path, ":%") {
		return false
	}
	_, action := modelAction(path)
	return action == "rawPredict" || action == "streamRawPredict"
}

func (vertexRaw) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, action := modelAction(path)
	return readRequest("vertex-raw", model, body, h, func(r *request, v gjson.Result) {
		r.prompt.Model = model
		if v.Get("system").Exists() || v.Get("anthropic_version").Exists() {
			r.anthropic(v)
		} else {
			r.fields(v)
		}
		r.prompt.Stream = r.prompt.Stream || strings.HasPrefix(action, "stream")
	})
}

func (vertexRaw) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: newShapes().read, remember: true})
}

func (vertexRaw) Error(status int, message string, h Header) []byte {
	return anthropicRefusal(status, message, h)
}

// vertexPredict speaks Vertex AI's older form of predictions, which self-hosted
// servers offer on a path of their own: instances in, predictions out.
type vertexPredict struct{}

func (vertexPredict) Name() string { return "vertex-predict" }

func (vertexPredict) About() About {
	return About{
		API: "Vertex AI and KServe v1 predictions: TGI, SGLang, own containers",
		Paths: []string{"POST /v1/projects/{project}/locations/{location}/endpoints/{endpoint}:predict", "POST /v1/models/{model}:predict",
			"POST /vertex_generate", "POST /vertex"},
		Formats: []string{formatJSON},
	}
}

func (vertexPredict) Match(method, path string) bool {
	if method != "POST" {
		return false
	}
	s := ends(path)
	if at(s, 1) == "" && (at(s, 0) == "vertex_generate" || at(s, 0) == "vertex") {
		return true
	}
	_, action := modelAction(path)
	return action == "predict"
}

func (vertexPredict) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, _ := modelAction(path)
	return readRequest("vertex-predict", model, body, h, func(r *request, v gjson.Result) {
		r.each("instances", v.Get("instances"), func(_ int, e gjson.Result) {
			if e.IsObject() {
				r.instance(e)
			} else {
				r.texts(User, "instances[]", e)
			}
		})
	})
}

// instance reads one of the things that a prediction is asked for.
func (r *request) instance(v gjson.Result) {
	for k, f := range v.All() {
		if r.field(k.Str, f) {
			continue
		}
		switch k.Str {
		case "text", "inputs", "content", "input", "context", "question":
			r.texts(User, "instances[]."+k.Str, f)
		}
	}
}

func (vertexPredict) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readPredictions})
}

func (vertexPredict) Error(status int, message string, h Header) []byte {
	if h != nil {
		return nil // not a stream
	}
	return googleError(status, message, nil)
}

// readPredictions reads predictions, each a choice of its own.
func readPredictions(o *output, v gjson.Result) {
	list := v.Get("predictions")
	switch {
	case !v.IsObject():
		o.misfit("the body", v)
		return
	case list.Type == gjson.String:
		o.text(place{0, Content, blockMain}, "predictions", list)
		return
	case !list.IsArray():
		if e := v.Get("error"); !isNull(e) {
			o.failure(googleCode(e))
		} else if !readError(o, v) {
			o.fault(ReasonShape, "neither predictions nor an error")
		}
		return
	}
	name(&o.info.Model, v.Get("modelDisplayName"))
	i := 0
	for _, e := range list.All() {
		p := place{i, Content, blockMain}
		i++
		switch {
		case e.Type == gjson.String:
			o.text(p, "predictions[]", e)
		case e.IsObject():
			for _, key := range [...]string{"generated_text", "text", "content", "output"} {
				if f := e.Get(key); f.Type == gjson.String {
					o.text(p, "predictions[]."+key, f)
				}
			}
			if e.Get("choices").IsArray() {
				o.base = p.choice
				readCompletion(o, e)
			}
		}
	}
}
