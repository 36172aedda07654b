package dialect

import (
	"cmp"
	"math"
	"strings"

	"github.com/tidwall/gjson"
)

// generate speaks the APIs of three servers that took the same path: SGLang's
// own (text and sampling_params), TGI's (inputs and parameters), and that of
// vLLM's old server (prompt). The fields tell which it is.
//
// SGLang answers {text, output_ids, meta_info}, a list of these for several
// prompts or n, and streams the same as events, with an index if there are
// several. The text of an event is by default all text so far, and with
// --incremental-streaming-output only the next piece of it. Nothing says which;
// see [growth].
type generate struct{}

func (generate) Name() string { return "generate" }

func (generate) About() About {
	return About{API: "SGLang native; TGI and vLLM's api_server on the same path", Paths: []string{"POST /generate", "PUT /generate"},
		Formats: []string{formatJSON, formatSSE, formatLines}}
}

func (generate) Match(method, path string) bool {
	return (method == "POST" || method == "PUT") && at(ends(path), 0) == "generate"
}

func (generate) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return readRequest("generate", "", body, h, func(r *request, v gjson.Result) {
		for k, f := range v.All() {
			if isNull(f) {
				continue
			}
			switch k.Str {
			case "text":
				r.texts(User, "text", f)
			case "inputs", "parameters":
			case "input_ids":
				r.unseen(ReasonTokenIDs)
			case "input_embeds", "image_data", "audio_data", "video_data":
				r.unseen(ReasonMedia)
			case "session_params":
				r.unseen(ReasonStored)
			case "prompt":
				r.texts(User, "prompt", f)
				r.echoes(f, count(v.Get("n")))
			default:
				r.field(k.Str, f)
			}
		}
		if v.Get("inputs").Exists() {
			r.textGeneration(v, false)
		}
	})
}

// echoes notes that the answers begin with the prompts that v holds, n to each.
func (r *request) echoes(v gjson.Result, n int) {
	if v.Type == gjson.String {
		r.prompt.asked.echo = []string{wellFormed(stringOf(v))}
	} else if v.IsArray() {
		for _, e := range v.All() {
			if len(r.prompt.asked.echo) == maxChoices {
				break
			}
			s := ""
			if e.Type == gjson.String {
				s = wellFormed(stringOf(e))
			}
			r.prompt.asked.echo = append(r.prompt.asked.echo, s)
		}
	}
	r.prompt.asked.perEcho = n
}

func (generate) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: newGenerated().read, remember: true})
}

func (generate) Error(status int, message string, h Header) []byte {
	type failure struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    int    `json:"code"`
	}
	v := struct {
		Error failure `json:"error"`
	}{failure{message, errorType(status), status}}
	if h == nil {
		return marshal(v)
	}
	return ending(h, "", v, doneEvent)
}

// generated reads the answers of the servers on this path.
type generated struct {
	grown   map[int]*growth // by index
	indexed bool            // some event had an index
	tgi     textGenerated
}

func newGenerated() *generated { return &generated{grown: map[int]*growth{}} }

// read reads a whole answer, a list of them, or one event.
func (g *generated) read(o *output, v gjson.Result) {
	if v.IsArray() {
		i := 0
		for _, e := range v.All() {
			o.base = i
			g.one(o, e)
			i++
		}
		return
	}
	g.one(o, v)
}

