package sim

// Anthropic's messages: /v1/messages and, with the account in the URL, Workers
// AI's /ai/v1/messages.
//
// An answer is one block of text. As events it is message_start, then
// content_block_start, a ping, a content_block_delta for each token and
// content_block_stop, then message_delta with the reason and the usage, and
// message_stop. An answer without any text has no block.
//
// How many tokens the prompt has is known when the node that answers says so,
// which is at the end. So message_start counts none, and message_delta, whose
// counts are totals and replace those before, has both.
//
// A request that is refused gets a status of its own, also when it asked for a
// stream; a stream that has begun ends with an error event.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

type anthropicRequest struct {
	Model     string           `json:"model"`
	MaxTokens *int             `json:"max_tokens"`
	System    anthropicContent `json:"system"`
	Messages  []anthropicTurn  `json:"messages"`
	Tools     json.RawMessage  `json:"tools"`
	Stream    bool             `json:"stream"`
}

type anthropicTurn struct {
	Role    string           `json:"role"`
	Content anthropicContent `json:"content"`
}

// anthropicContent is a string, null, or an array of blocks.
type anthropicContent []anthropicBlock

// anthropicBlock is a block of a request. Which fields it has goes by its type.
type anthropicBlock struct {
	Type     string           `json:"type"`
	Text     string           `json:"text"`     // text
	Thinking string           `json:"thinking"` // thinking
	Name     string           `json:"name"`     // tool_use
	Input    json.RawMessage  `json:"input"`    // tool_use
	Content  anthropicContent `json:"content"`  // tool_result
	Source   struct {         // document
		Type    string           `json:"type"`
		Data    string           `json:"data"`
		Content anthropicContent `json:"content"`
	} `json:"source"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *anthropicContent) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = anthropicContent{{Type: "text", Text: s}}
		return nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(b, &blocks); err != nil {
		return errors.New("content is neither a string nor an array of blocks")
	}
	*c = blocks
	return nil
}

// text returns the texts of blocks that hold nothing else.
func (c anthropicContent) text() (content, error) {
	var all content
	for i := range c {
		texts, err := c[i].text()
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		all = append(all, texts...)
	}
	return all, nil
}

// text returns the texts of a block that is no use of a tool and no result of
// one.
func (b *anthropicBlock) text() (content, error) {
	switch {
	case b.Type == "text":
		return content{b.Text}, nil
	case b.Type == "thinking":
		return content{b.Thinking}, nil
	case b.Type == "redacted_thinking":
		return nil, nil // only its maker can read it
	case b.Type == "document" && b.Source.Type == "text":
		return content{b.Source.Data}, nil
	case b.Type == "document" && b.Source.Type == "content":
		return b.Source.Content.text()
	}
	return nil, fmt.Errorf("is of type %q: the model reads text only", b.Type)
}

// chat returns the request's turns in the shape that the template takes. The
// results of tools stand in a user's turn and become messages of their own.
func (q *anthropicRequest) chat() ([]message, error) {
	var all []message
	system, err := q.System.text()
	if err != nil {
		return nil, fmt.Errorf("system: %w", err)
	}
	if len(system) > 0 {
		all = append(all, message{Role: "system", Content: system})
	}
	if len(q.Messages) == 0 {
		return nil, errors.New("messages: is empty")
	}
	for i := range q.Messages {
		m := &q.Messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf("messages: the role of message %d is neither user nor assistant", i)
		}
		turn := message{Role: m.Role}
		for j := range m.Content {
			switch b := &m.Content[j]; b.Type {
			case "tool_use":
				var call toolCall
				call.Function.Name, call.Function.Arguments = b.Name, string(b.Input)
				turn.ToolCalls = append(turn.ToolCalls, call)
			case "tool_result":
				result, err := b.Content.text()
				if err != nil {
					return nil, fmt.Errorf("messages: message %d: %w", i, err)
				}
				all = append(all, message{Role: "tool", Content: result})
			default:
				texts, err := b.text()
				if err != nil {
					return nil, fmt.Errorf("messages: message %d: block %d: %w", i, j, err)
				}
				turn.Content = append(turn.Content, texts...)
			}
		}
		if len(turn.Content) > 0 || len(turn.ToolCalls) > 0 {
			all = append(all, turn)
		}
	}
	return all, nil
}

func (e *Engine) anthropicMessages(w http.ResponseWriter, r *http.Request) {
	id, label := e.responseID(w, r, "msg_")
	w.Header().Set("Request-Id", label)
	var q anthropicRequest
	if f := e.readJSON(w, r, &q); f != nil {
		refuseAnthropic(w, label, *f)
		return
	}
	turns, err := q.chat()
	if err != nil {
		refuseAnthropic(w, label, badRequest("%v", err))
		return
	}
	parts, err := chat(turns, q.Tools)
	if err != nil {
		refuseAnthropic(w, label, badRequest("%v", err))
		return
	}
	if q.MaxTokens == nil || *q.MaxTokens == 0 {
		refuseAnthropic(w, label, badRequest("max_tokens: is required, and at least 1"))
		return
	}
	n, maxNew, f := e.answers(1, 1, *q.MaxTokens)
	if f != nil {
		refuseAnthropic(w, label, *f)
		return
	}
	c := call{e: e, id: label, tenant: tenantOf(r), prompts: [][]part{parts}, n: n, maxNew: maxNew}
	m := anthropicMessage{ID: id, Type: "message", Role: "assistant", Model: e.modelName(q.Model), Content: []anthropicText{}}
	if q.Stream {
		c.reply = &anthropicStream{events: newEvents(w), message: m, request: label}
	} else {
		c.reply = &anthropicWhole{w: w, message: m, request: label}
	}
	c.serve(r)
}

type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

// anthropicFailure returns a refusal in Anthropic's form and with its status:
// an engine that can't take more is overloaded, which is 529.
func anthropicFailure(f refusal, request string) (status int, v anthropicError) {
	status, v.Type, v.RequestID = f.status, "error", request
	v.Error.Message = f.message
	switch {
	case status == http.StatusServiceUnavailable:
		status, v.Error.Type = 529, "overloaded_error"
	case status == http.StatusRequestEntityTooLarge:
		v.Error.Type = "request_too_large"
	case status >= 500:
		v.Error.Type = "api_error"
	default:
		v.Error.Type = "invalid_request_error"
	}
	return status, v
}

func refuseAnthropic(w http.ResponseWriter, request string, f refusal) {
	status, v := anthropicFailure(f, request)
	writeJSON(w, status, v)
}

type anthropicMessage struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Role         string          `json:"role"`
	Model        string          `json:"model"`
	Content      []anthropicText `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	Usage        anthropicUsage  `json:"usage"`
}

