package sim

// Workers AI's native route, POST /client/v4/accounts/{account}/ai/run/{model}.
//
// An answer comes whole, in the envelope of the Cloudflare API, or as events:
// one with a token in "response" and padding in "p" each, one with an empty
// response, the reason and the usage, and [DONE]. The padding hides how long a
// token is from those who see only the size of packets; it is random letters and
// no text.
//
// A request that is refused is answered with the envelope and its own status,
// also when it asked for a stream: nothing has been sent by then.

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Codes of the envelope. 5021 and 3043 are not in the public list of errors.
const (
	codeTooLong    = 5021 // the prompt and its answer don't fit
	codeNoModel    = 5007
	codeIncomplete = 3003
	codeTooLarge   = 3006
	codeNoCapacity = 3040
	codeInternal   = 3043
)

type envelope struct {
	Result   any             `json:"result"`
	Success  bool            `json:"success"`
	Errors   []envelopeError `json:"errors"`
	Messages []string        `json:"messages"`
}

type envelopeError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type workersAIRequest struct {
	Prompt    *string         `json:"prompt"`
	Raw       bool            `json:"raw"`
	Messages  []message       `json:"messages"`
	Tools     json.RawMessage `json:"tools"`
	Stream    bool            `json:"stream"`
	MaxTokens int             `json:"max_tokens"`
}

func (e *Engine) runWorkersAI(w http.ResponseWriter, r *http.Request) {
	_, label := e.responseID(w, r, "")
	var q workersAIRequest
	if f := e.readJSON(w, r, &q); f != nil {
		refuseWorkersAI(w, *f, codeIncomplete)
		return
	}
	if model := r.PathValue("model"); model != e.o.Model {
		refuseWorkersAI(w, badRequest("No such model %s or task", model), codeNoModel)
		return
	}
	parts, err := q.parts()
	if err != nil {
		refuseWorkersAI(w, badRequest("%v", err), codeIncomplete)
		return
	}
	n, maxNew, f := e.answers(1, 1, q.MaxTokens)
	if f != nil {
		refuseWorkersAI(w, *f, codeIncomplete)
		return
	}
	c := call{e: e, id: label, tenant: tenantOf(r), prompts: [][]part{parts}, n: n, maxNew: maxNew}
	if q.Stream {
		seed := e.o.Cluster.Seed
		c.reply = &workersAIStream{events: newEvents(w), pad: rand.New(rand.NewPCG(seed, e.lastCall.Load()))}
	} else {
		c.reply = &workersAIWhole{w: w}
	}
	c.serve(r)
}

func (q *workersAIRequest) parts() ([]part, error) {
	if q.Prompt == nil {
		return chat(q.Messages, q.Tools)
	}
	p := textPrompt(*q.Prompt, q.Raw)
	if blank(p) {
		return nil, errBlank
	}
	return p, nil
}

func refuseWorkersAI(w http.ResponseWriter, f refusal, code int) {
	status := f.status
	switch {
	case status == http.StatusRequestEntityTooLarge:
		code = codeTooLarge
	case status == http.StatusServiceUnavailable:
		code, status = codeNoCapacity, http.StatusTooManyRequests
	case status >= 500:
		code = codeInternal
	}
	writeJSON(w, status, envelope{
		Result:   struct{}{},
		Errors:   []envelopeError{{code, "AiError: " + f.message}},
		Messages: []string{},
	})
}

// workersAIWhole answers with one JSON document.
type workersAIWhole struct {
	w      http.ResponseWriter
	text   strings.Builder
	reason string
}

func (a *workersAIWhole) delta(_ int, text string)    { a.text.WriteString(text) }
func (a *workersAIWhole) finish(_ int, reason string) { a.reason = reason }
func (a *workersAIWhole) flush() error                { return nil }
func (a *workersAIWhole) refuse(f refusal)            { refuseWorkersAI(a.w, f, codeTooLong) }

func (a *workersAIWhole) end(u usage) {
	type result struct {
		Response     string `json:"response"`
		FinishReason string `json:"finish_reason"`
		Usage        usage  `json:"usage"`
	}
	writeJSON(a.w, http.StatusOK, envelope{
		Result:   result{a.text.String(), a.reason, u},
		Success:  true,
		Errors:   []envelopeError{},
		Messages: []string{},
	})
}

// workersAIStream answers with events.
type workersAIStream struct {
	*events
	pad    *rand.Rand
	reason string
}

type workersAIFrame struct {
	Response     string `json:"response"`
	Padding      string `json:"p,omitempty"`
	FinishReason string `json:"finish_reason,omitempty"`
	Usage        *usage `json:"usage,omitempty"`
}

func (a *workersAIStream) delta(_ int, text string) {
	if text != "" {
		a.frame(workersAIFrame{Response: text, Padding: a.padding()})
	}
}

func (a *workersAIStream) finish(_ int, reason string) { a.reason = reason }

func (a *workersAIStream) end(u usage) {
	a.frame(workersAIFrame{FinishReason: a.reason, Usage: &u})
	a.done()
}

func (a *workersAIStream) refuse(f refusal) {
	if a.begun {
		// A stream can't take its status back. Only a broken one is honest.
		panic(http.ErrAbortHandler)
	}
	refuseWorkersAI(a.w, f, codeTooLong)
}

const paddingLetters = "abcdefghijklmnopqrstuvwxyz0123456789"

func (a *workersAIStream) padding() string {
	var b [32]byte
	n := 1 + a.pad.IntN(len(b))
	bits := a.pad.Uint64()
	for i := range n {
		if i%12 == 0 {
			bits = a.pad.Uint64()
		}
		b[i] = paddingLetters[bits%uint64(len(paddingLetters))]
		bits /= uint64(len(paddingLetters))
	}
	return string(b[:n])
}