func (g *generated) one(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	i := o.base
	if n := v.Get("index"); n.Type == gjson.Number {
		i, g.indexed = count(n), true
	} else if o.cut && g.indexed {
		i = len(o.choices) // the index was cut off: the text joins no other
	}
	text, meta := v.Get("text"), v.Get("meta_info")
	switch e := v.Get("error"); {
	case !isNull(e):
		o.failure(errorCode(e))
		return
	case v.Get("token").Exists() || v.Get("generated_text").Exists():
		g.tgi.one(o, v)
		return
	case text.IsArray(): // vLLM: all text so far, with the prompt
		for _, t := range text.All() {
			o.choice(i).finished = true
			g.add(o, i, t, gjson.Result{}, -1)
			i++
		}
		return
	case !text.Exists() && !meta.Exists():
		if !readError(o, v) {
			o.fault(ReasonShape, "neither text nor an error")
		}
		return
	}
	c := o.choice(i)
	tokens := -1
	if n := meta.Get("completion_tokens"); n.Exists() {
		tokens = count(n)
	}
	g.add(o, i, text, v.Get("output_ids"), tokens)
	g.meta(o, c, meta)
}

// add gives what the text of choice i says beyond what was given.
func (g *generated) add(o *output, i int, text, ids gjson.Result, tokens int) {
	p := place{i, Content, blockMain}
	if text.Type != gjson.String {
		o.text(p, "text", text)
		return
	}
	w := g.grown[i]
	if w == nil {
		w = new(growth)
		if len(g.grown) < maxSaid {
			g.grown[i] = w
		}
	}
	w.add(o, p, stringOf(text), ids, tokens)
}

// meta reads what a generation says about itself.
func (g *generated) meta(o *output, c *choice, v gjson.Result) {
	name(&o.info.ID, v.Get("id"))
	o.info.PromptTokens = max(o.info.PromptTokens, count(v.Get("prompt_tokens")))
	o.info.CompletionTokens = max(o.info.CompletionTokens, count(v.Get("completion_tokens")))
	o.info.CachedTokens = max(o.info.CachedTokens, count(v.Get("cached_tokens")))
	switch f := v.Get("finish_reason"); {
	case f.IsObject():
		o.finish(c, f.Get("type"))
		if f.Get("type").Str == "abort" {
			o.failure(cmp.Or(word(f.Get("err_type"), 64), strings.Clone(f.Get("status_code").Raw)))
		}
	default:
		o.finish(c, f)
	}
}

// growth tells events that hold all text so far from events that hold the next
// piece only, for one index of a stream.
//
// The first event is the same in both modes. From the second on, the number of
// completion tokens, which always counts all so far, is held against the
// number of token ids in the event and against the sum of those numbers over
// all events: the text is whole if the first is nearer, and a piece if the sum
// is. Without ids, or where both are as near, the text is whole if it begins
// with all that was given. The mode never changes once it is known.
type growth struct {
	events int
	ids    int // in all events so far
	mode   int
}

// The modes of a stream.
const (
	unknown = iota
	cumulative
	incremental
)

// add gives what s, the text of the next event, says beyond what was given.
// Tokens is the number of completion tokens, or -1.
func (w *growth) add(o *output, p place, s string, ids gjson.Result, tokens int) {
	n := 0
	if ids.IsArray() && len(ids.Raw) > 2 {
		n = strings.Count(ids.Raw, ",") + 1
	}
	w.events++
	w.ids += n
	if w.events > 1 && w.mode == unknown && !o.cut {
		w.decide(o, p, s, n, tokens)
	}
	switch {
	case w.events == 1 || w.mode == cumulative || o.cut && w.mode == unknown:
		// A character that is not yet whole ends in a replacement for now.
		o.rest(p, strings.TrimRight(wellFormed(s), "\uFFFD"))
	default:
		o.add(p, s)
	}
}

// decide settles the mode, if that can be told.
func (w *growth) decide(o *output, p place, s string, n, tokens int) {
	if n > 0 && tokens >= 0 {
		whole, sum := math.Abs(float64(n-tokens)), math.Abs(float64(w.ids-tokens))
		switch {
		case whole < sum:
			w.mode = cumulative
			return
		case sum < whole:
			w.mode = incremental
			return
		}
	}
	given := o.said[p]
	if given == nil {
		return // nothing was given, so that both are the same
	}
	if _, ok := given.begins(wellFormed(s)); ok {
		w.mode = cumulative
	} else {
		w.mode = incremental
	}
}
