package dialect

// What the Prompt readers have in common. Text that a request says is spread
// over many fields: messages of all roles, tool results, the arguments of tool
// calls, tool descriptions and schemas, predicted output, suffixes. Each run of
// it becomes one part, copied out of the body once.
//
// Field names that the OpenAI-style APIs and Workers AI share are read by one
// switch: gateways and servers accept each other's, and a field that only one
// of them knows can't mean another thing to the other.

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// request collects what one request body says.
type request struct {
	prompt Prompt
	faults faults
	cut    bool // the body lacks its end
	full   bool // maxPieces parts were read
}

// readRequest reads a request to the named API, whose body is one JSON object,
// and has fields read it. The model is the one that the path names, which
// counts where the body names none.
func readRequest(api, model string, body []byte, h Header, fields func(*request, gjson.Result)) (Prompt, error) {
	var r request
	v, body, reason := r.json(body, h)
	switch {
	case v.IsObject():
		fields(&r, v)
	case v.Exists():
		r.misfit("the body", -1, v)
	}
	if r.prompt.Model == "" {
		r.prompt.Model = model
	}
	if reason == "" {
		r.prompt.Canonical = canonical(api, r.prompt.Model, body)
	}
	return r.end()
}

// json returns the value of a body, as far as it can be read, with the bytes
// that it was read from and the reason why they are not the whole of it.
func (r *request) json(body []byte, h Header) (gjson.Result, []byte, Reason) {
	over := len(body) > MaxBody
	if over {
		body = body[:MaxBody]
	}
	body = trimMark(body)
	v, reason := readCutJSON(body)
	r.cut = reason == ReasonTruncated
	switch {
	case over:
		reason = ReasonTooLong
		r.fault(reason, fmt.Sprintf("larger than %d bytes", MaxBody))
	case reason == ReasonNotJSON:
		r.notJSON(h)
	case reason == ReasonTruncated:
		r.fault(reason, "ended inside its JSON")
	case reason != "":
		r.fault(reason, jsonDetail(reason))
	}
	return v, body, reason
}

// end returns what was read.
func (r *request) end() (Prompt, error) {
	for _, reason := range r.faults.more {
		r.unseen(reason)
	}
	return r.prompt, r.faults.err()
}

// notJSON notes a body that is not JSON. Where the header promises something
// else, that is the reason; sound and pictures are no fault.
func (r *request) notJSON(h Header) {
	t := ""
	if h != nil {
		t = mediaType(h.Get("Content-Type"))
	}
	switch {
	case t == "" || isJSON(t) || strings.HasPrefix(t, "text/"):
		r.fault(ReasonNotJSON, "not JSON")
		return
	case isMedia(t):
		r.unseen(ReasonMedia)
		return
	case t == "multipart/form-data":
		r.unseen(ReasonMedia)
	}
	r.fault(ReasonMIME, "a media type that is not read")
}

// fault notes that something could not be read.
func (r *request) fault(reason Reason, detail string) {
	r.faults.add(reason, func() string { return "request body" }, detail)
}

// misfit notes that v, which was found at where, has a type that it can't
// have. If i is not negative, it is the index that stands between the brackets
// of where.
func (r *request) misfit(where string, i int, v gjson.Result) {
	if r.faults.first != nil {
		r.fault(ReasonShape, "")
		return
	}
	if i >= 0 {
		where = strings.Replace(where, "[]", fmt.Sprintf("[%d]", i), 1)
	}
	r.fault(ReasonShape, where+" is "+kind(v))
}

// unseen notes something in the request that is not text.
func (r *request) unseen(reason Reason) {
	r.prompt.Unseen = addReason(r.prompt.Unseen, reason)
}

// add adds one part of WTF-8.
func (r *request) add(role Role, s string) {
	switch {
	case s == "" || r.full:
	case len(r.prompt.Parts) == maxPieces:
		r.full = true
		r.fault(ReasonTooLong, "too many parts")
	default:
		r.prompt.Parts = append(r.prompt.Parts, Part{role, wellFormed(s)})
	}
}

// text adds the text of v, which is a string or null.
func (r *request) text(role Role, where string, i int, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		r.add(role, stringOf(v))
	case isNull(v):
	default:
		r.misfit(where, i, v)
		if v.Type == gjson.Number {
			r.add(role, strings.Clone(v.Raw))
		}
	}
}

// source adds the text of v, which may be of any type: a string as it is, all
// else as JSON.
func (r *request) source(role Role, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		r.add(role, stringOf(v))
	case !isNull(v):
		r.add(role, sourceOf(v))
	}
}

// field reads a field that the APIs share, and says whether key is one.
func (r *request) field(key string, v gjson.Result) bool {
	switch key {
	case "model":
		name(&r.prompt.Model, v)
	case "stream":
		r.prompt.Stream = r.prompt.Stream || v.Type == gjson.True
	case "messages":
		r.messages(v)
	case "prompt":
		r.texts(User, "prompt", v)
	case "suffix":
		r.text(User, "suffix", -1, v)
	case "instructions":
		r.text(System, "instructions", -1, v)
	case "tools":
		r.tools("tools[]", v)
	case "functions":
		r.tools("functions[]", v)
	case "response_format":
		r.schema(v, 0) // wherever in it the schema stands: servers differ
	case "prediction":
		if v.IsObject() {
			r.content(User, -1, v.Get("content"))
		} else if !isNull(v) {
			r.misfit("prediction", -1, v)
		}
	case "documents": // vLLM
		r.documents("documents[]", v)
	default:
		return false
	}
	return true
}

// documents reads texts that an answer is to be drawn from.
func (r *request) documents(where string, v gjson.Result) {
	if !v.IsArray() {
		if !isNull(v) {
			r.misfit(strings.TrimSuffix(where, "[]"), -1, v)
		}
		return
	}
	i := 0
	for _, d := range v.All() {
		if d.IsObject() {
			r.text(User, where+".title", i, d.Get("title"))
			r.text(User, where+".text", i, d.Get("text"))
		} else {
			r.text(User, where, i, d)
		}
		i++
	}
}

// texts reads prompts: a string, a list of strings, token ids, or lists of
// them. Token ids are noted and have no text.
func (r *request) texts(role Role, where string, v gjson.Result) {
	switch {
	case v.IsObject(): // of the upstream's own store
		r.unseen(ReasonStored)
		return
	case !v.IsArray():
		r.text(role, where, -1, v)
		return
	}
	if strings.IndexByte(v.Raw, '"') < 0 { // millions of numbers need no walk
		if strings.ContainsAny(v.Raw, "0123456789") {
			r.unseen(ReasonTokenIDs)
		}
		return
	}
	for _, p := range v.All() {
		switch {
		case p.Type == gjson.Number:
			r.unseen(ReasonTokenIDs)
		case p.IsArray():
			for _, q := range p.All() {
				if q.Type == gjson.Number {
					r.unseen(ReasonTokenIDs)
				} else {
					r.text(role, where+"[][]", -1, q)
				}
			}
		default:
			r.text(role, where+"[]", -1, p)
		}
	}
}