type anthropicText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type anthropicUsage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

// anthropicReason returns a finish reason as Anthropic says it.
func anthropicReason(reason string) *string {
	switch reason {
	case "stop":
		reason = "end_turn"
	case "length":
		reason = "max_tokens"
	}
	return &reason
}

// anthropicWhole answers with one JSON document.
type anthropicWhole struct {
	w       http.ResponseWriter
	message anthropicMessage
	request string
	text    strings.Builder
}

func (a *anthropicWhole) delta(_ int, text string)    { a.text.WriteString(text) }
func (a *anthropicWhole) finish(_ int, reason string) { a.message.StopReason = anthropicReason(reason) }
func (a *anthropicWhole) flush() error                { return nil }
func (a *anthropicWhole) refuse(f refusal)            { refuseAnthropic(a.w, a.request, f) }

func (a *anthropicWhole) end(u usage) {
	if a.text.Len() > 0 {
		a.message.Content = []anthropicText{{"text", a.text.String()}}
	}
	a.message.Usage = anthropicUsage{u.Prompt, u.Completion}
	writeJSON(a.w, http.StatusOK, a.message)
}

// anthropicStream answers with events.
type anthropicStream struct {
	*events
	message anthropicMessage
	request string
	started bool
	block   bool // the block of text has begun
	reason  *string
}

type anthropicEvent struct {
	Type    string            `json:"type"`
	Message *anthropicMessage `json:"message,omitempty"`
	Index   *int              `json:"index,omitempty"`
	Block   *anthropicText    `json:"content_block,omitempty"`
	Delta   any               `json:"delta,omitempty"`
	Usage   *anthropicUsage   `json:"usage,omitempty"`
}

// event adds an event under its name.
func (a *anthropicStream) event(name string, v any) {
	a.buf.WriteString("event: ")
	a.buf.WriteString(name)
	a.buf.WriteByte('\n')
	a.frame(v)
}

func (a *anthropicStream) start() {
	if a.started {
		return
	}
	a.started = true
	a.event("message_start", anthropicEvent{Type: "message_start", Message: &a.message})
}

func (a *anthropicStream) delta(_ int, text string) {
	a.start()
	if text == "" {
		return
	}
	if !a.block {
		a.block = true
		a.event("content_block_start", anthropicEvent{Type: "content_block_start", Index: new(int), Block: &anthropicText{Type: "text"}})
		a.event("ping", anthropicEvent{Type: "ping"})
	}
	a.event("content_block_delta", anthropicEvent{Type: "content_block_delta", Index: new(int), Delta: anthropicText{"text_delta", text}})
}

func (a *anthropicStream) finish(_ int, reason string) {
	a.start()
	if a.block {
		a.event("content_block_stop", anthropicEvent{Type: "content_block_stop", Index: new(int)})
	}
	a.reason = anthropicReason(reason)
}

func (a *anthropicStream) end(u usage) {
	type delta struct {
		StopReason   *string `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	}
	a.event("message_delta", anthropicEvent{
		Type: "message_delta", Delta: delta{StopReason: a.reason}, Usage: &anthropicUsage{u.Prompt, u.Completion},
	})
	a.event("message_stop", anthropicEvent{Type: "message_stop"})
}

func (a *anthropicStream) refuse(f refusal) {
	if !a.begun {
		refuseAnthropic(a.w, a.request, f)
		return
	}
	_, v := anthropicFailure(f, a.request)
	a.event("error", v)
	// flush fails when the client has left; there is nobody to tell.
	_ = a.flush()
}
