package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// readOpenAI reads a chat completion, a text completion, a chunk of either, or
// an error in one of the shapes that servers of this API use.
func readOpenAI(o *output, v gjson.Result) {
	if v.IsArray() { // Google's endpoint wraps its errors so
		for _, e := range v.All() {
			if !e.IsObject() {
				o.misfit("an element of the body", e)
				continue
			}
			readCompletion(o, e)
		}
		return
	}
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	readCompletion(o, v)
}

// readCompletion reads one object with choices, usage or an error.
func readCompletion(o *output, v gjson.Result) {
	known := false
	for k, f := range v.All() {
		if readEnvelope(o, k.Str, f) {
			known = true
		}
	}
	if !known && !readError(o, v) {
		o.fault(ReasonShape, "neither choices, usage nor an error")
	}
}

// readEnvelope reads one field of a completion and says whether it is one that
// only completions and errors have.
func readEnvelope(o *output, key string, v gjson.Result) bool {
	switch key {
	case "id":
		name(&o.info.ID, v)
	case "model":
		name(&o.info.Model, v)
	case "choices":
		if !v.IsArray() {
			if !isNull(v) {
				o.misfit("choices", v)
			}
			return true
		}
		pos := 0
		for _, c := range v.All() {
			readChoice(o, pos, c)
			pos++
		}
		return true
	case "usage":
		if !v.IsObject() {
			return false
		}
		readUsage(o, v)
		return true
	case "x_groq":
		if u := v.Get("usage"); u.IsObject() {
			readUsage(o, u)
		}
		if e := v.Get("error"); !isNull(e) {
			o.failure(errorCode(e))
		}
		return v.IsObject()
	case "error":
		if isNull(v) {
			return false
		}
		o.failure(errorCode(v))
		return true
	case "prompt_filter_results":
		return true
	}
	return false
}

// readUsage reads token counts in the names of chat completions or of the
// Responses API. Later counts replace earlier ones, since they are totals.
func readUsage(o *output, v gjson.Result) {
	for k, f := range v.All() {
		switch k.Str {
		case "prompt_tokens", "input_tokens":
			o.info.PromptTokens = count(f)
		case "completion_tokens", "output_tokens":
			o.info.CompletionTokens = count(f)
		case "prompt_tokens_details", "input_tokens_details":
			if c := f.Get("cached_tokens"); c.Exists() {
				o.info.CachedTokens = count(c)
			}
		case "prompt_cache_hit_tokens": // DeepSeek
			o.info.CachedTokens = count(f)
		}
	}
}

// readError reads an error that stands at the top of v without an error field:
// flat (SGLang, Mistral), the error list of Cloudflare, the detail of FastAPI.
func readError(o *output, v gjson.Result) bool {
	if list := v.Get("errors"); list.IsArray() {
		if first := list.Get("0"); first.Exists() {
			o.failure(errorCode(first))
			return true
		}
	}
	if v.Get("object").Str == "error" || v.Get("message").Exists() || v.Get("detail").Exists() {
		o.failure(errorCode(v))
		return true
	}
	return false
}

// errorCode returns the code of an error object, or else its type, or "". A
// value that doesn't look like a code might be a message, and is left out.
func errorCode(v gjson.Result) string {
	for _, key := range [...]string{"code", "type"} {
		f := v.Get(key)
		if f.Type == gjson.Number {
			return strings.Clone(f.Raw[:min(len(f.Raw), 32)])
		}
		if s := word(f, 64); s != "" && !strings.ContainsFunc(s, func(r rune) bool {
			return r <= ' ' || r > '~'
		}) {
			return s
		}
	}
	return ""
}

// readChoice reads the choice at position pos of its list.
func readChoice(o *output, pos int, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("choices[]", v)
		return
	}
	var index, delta, message, text, finish gjson.Result
	for k, f := range v.All() {
		switch k.Str {
		case "index":
			index = f
		case "delta":
			delta = f
		case "message":
			message = f
		case "text":
			text = f
		case "finish_reason":
			finish = f
		case "error": // OpenRouter
			if !isNull(f) {
				o.failure(errorCode(f))
			}
		}
	}
	i := pos
	switch {
	case index.Type == gjson.Number && index.Num >= 0:
		i = count(index)
	case !isNull(index):
		o.misfit("choices[].index", index)
	case o.cut && len(o.choices) > 0:
		i = len(o.choices) // the index was cut off: its text joins no other
	}
	i += o.base
	c := o.choice(i)
	if delta.IsObject() {
		c.streamed = true
		readMessage(o, i, c, delta)
	} else if !isNull(delta) {
		o.text(place{i, Content, 0}, "choices[].delta", delta)
		o.misfit("choices[].delta", delta)
	}
	// Perplexity's streams carry the message so far beside each delta.
	if !c.streamed {
		if message.IsObject() {
			readMessage(o, i, c, message)
		} else if !isNull(message) {
			o.text(place{i, Content, 0}, "choices[].message", message)
			o.misfit("choices[].message", message)
		}
	}
	o.text(place{i, Content, 0}, "choices[].text", text)
	o.finish(c, finish)
}
