package sim

// OpenAI's routes as SGLang serves them: /v1/chat/completions, /v1/completions
// and, with the account in the URL, Workers AI's /ai/v1/chat/completions.
//
// Errors are flat objects, as SGLang's are. A stream that is refused has begun
// by then for SGLang: status 200, one event with the error, [DONE]. What can be
// seen without the scheduler, such as a body that makes no sense, is refused
// with a status.

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

var errBlank = errors.New("prompt: is empty")

type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Tools               json.RawMessage `json:"tools"`
	N                   int             `json:"n"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	StreamOptions       streamOptions   `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

func (e *Engine) chatCompletions(w http.ResponseWriter, r *http.Request) {
	id, label := e.responseID(w, r, "chatcmpl-")
	var q chatRequest
	if f := e.readJSON(w, r, &q); f != nil {
		refuseOpenAI(w, *f)
		return
	}
	parts, err := chat(q.Messages, q.Tools)
	if err != nil {
		refuseOpenAI(w, badRequest("%v", err))
		return
	}
	if q.MaxCompletionTokens != 0 {
		q.MaxTokens = q.MaxCompletionTokens
	}
	n, maxNew, f := e.answers(1, q.N, q.MaxTokens)
	if f != nil {
		refuseOpenAI(w, *f)
		return
	}
	c := call{e: e, id: label, tenant: tenantOf(r), prompts: [][]part{parts}, n: n, maxNew: maxNew}
	head := openAIHead{id: id, model: e.modelName(q.Model), created: time.Now().Unix()}
	if q.Stream {
		c.reply = &chatStream{events: newEvents(w), head: head, usage: q.StreamOptions.IncludeUsage, said: make([]bool, n)}
	} else {
		c.reply = &chatWhole{w: w, head: head, choices: make([]chatChoice, n), texts: make([]strings.Builder, n)}
	}
	c.serve(r)
}

