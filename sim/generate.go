package sim

// SGLang's own route, /generate: one bare text, answered by one object or, if
// there are several answers to it, by an array.
//
// The events of a stream are cumulative: each holds all text so far. Like the
// engine it imitates, the route sends the newest state when tokens come faster
// than it writes, so an event may be several tokens ahead of the one before. The
// last of each answer has the reason and both counts; how many tokens the prompt
// has is known no earlier. Then comes [DONE]. Events of several answers have an
// index.
//
// A refused request gets its status and an error, and in a stream, which has
// begun by then, an event whose finish reason is an abort. Lists of texts, token
// ids, log probabilities and sessions are refused: they would need an engine
// whose tokens mean something outside of it.

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

type generateRequest struct {
	Text          *string         `json:"text"`
	RID           string          `json:"rid"`
	Sampling      generateOptions `json:"sampling_params"`
	Stream        bool            `json:"stream"`
	InputIDs      json.RawMessage `json:"input_ids"`
	InputEmbeds   json.RawMessage `json:"input_embeds"`
	ImageData     json.RawMessage `json:"image_data"`
	AudioData     json.RawMessage `json:"audio_data"`
	Session       json.RawMessage `json:"session_params"`
	ReturnLogprob bool            `json:"return_logprob"`
}

type generateOptions struct {
	N            int `json:"n"`
	MaxNewTokens int `json:"max_new_tokens"`
}

// unsupported reports whether the request asks for what the route can't do.
func (q *generateRequest) unsupported() bool {
	for _, v := range []json.RawMessage{q.InputIDs, q.InputEmbeds, q.ImageData, q.AudioData, q.Session} {
		if len(v) > 0 && string(v) != "null" {
			return true
		}
	}
	return q.ReturnLogprob
}

func (e *Engine) generate(w http.ResponseWriter, r *http.Request) {
	id, label := e.responseID(w, r, "")
	var q generateRequest
	if f := e.readJSON(w, r, &q); f != nil {
		refuseGenerate(w, *f)
		return
	}
	if q.RID != "" {
		// The client's name for the request is as good as a header.
		if label == id && sane(q.RID) {
			label = q.RID
			w.Header().Set("X-Request-Id", label)
		}
		id = q.RID
	}
	if q.unsupported() {
		refuseGenerate(w, badRequest("only text is supported, without log probabilities and sessions"))
		return
	}
	if q.Text == nil || strings.TrimSpace(*q.Text) == "" {
		refuseGenerate(w, badRequest("text: is empty"))
		return
	}
	n, maxNew, f := e.answers(1, q.Sampling.N, q.Sampling.MaxNewTokens)
	if f != nil {
		refuseGenerate(w, *f)
		return
	}
	c := call{e: e, id: label, tenant: tenantOf(r), prompts: [][]part{textPrompt(*q.Text, true)}, n: n, maxNew: maxNew}
	a := generated{id: id, start: time.Now(), said: make([]generateSaid, n)}
	if q.Stream {
		c.reply = &generateStream{generated: a, events: newEvents(w)}
	} else {
		c.reply = &generateWhole{generated: a, w: w}
	}
	c.serve(r)
}

type generateError struct {
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

func refuseGenerate(w http.ResponseWriter, f refusal) {
	var v generateError
	v.Error.Message = f.message
	writeJSON(w, f.status, v)
}

type generateAnswer struct {
	Text  string       `json:"text"`
	Meta  generateMeta `json:"meta_info"`
	Index *int         `json:"index,omitempty"`
}

type generateMeta struct {
	ID               string          `json:"id"`
	FinishReason     *generateFinish `json:"finish_reason"`
	PromptTokens     *int            `json:"prompt_tokens,omitempty"`
	CompletionTokens int             `json:"completion_tokens"`
	CachedTokens     int             `json:"cached_tokens"`
	Latency          float64         `json:"e2e_latency,omitempty"` // seconds
}

// generateFinish has the fields of its type: those of stop, of length, or of
// abort.
type generateFinish struct {
	Type       string `json:"type"`
	Matched    int    `json:"matched,omitempty"` // the token that ended the answer
	Length     int    `json:"length,omitempty"`
	Message    string `json:"message,omitempty"`
	StatusCode int    `json:"status_code,omitempty"`
	ErrType    string `json:"err_type,omitempty"`
}

// generated is what whole answers and streams have in common.
type generated struct {
	id    string
	start time.Time
	said  []generateSaid // by answer
}

type generateSaid struct {
	text   strings.Builder
	tokens int
	finish *generateFinish
	news   bool // since the last event
}

func (a *generated) delta(i int, text string) {
	s := &a.said[i]
	s.text.WriteString(text)
	s.tokens++
	s.news = true
}

func (a *generated) finish(i int, reason string) {
	s := &a.said[i]
	s.finish = &generateFinish{Type: reason}
	switch reason {
	case "stop":
		s.tokens++ // the token that ended it has no text
		s.finish.Matched = int(endToken)
	case "length":
		s.finish.Length = s.tokens
	}
}

func (a *generated) answer(i int) generateAnswer {
	s := &a.said[i]
	v := generateAnswer{Text: s.text.String(), Meta: generateMeta{ID: a.id, FinishReason: s.finish, CompletionTokens: s.tokens}}
	if len(a.said) > 1 {
		v.Index = &i
	}
	return v
}

// last returns the final state of an answer.
func (a *generated) last(i int, u usage) generateAnswer {
	v := a.answer(i)
	v.Meta.PromptTokens = &u.Prompt
	v.Meta.Latency = time.Since(a.start).Seconds()
	return v
}

// generateWhole answers with one JSON document.
type generateWhole struct {
	generated
	w http.ResponseWriter
}

func (a *generateWhole) flush() error     { return nil }
func (a *generateWhole) refuse(f refusal) { refuseGenerate(a.w, f) }

func (a *generateWhole) end(u usage) {
	if len(a.said) == 1 {
		writeJSON(a.w, http.StatusOK, a.last(0, u))
		return
	}
	all := make([]generateAnswer, len(a.said))
	for i := range all {
		all[i] = a.last(i, u)
		all[i].Index = nil // the place in the array says it
	}
	writeJSON(a.w, http.StatusOK, all)
}

// generateStream answers with events.
type generateStream struct {
	generated
	*events
}

func (a *generateStream) flush() error {
	for i := range a.said {
		if s := &a.said[i]; s.news && s.finish == nil {
			s.news = false
			a.frame(a.answer(i))
		}
	}
	return a.events.flush()
}

func (a *generateStream) end(u usage) {
	for i := range a.said {
		a.frame(a.last(i, u))
	}
	a.done()
}

func (a *generateStream) refuse(f refusal) {
	for i := range a.said {
		if a.said[i].finish == nil {
			a.said[i].finish = &generateFinish{Type: "abort", Message: f.message, StatusCode: f.status, ErrType: f.kind}
		}
		a.frame(a.answer(i))
	}
	a.done()
	// flush fails when the client has left; there is nobody to tell.
	_ = a.flush()
}
