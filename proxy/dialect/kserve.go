package dialect

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// kserveModel returns the model of a path of the KServe protocol that ends with
// one of the actions, and whether it is such a path.
func kserveModel(path string, actions ...string) (string, bool) {
	s := ends(path)
	if !slices.Contains(actions, at(s, 0)) {
		return "", false
	}
	switch {
	case at(s, 2) == "models":
		return at(s, 1), true
	case at(s, 2) == "versions" && at(s, 4) == "models":
		return at(s, 3), true
	}
	return "", false
}

// kserveGenerate speaks Triton's extension for text: text in, text out.
// Whether the events of a stream hold all text so far or the next piece, and
// whether the answer begins with the prompt, is the model's configuration:
// both are found out from the text.
type kserveGenerate struct{}

func (kserveGenerate) Name() string { return "triton-generate" }

func (kserveGenerate) About() About {
	return About{API: "Triton generate: vLLM and TensorRT-LLM backends, KServe",
		Paths: []string{"POST /v2/models/{model}/generate", "POST /v2/models/{model}/generate_stream",
			"POST /v2/models/{model}/versions/{version}/generate"},
		Formats: []string{formatJSON, formatSSE}}
}

func (kserveGenerate) Match(method, path string) bool {
	_, ok := kserveModel(path, "generate", "generate_stream")
	return ok && method == "POST"
}

func (kserveGenerate) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, _ := kserveModel(path, "generate", "generate_stream")
	return readRequest("triton-generate", model, body, h, func(r *request, v gjson.Result) {
		r.prompt.Stream = strings.HasSuffix(path, "_stream") || v.Get("stream").Type == gjson.True
		full := true
		for k, f := range v.All() {
			switch k.Str {
			case "text_input", "prompt":
				r.texts(User, k.Str, f)
			case "input_ids", "prompt_token_ids":
				r.unseen(ReasonTokenIDs)
			case "image", "multi_modal_data":
				r.unseen(ReasonMedia)
			case "exclude_input_in_output", "exclude_input_from_output":
				full = f.Type != gjson.True
			default:
				r.field(k.Str, f)
			}
		}
		for _, key := range [...]string{"exclude_input_in_output", "exclude_input_from_output"} {
			if v.Get("parameters").Get(key).Type == gjson.True {
				full = false
			}
		}
		if full {
			r.echoes(v.Get("text_input"), 1)
		}
	})
}

func (kserveGenerate) Decoder(p Prompt, h Header) Decoder {
	t := &tritonText{grown: map[int]*growth{}}
	return newDecoder(p, h, form{read: t.read, remember: true})
}

func (kserveGenerate) Error(_ int, message string, h Header) []byte { return plainError(message, h) }

// tritonText reads the answers of Triton's extension for text.
type tritonText struct{ grown map[int]*growth }

func (t *tritonText) read(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	known := false
	for k, f := range v.All() {
		switch k.Str {
		case "id":
			name(&o.info.ID, f)
		case "model_name":
			name(&o.info.Model, f)
			known = true
		case "text_output":
			known = true
			o.choice(o.base).finished = true // nothing says which event is the last
			if f.IsArray() {
				i := o.base
				for _, e := range f.All() {
					t.add(o, i, e)
					i++
				}
			} else {
				t.add(o, o.base, f)
			}
		case "error":
			if !isNull(f) {
				o.failure(errorCode(f))
				known = true
			}
		}
	}
	if !known {
		o.fault(ReasonShape, "neither text_output nor an error")
	}
}

// add gives what the text of choice i says beyond what was given.
func (t *tritonText) add(o *output, i int, v gjson.Result) {
	p := place{i, Content, blockMain}
	if v.Type != gjson.String {
		o.text(p, "text_output", v)
		return
	}
	w := t.grown[i]
	if w == nil {
		w = new(growth)
		if len(t.grown) < maxSaid {
			t.grown[i] = w
		}
	}
	w.add(o, p, stringOf(v), gjson.Result{}, -1)
}

// kserveInfer speaks the KServe protocol of tensors, version 2. Texts are
// tensors of the type BYTES: in JSON, or behind it in binary, each text with
// its length in four bytes before it, in which case a header says how long the
// JSON is. Triton's own client sends them so.
type kserveInfer struct{}

func (kserveInfer) Name() string { return "kserve-infer" }

func (kserveInfer) About() About {
	return About{API: "KServe v2 inference: Triton and others",
		Paths:   []string{"POST /v2/models/{model}/infer", "POST /v2/models/{model}/versions/{version}/infer"},
		Formats: []string{formatJSON, "binary tensors"}}
}

func (kserveInfer) Match(method, path string) bool {
	_, ok := kserveModel(path, "infer")
	return ok && method == "POST"
}