type completionRequest struct {
	Model         string        `json:"model"`
	Prompt        texts         `json:"prompt"`
	Suffix        string        `json:"suffix"`
	Echo          bool          `json:"echo"`
	N             int           `json:"n"`
	BestOf        int           `json:"best_of"`
	MaxTokens     int           `json:"max_tokens"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
}

func (e *Engine) completions(w http.ResponseWriter, r *http.Request) {
	id, label := e.responseID(w, r, "cmpl-")
	var q completionRequest
	if f := e.readJSON(w, r, &q); f != nil {
		refuseOpenAI(w, *f)
		return
	}
	if q.Suffix != "" || q.Echo || q.BestOf > max(q.N, 1) {
		refuseOpenAI(w, badRequest("suffix, echo and best_of are not supported"))
		return
	}
	prompts := make([][]part, len(q.Prompt))
	for i, text := range q.Prompt {
		prompts[i] = textPrompt(text, true)
		if blank(prompts[i]) {
			prompts = nil
			break
		}
	}
	if len(prompts) == 0 {
		refuseOpenAI(w, badRequest("%v", errBlank))
		return
	}
	n, maxNew, f := e.answers(len(prompts), q.N, q.MaxTokens)
	if f != nil {
		refuseOpenAI(w, *f)
		return
	}
	c := call{e: e, id: label, tenant: tenantOf(r), prompts: prompts, n: n, maxNew: maxNew}
	head := openAIHead{id: id, model: e.modelName(q.Model), created: time.Now().Unix()}
	if q.Stream {
		c.reply = &completionStream{events: newEvents(w), head: head, usage: q.StreamOptions.IncludeUsage}
	} else {
		k := n * len(prompts)
		c.reply = &completionWhole{w: w, head: head, choices: make([]completionChoice, k), texts: make([]strings.Builder, k)}
	}
	c.serve(r)
}

// modelName returns the model that an answer names: the one that was asked for.
// Like SGLang, the engine serves its one model under any name.
func (e *Engine) modelName(asked string) string {
	if asked == "" {
		return e.o.Model
	}
	return asked
}

type openAIError struct {
	Object  string  `json:"object"`
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

func (f refusal) openAI() openAIError {
	return openAIError{Object: "error", Message: f.message, Type: f.kind, Code: f.status}
}

func refuseOpenAI(w http.ResponseWriter, f refusal) { writeJSON(w, f.status, f.openAI()) }

// refuse ends a stream with an error event, or breaks it off when it has begun
// and the engine itself fails.
func (s *events) refuse(f refusal) {
	if s.begun && f.status >= 500 {
		panic(http.ErrAbortHandler)
	}
	s.frame(struct {
		Error openAIError `json:"error"`
	}{f.openAI()})
	s.done()
	// flush fails when the client has left; there is nobody to tell.
	_ = s.flush()
}

// openAIHead is what every object of one response begins with.
type openAIHead struct {
	id      string
	model   string
	created int64
}

func (h openAIHead) object(kind string, choices any, u *usage) openAIObject {
	return openAIObject{h.id, kind, h.created, h.model, choices, u}
}

type openAIObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices any    `json:"choices"`
	Usage   *usage `json:"usage,omitempty"`
}

type chatMessage struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type chatChoice struct {
	Index        int          `json:"index"`
	Message      *chatMessage `json:"message,omitempty"`
	Delta        *chatMessage `json:"delta,omitempty"`
	FinishReason *string      `json:"finish_reason"`
}

// chatWhole answers a chat with one JSON document.
type chatWhole struct {
	w       http.ResponseWriter
	head    openAIHead
	choices []chatChoice
	texts   []strings.Builder
}

func (a *chatWhole) delta(i int, text string)    { a.texts[i].WriteString(text) }
func (a *chatWhole) finish(i int, reason string) { a.choices[i].FinishReason = &reason }
func (a *chatWhole) flush() error                { return nil }
func (a *chatWhole) refuse(f refusal)            { refuseOpenAI(a.w, f) }

func (a *chatWhole) end(u usage) {
	for i := range a.choices {
		text := a.texts[i].String()
		a.choices[i].Index = i
		a.choices[i].Message = &chatMessage{"assistant", &text}
	}
	writeJSON(a.w, http.StatusOK, a.head.object("chat.completion", a.choices, &u))
}

// chatStream answers a chat with events.
type chatStream struct {
	*events
	head  openAIHead
	usage bool
	said  []bool // by choice: its role
}

func (a *chatStream) chunk(c chatChoice) {
	a.frame(a.head.object("chat.completion.chunk", []chatChoice{c}, nil))
}

func (a *chatStream) begin(i int) {
	if !a.said[i] {
		a.said[i] = true
		empty := ""
		a.chunk(chatChoice{Index: i, Delta: &chatMessage{"assistant", &empty}})
	}
}

func (a *chatStream) delta(i int, text string) {
	a.begin(i)
	if text != "" {
		a.chunk(chatChoice{Index: i, Delta: &chatMessage{Content: &text}})
	}
}

func (a *chatStream) finish(i int, reason string) {
	a.begin(i)
	a.chunk(chatChoice{Index: i, Delta: &chatMessage{}, FinishReason: &reason})
}

func (a *chatStream) end(u usage) {
	if a.usage {
		a.frame(a.head.object("chat.completion.chunk", []chatChoice{}, &u))
	}
	a.done()
}

type completionChoice struct {
	Index        int     `json:"index"`
	Text         string  `json:"text"`
	FinishReason *string `json:"finish_reason"`
}

// completionWhole answers a completion with one JSON document.
type completionWhole struct {
	w       http.ResponseWriter
	head    openAIHead
	choices []completionChoice
	texts   []strings.Builder
}

func (a *completionWhole) delta(i int, text string)    { a.texts[i].WriteString(text) }
func (a *completionWhole) finish(i int, reason string) { a.choices[i].FinishReason = &reason }
func (a *completionWhole) flush() error                { return nil }
func (a *completionWhole) refuse(f refusal)            { refuseOpenAI(a.w, f) }

func (a *completionWhole) end(u usage) {
	for i := range a.choices {
		a.choices[i].Index = i
		a.choices[i].Text = a.texts[i].String()
	}
	writeJSON(a.w, http.StatusOK, a.head.object("text_completion", a.choices, &u))
}

// completionStream answers a completion with events.
type completionStream struct {
	*events
	head  openAIHead
	usage bool
}

func (a *completionStream) chunk(c completionChoice) {
	a.frame(a.head.object("text_completion", []completionChoice{c}, nil))
}

func (a *completionStream) delta(i int, text string) {
	if text != "" {
		a.chunk(completionChoice{Index: i, Text: text})
	}
}

func (a *completionStream) finish(i int, reason string) {
	a.chunk(completionChoice{Index: i, FinishReason: &reason})
}

func (a *completionStream) end(u usage) {
	if a.usage {
		a.frame(a.head.object("text_completion", []completionChoice{}, &u))
	}
	a.done()
}
