package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/auditproxy/auditproxy/gpukv"
)

// message is one turn of a chat, in the shape that OpenAI and Workers AI share.
type message struct {
	Role      string     `json:"role"`
	Content   content    `json:"content"`
	ToolCalls []toolCall `json:"tool_calls"`
}

type toolCall struct {
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// content is a string, null, or an array of text parts.
type content []string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = content{s}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return errors.New("content is neither a string nor an array of parts")
	}
	for i := range parts {
		if parts[i].Type != "text" {
			return fmt.Errorf("content part %d is no text, and the model reads nothing else", i)
		}
		*c = append(*c, parts[i].Text)
	}
	return nil
}

// part is a text of a prompt with the marker that stands before it.
type part struct {
	marker gpukv.Token // 0 for none
	text   string
	own    bool // the tenant's words, not the assistant's
}

// chat renders messages to the parts of one prompt. The template is a marker of
// the role before each message and the assistant's at the end.
func chat(messages []message, tools json.RawMessage) ([]part, error) {
	if len(messages) == 0 {
		return nil, errors.New("messages: is empty")
	}
	var parts []part
	if len(tools) > 0 && string(tools) != "null" {
		parts = append(parts, part{systemToken, string(tools), true})
	}
	for i := range messages {
		m := &messages[i]
		var marker gpukv.Token
		switch m.Role {
		case "system", "developer":
			marker = systemToken
		case "user":
			marker = userToken
		case "assistant":
			marker = assistantToken
		case "tool", "function":
			marker = toolToken
		default:
			return nil, fmt.Errorf("messages: the role of message %d is none of system, user, assistant, tool", i)
		}
		texts := m.Content
		for _, c := range m.ToolCalls {
			texts = append(texts, c.Function.Name+" "+c.Function.Arguments)
		}
		own := marker != assistantToken
		for _, t := range texts {
			parts = append(parts, part{marker, t, own})
			marker = partToken
		}
	}
	return append(parts, part{marker: assistantToken}), nil
}

// textPrompt returns the parts of a bare prompt: as a user's message, or as it
// is.
func textPrompt(text string, raw bool) []part {
	if raw {
		return []part{{text: text, own: true}}
	}
	return []part{{userToken, text, true}, {marker: assistantToken}}
}

// encode returns the tokens of a prompt and enters the tenant's words in the
// record of who sent what.
func (e *Engine) encode(tenant uint32, parts []part) []gpukv.Token {
	n := 0
	for _, p := range parts {
		n += len(p.text)/5 + 1
	}
	tokens := make([]gpukv.Token, 0, n)
	var words []uint64
	for _, p := range parts {
		if p.marker != 0 {
			tokens = append(tokens, p.marker)
		}
		from := len(tokens)
		tokens = e.vocabulary.Encode(tokens, p.text)
		if p.own {
			words = e.vocabulary.words(words[:0], tokens[from:])
			e.origins.addPrompt(tenant, words)
		}
	}
	return tokens
}

// texts are the prompts of a completion request.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (p *texts) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*p = texts{s}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return errors.New("prompt is neither a string nor an array of strings")
	}
	*p = list
	return nil
}

// blank reports whether a prompt has no text at all.
func blank(parts []part) bool {
	for _, p := range parts {
		if strings.TrimSpace(p.text) != "" {
			return false
		}
	}
	return true
}
