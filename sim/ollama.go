package sim

// Ollama's /api/chat and /api/generate.
//
// An answer is a stream of objects, one a line, unless the request says
// "stream": false. Each line holds a token; the last says done, why, and the
// counts. A request to generate without a prompt loads the model, which is there
// already.
//
// A request that is refused gets a status of its own; a stream that has begun
// ends with a line that holds the error.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

type ollamaOptions struct {
	NumPredict int `json:"num_predict"`
}

// maxNew returns how many tokens the options ask for, 0 for the default. What
// is negative asks for as many as there may be.
func (o ollamaOptions) maxNew(limit int) int {
	if o.NumPredict < 0 {
		return limit
	}
	return o.NumPredict
}

type ollamaChatRequest struct {
	Model    string          `json:"model"`
	Messages []ollamaTurn    `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
	Stream   *bool           `json:"stream"`
	Options  ollamaOptions   `json:"options"`
}

type ollamaTurn struct {
	Role      string            `json:"role"`
	Content   string            `json:"content"`
	Thinking  string            `json:"thinking"`
	Images    []json.RawMessage `json:"images"`
	ToolCalls []struct {
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

var errImages = errors.New("images: the model reads text only")

// chat returns the request's turns in the shape that the template takes.
func (q *ollamaChatRequest) chat() ([]message, error) {
	all := make([]message, len(q.Messages))
	for i, t := range q.Messages {
		if len(t.Images) > 0 {
			return nil, fmt.Errorf("messages: message %d: %w", i, errImages)
		}
		m := message{Role: t.Role}
		for _, s := range []string{t.Thinking, t.Content} {
			if s != "" {
				m.Content = append(m.Content, s)
			}
		}
		for _, c := range t.ToolCalls {
			var call toolCall
			call.Function.Name, call.Function.Arguments = c.Function.Name, string(c.Function.Arguments)
			m.ToolCalls = append(m.ToolCalls, call)
		}
		all[i] = m
	}
	return all, nil
}

func (e *Engine) ollamaChat(w http.ResponseWriter, r *http.Request) {
	var q ollamaChatRequest
	_, label := e.responseID(w, r, "")
	if f := e.readJSON(w, r, &q); f != nil {
		refuseOllama(w, *f)
		return
	}
	turns, err := q.chat()
	if err != nil {
		refuseOllama(w, badRequest("%v", err))
		return
	}
	parts, err := chat(turns, q.Tools)
	if err != nil {
		refuseOllama(w, badRequest("%v", err))
		return
	}
	e.ollama(w, r, label, q.Stream, parts, q.Options, ollamaHead{model: e.modelName(q.Model), chat: true})
}

type ollamaGenerateRequest struct {
	Model    string            `json:"model"`
	Prompt   string            `json:"prompt"`
	System   string            `json:"system"`
	Suffix   string            `json:"suffix"`
	Template string            `json:"template"`
	Context  []json.RawMessage `json:"context"`
	Images   []json.RawMessage `json:"images"`
	Raw      bool              `json:"raw"`
	Stream   *bool             `json:"stream"`
	Options  ollamaOptions     `json:"options"`
}

func (q *ollamaGenerateRequest) parts() ([]part, error) {
	switch {
	case len(q.Images) > 0:
		return nil, errImages
	case q.Suffix != "" || q.Template != "" || len(q.Context) > 0:
		return nil, errors.New("suffix, template and context are not supported")
	case strings.TrimSpace(q.Prompt) == "":
		return nil, errBlank
	}
	parts := textPrompt(q.Prompt, q.Raw)
	if q.System != "" && !q.Raw {
		parts = append([]part{{systemToken, q.System, true}}, parts...)
	}
	return parts, nil
}

func (e *Engine) ollamaGenerate(w http.ResponseWriter, r *http.Request) {
	var q ollamaGenerateRequest
	_, label := e.responseID(w, r, "")
	if f := e.readJSON(w, r, &q); f != nil {
		refuseOllama(w, *f)
		return
	}
	head := ollamaHead{model: e.modelName(q.Model), start: time.Now()}
	if q.Prompt == "" && q.System == "" && len(q.Images) == 0 {
		load := head.say("")
		load.Done, load.DoneReason = true, "load"
		writeJSON(w, http.StatusOK, load)
		return
	}
	parts, err := q.parts()
	if err != nil {
		refuseOllama(w, badRequest("%v", err))
		return
	}
	e.ollama(w, r, label, q.Stream, parts, q.Options, head)
}

// ollama answers either kind of request.
func (e *Engine) ollama(w http.ResponseWriter, r *http.Request, label string, stream *bool, parts []part, o ollamaOptions, head ollamaHead) {
	n, maxNew, f := e.answers(1, 1, o.maxNew(e.o.MaxNewLimit))
	if f != nil {
		refuseOllama(w, *f)
		return
	}
	head.start = time.Now()
	c := call{e: e, id: label, tenant: tenantOf(r), prompts: [][]part{parts}, n: n, maxNew: maxNew}
	if stream == nil || *stream {
		c.reply = &ollamaStream{ollamaHead: head, jsonStream: jsonStream{newEvents(w), "application/x-ndjson"}}
	} else {
		c.reply = &ollamaWhole{ollamaHead: head, w: w}
	}
	c.serve(r)
}

type ollamaError struct {
	Error string `json:"error"`
}

func refuseOllama(w http.ResponseWriter, f refusal) { writeJSON(w, f.status, ollamaError{f.message}) }

type ollamaAnswer struct {
	Model           string         `json:"model"`
	CreatedAt       time.Time      `json:"created_at"`
	Message         *ollamaMessage `json:"message,omitempty"`  // of a chat
	Response        *string        `json:"response,omitempty"` // of a request to generate
	Done            bool           `json:"done"`
	DoneReason      string         `json:"done_reason,omitempty"`
	TotalDuration   time.Duration  `json:"total_duration,omitempty"`
	PromptEvalCount int            `json:"prompt_eval_count,omitempty"`
	EvalCount       int            `json:"eval_count,omitempty"`
}

type ollamaMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ollamaHead is what whole answers and streams have in common.
type ollamaHead struct {
	model  string
	chat   bool
	start  time.Time
	reason string
}

func (a *ollamaHead) finish(_ int, reason string) { a.reason = reason }

func (a *ollamaHead) say(text string) ollamaAnswer {
	v := ollamaAnswer{Model: a.model, CreatedAt: time.Now().UTC()}
	if a.chat {
		v.Message = &ollamaMessage{"assistant", text}
	} else {
		v.Response = &text
	}
	return v
}

func (a *ollamaHead) last(text string, u usage) ollamaAnswer {
	v := a.say(text)
	v.Done, v.DoneReason, v.TotalDuration = true, a.reason, time.Since(a.start)
	v.PromptEvalCount, v.EvalCount = u.Prompt, u.Completion
	return v
}

// ollamaWhole answers with one JSON document.
type ollamaWhole struct {
	ollamaHead
	w    http.ResponseWriter
	text strings.Builder
}

func (a *ollamaWhole) delta(_ int, text string) { a.text.WriteString(text) }
func (a *ollamaWhole) flush() error             { return nil }
func (a *ollamaWhole) refuse(f refusal)         { refuseOllama(a.w, f) }
func (a *ollamaWhole) end(u usage)              { writeJSON(a.w, http.StatusOK, a.last(a.text.String(), u)) }

// ollamaStream answers with lines.
type ollamaStream struct {
	ollamaHead
	jsonStream
}

func (a *ollamaStream) delta(_ int, text string) {
	if text != "" {
		a.line(a.say(text))
	}
}

func (a *ollamaStream) end(u usage) { a.line(a.last("", u)) }

func (a *ollamaStream) refuse(f refusal) {
	if !a.begun {
		refuseOllama(a.w, f)
		return
	}
	a.line(ollamaError{f.message})
	// flush fails when the client has left; there is nobody to tell.
	_ = a.flush()
}
