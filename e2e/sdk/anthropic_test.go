package sdk

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// anthropicSDK is github.com/anthropics/anthropic-sdk-go.
type anthropicSDK struct{ c anthropic.Client }

func newAnthropic(path string) func(*testing.T, string, string, *http.Client) client {
	return func(_ *testing.T, url, key string, h *http.Client) client {
		return &anthropicSDK{anthropic.NewClient(
			option.WithoutEnvironmentDefaults(), option.WithBaseURL(url+strings.ReplaceAll(path, "{key}", key)),
			option.WithAPIKey(key), option.WithHTTPClient(h), option.WithMaxRetries(0),
		)}
	}
}

func (c *anthropicSDK) params(a ask) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{Model: "m", MaxTokens: int64(a.maxTokens)}
	if a.system != "" {
		p.System = []anthropic.TextBlockParam{{Text: a.system}}
	}
	for i, text := range a.turns {
		if i%2 == 0 {
			p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(text)))
		} else {
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(anthropic.NewTextBlock(text)))
		}
	}
	return p
}

func (r *reply) anthropicFailure(err error) {
	r.err = err
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		r.Details = []any{e.StatusCode, string(e.Type()), e.Message}
		r.id(e.RequestID)
		// The text of the error names the address, which is another through the
		// sidecar.
		r.err = errors.New(e.Message)
	}
}

func (r *reply) anthropicMessage(v *anthropic.Message) {
	r.id(v.ID)
	for i, block := range v.Content {
		r.say(i, block.Text, string(v.StopReason))
	}
	r.Usage = []int64{v.Usage.InputTokens, v.Usage.OutputTokens}
}

func (c *anthropicSDK) whole(ctx context.Context, a ask) (r reply) {
	v, err := c.c.Messages.New(ctx, c.params(a))
	if err != nil {
		r.anthropicFailure(err)
		return r
	}
	r.anthropicMessage(v)
	return r
}

func (c *anthropicSDK) stream(ctx context.Context, a ask, each func()) (r reply) {
	s := c.c.Messages.NewStreaming(ctx, c.params(a))
	var v anthropic.Message
	for s.Next() {
		e := s.Current()
		if err := v.Accumulate(e); err != nil {
			r.anthropicFailure(err)
			return r
		}
		r.event(0, e.RawJSON())
		each()
	}
	r.anthropicMessage(&v)
	r.anthropicFailure(s.Err())
	_ = s.Close()
	return r
}