// tensorHeader says how many bytes of a body are JSON; the rest are tensors.
const tensorHeader = "Inference-Header-Content-Length"

// jsonSize returns what that header says, or -1.
func jsonSize(h Header) int {
	if h == nil {
		return -1
	}
	n, err := strconv.ParseUint(h.Get(tensorHeader), 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}

func (kserveInfer) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, _ := kserveModel(path, "infer")
	whole := body
	var tail []byte
	if n := jsonSize(h); n >= 0 && n < len(body) {
		body, tail = body[:n], body[n:]
	}
	p, err := readRequest("kserve-infer", model, body, h, func(r *request, v gjson.Result) {
		r.each("inputs", v.Get("inputs"), func(_ int, in gjson.Result) {
			size, ok := tensorSize(in)
			switch {
			case in.Get("datatype").Str == "BYTES":
				r.tensor(in.Get("data"), 0)
				if ok {
					for _, text := range tensorTexts(tail[:min(size, len(tail))]) {
						r.add(User, text)
					}
				}
			case strings.Contains(in.Get("name").Str, "ids"):
				r.unseen(ReasonTokenIDs)
			}
			tail = tail[min(size, len(tail)):]
		})
	})
	if len(whole) > len(body) {
		p.Canonical = digest("tensors", model, string(p.Canonical[:]), string(whole[len(body):]))
	}
	return p, err
}

// tensor reads the texts of a tensor, whatever its shape.
func (r *request) tensor(v gjson.Result, depth int) {
	if v.IsArray() && depth < maxResultDepth {
		for _, e := range v.All() {
			r.tensor(e, depth+1)
		}
	} else if v.Type == gjson.String {
		r.text(User, "inputs[].data", -1, v)
	}
}

// tensorSize returns how many bytes a tensor has behind the JSON.
func tensorSize(v gjson.Result) (int, bool) {
	n := v.Get("parameters.binary_data_size")
	return count(n), n.Type == gjson.Number
}

// tensorTexts returns the texts of a binary tensor.
func tensorTexts(b []byte) []string {
	var all []string
	for len(b) >= 4 && len(all) < maxPieces {
		n := min(int(binary.LittleEndian.Uint32(b)), len(b)-4)
		all = append(all, string(b[4:4+n]))
		b = b[4+n:]
	}
	return all
}

func (kserveInfer) Decoder(p Prompt, h Header) Decoder {
	if n := jsonSize(h); n >= 0 {
		d := &tensors{size: n, whole: newWhole(nil)}
		d.read = d.tail
		maker{form: form{}, prompt: p, header: h}.begin(&d.output)
		return d
	}
	return newDecoder(p, h, form{read: readTensors})
}

func (kserveInfer) Error(_ int, message string, h Header) []byte { return plainError(message, h) }

// readTensors reads an answer that is JSON only.
func readTensors(o *output, v gjson.Result) { readTensorList(o, v, nil) }

// readTensorList reads an answer and the tensors behind it.
func readTensorList(o *output, v gjson.Result, tail []byte) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	name(&o.info.ID, v.Get("id"))
	name(&o.info.Model, v.Get("model_name"))
	if e := v.Get("error"); !isNull(e) {
		o.failure(errorCode(e))
		return
	}
	list := v.Get("outputs")
	if !list.IsArray() {
		o.fault(ReasonShape, "neither outputs nor an error")
		return
	}
	p := place{0, Content, 0}
	for _, out := range list.All() {
		size, ok := tensorSize(out)
		if out.Get("datatype").Str == "BYTES" {
			readTensor(o, &p, out.Get("data"), 0)
			if ok {
				for _, text := range tensorTexts(tail[:min(size, len(tail))]) {
					o.add(p, text)
					p.block++
				}
			}
		}
		tail = tail[min(size, len(tail)):]
	}
}

// readTensor reads the texts of a tensor, each in a block of its own.
func readTensor(o *output, p *place, v gjson.Result, depth int) {
	if v.IsArray() && depth < maxResultDepth {
		for _, e := range v.All() {
			readTensor(o, p, e, depth+1)
		}
	} else if v.Type == gjson.String {
		o.text(*p, "outputs[].data", v)
		p.block++
	}
}

// tensors decodes an answer that is JSON with tensors behind it.
type tensors struct {
	*whole
	size int    // of the JSON
	rest []byte // the tensors
}

// Finish implements Decoder.
func (d *tensors) Finish(dst []Delta) ([]Delta, error) {
	if d.size < len(d.body) {
		d.body, d.rest = d.body[:d.size], d.body[d.size:]
	}
	return d.whole.Finish(dst)
}

func (d *tensors) tail(o *output, v gjson.Result) { readTensorList(o, v, d.rest) }
