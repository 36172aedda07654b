package dialect

// APIs that are not known.
//
// On a path that no other dialect matches, a body that is JSON may still be a
// prompt. It is taken for one if it has, at its top, a field that is named as
// the fields of prompts are, and text in it. Text is what stands in strings
// under such names, at most a few levels down; strings that look like encoded
// bytes are left out. The response is then read in the same way. All of that is
// guessed, so the exchange counts as audited in part, for the reason
// [ReasonGeneric].
//
// Any other body, JSON or not, is none of an API that holds text: nothing of it
// or of its response is read, and the reason is [ReasonNoDialect], as if there
// were no dialect at all.

import (
	"strings"

	"github.com/tidwall/gjson"
)

type generic struct{}

func (generic) Name() string { return "generic" }

func (generic) About() About {
	return About{API: "JSON of unknown APIs, by the names of its fields; counted as audited in part",
		Paths: []string{"POST /{any}/{path}"}, Formats: []string{formatJSON, formatSSE, formatLines}}
}

func (generic) Match(method, path string) bool {
	return method == "POST" && at(ends(path), 0) != "graphql"
}

const (
	maxGuessDepth = 8    // levels below a field that holds text
	maxGuesses    = 4096 // strings of one value
)

// promptFields hold text in requests, with the role that it has.
var promptFields = map[string]Role{
	"prompt": User, "prompts": User, "input": User, "inputs": User, "text": User, "texts": User, "query": User, "queries": User,
	"question": User, "message": User, "messages": User, "contents": User, "content": User, "parts": User, "input_text": User,
	"text_input": User, "inputText": User, "prompt_text": User, "document": User, "documents": User, "context": User, "contexts": User,
	"passage": User, "passages": User, "instances": User, "requests": User, "data": User, "conversation": User, "dialog": User, "suffix": User,
	"value": User, "system": System, "system_prompt": System, "systemInstruction": System, "system_instruction": System,
	"instruction": System, "instructions": System, "preamble": System,
	"history": Assistant, "chat_history": Assistant,
}

// topFields are those of them by which a body is taken for a prompt.
var topFields = map[string]bool{
	"prompt": true, "prompts": true, "input": true, "inputs": true, "text": true, "texts": true, "query": true, "question": true,
	"message": true, "messages": true, "contents": true, "input_text": true, "text_input": true, "inputText": true, "prompt_text": true,
	"instances": true, "requests": true, "conversation": true, "dialog": true, "instruction": true, "instructions": true,
}

// answerFields hold text in responses, with the channel that it has.
var answerFields = map[string]Channel{
	"text": Content, "content": Content, "contents": Content, "output": Content, "outputs": Content, "response": Content, "responses": Content,
	"generated_text": Content, "generation": Content, "generations": Content, "answer": Content, "answers": Content, "completion": Content,
	"completions": Content, "result": Content, "results": Content, "message": Content, "messages": Content, "delta": Content, "choices": Content,
	"candidates": Content, "parts": Content, "data": Content, "token": Content, "tokens": Content, "predictions": Content, "prediction": Content,
	"output_text": Content, "text_output": Content, "outputText": Content, "transcript": Content, "summary": Content, "summary_text": Content,
	"translation": Content, "translated_text": Content, "reply": Content, "description": Content, "value": Content, "body": Content,
	"reasoning": Reasoning, "reasoning_content": Reasoning, "thinking": Reasoning, "refusal": Refusal,
	"arguments": ToolArgs, "tool_calls": ToolArgs, "function": ToolArgs,
}

// encoded says whether a string looks like bytes in base64 or hexadecimal
// digits, or like a data URL: long, and without a gap.
func encoded(s string) bool {
	const longWord = 256
	return strings.HasPrefix(s, "data:") || len(s) > longWord && strings.IndexFunc(s[:longWord], func(r rune) bool {
		return r <= ' ' || r > '~'
	}) < 0
}

func (generic) Prompt(body []byte, path string, h Header) (Prompt, error) {
	none := func() (Prompt, error) {
		return Prompt{asked: asked{nothing: true}}, &Error{Reason: ReasonNoDialect, Object: "request body", Detail: "of no API that is known"}
	}
	if h != nil {
		if t := mediaType(h.Get("Content-Type")); t != "" && !isJSON(t) && t != "text/plain" {
			return none()
		}
	}
	p, err := readRequest("generic "+path, "", body, h, func(r *request, v gjson.Result) {
		n := 0
		for k, f := range v.All() {
			switch {
			case k.Str == "model":
				name(&r.prompt.Model, f)
			case k.Str == "stream":
				r.prompt.Stream = f.Type == gjson.True
			case topFields[k.Str]:
				r.guess(promptFields[k.Str], f, 0, &n)
			}
		}
		if len(r.prompt.Parts) == 0 {
			return
		}
		for k, f := range v.All() { // what stands beside them
			if role, ok := promptFields[k.Str]; ok && !topFields[k.Str] {
				r.guess(role, f, 0, &n)
			}
		}
		r.unseen(ReasonGeneric)
	})
	if len(p.Parts) == 0 {
		return none()
	}
	return p, err
}

// guess reads what looks like text in v.
func (r *request) guess(role Role, v gjson.Result, depth int, n *int) {
	if *n >= maxGuesses {
		if *n == maxGuesses {
			r.fault(ReasonTooLong, "too many strings")
			*n++
		}
		return
	}
	switch {
	case v.Type == gjson.String:
		*n++
		if encoded(v.Str) {
			r.unseen(ReasonMedia)
		} else {
			r.add(role, stringOf(v))
		}
	case depth == maxGuessDepth:
	case v.IsArray():
		if strings.IndexByte(v.Raw, '"') < 0 {
			return // numbers
		}
		for _, e := range v.All() {
			r.guess(role, e, depth+1, n)
		}
	case v.IsObject():
		if s := v.Get("role"); s.Type == gjson.String {
			role = roleOf(strings.ToLower(s.Str))
		}
		for k, f := range v.All() {
			if as, ok := promptFields[k.Str]; ok {
				if as == User {
					as = role
				}
				r.guess(as, f, depth+1, n)
			}
		}
	}
}

func (generic) Decoder(p Prompt, h Header) Decoder {
	if p.asked.nothing {
		d := newUnread("")
		d.info = headerInfo(h)
		d.err = &Error{Reason: ReasonNoDialect, Object: bodyObject(), Detail: "of no API that is known"}
		return d
	}
	return newDecoder(p, h, form{read: readGeneric, plain: true})
}

func (generic) Error(status int, message string, h Header) []byte {
	return openAIError(status, message, h)
}

// readGeneric reads what looks like text in a response.
func readGeneric(o *output, v gjson.Result) {
	o.unseen(ReasonGeneric)
	o.choice(0).finished = true // nothing says when it is over
	if v.IsObject() {
		name(&o.info.ID, v.Get("id"))
		name(&o.info.Model, v.Get("model"))
		if u := v.Get("usage"); u.IsObject() {
			readUsage(o, u)
		}
		if e := v.Get("error"); !isNull(e) {
			o.failure(errorCode(e))
			return
		}
	}
	n := 0
	guessAnswer(o, Content, v, 0, &n)
}

// guessAnswer reads what looks like text in v.
func guessAnswer(o *output, c Channel, v gjson.Result, depth int, n *int) {
	if *n >= maxGuesses {
		if *n == maxGuesses {
			o.fault(ReasonTooLong, "too many strings")
			*n++
		}
		return
	}
	switch {
	case v.Type == gjson.String:
		*n++
		if encoded(v.Str) {
			o.unseen(ReasonMedia)
		} else {
			o.text(place{0, c, blockMain}, "", v)
		}
	case depth == maxGuessDepth:
	case v.IsArray():
		if strings.IndexByte(v.Raw, '"') < 0 {
			return
		}
		for _, e := range v.All() {
			guessAnswer(o, c, e, depth+1, n)
		}
	case v.IsObject():
		for k, f := range v.All() {
			if as, ok := answerFields[k.Str]; ok {
				if c != Content {
					as = c
				}
				guessAnswer(o, as, f, depth+1, n)
			}
		}
	}
}
