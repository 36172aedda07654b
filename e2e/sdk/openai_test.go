package sdk

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// openAI is github.com/openai/openai-go.
type openAI struct{ c openai.Client }

func openAIClient(base, key string, h *http.Client) openai.Client {
	return openai.NewClient(option.WithBaseURL(base), option.WithAPIKey(key), option.WithHTTPClient(h), option.WithMaxRetries(0))
}

func newOpenAI(path string) func(*testing.T, string, string, *http.Client) client {
	return func(_ *testing.T, url, key string, h *http.Client) client {
		return &openAI{openAIClient(url+strings.ReplaceAll(path, "{key}", key), key, h)}
	}
}

func (c *openAI) params(a ask) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: "m", MaxTokens: openai.Int(int64(a.maxTokens)), N: openai.Int(int64(a.answers()))}
	if a.system != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(a.system))
	}
	for i, text := range a.turns {
		if i%2 == 0 {
			p.Messages = append(p.Messages, openai.UserMessage(text))
		} else {
			p.Messages = append(p.Messages, openai.AssistantMessage(text))
		}
	}
	return p
}

func openAIFailure(r *reply, err error) {
	r.err = err
	if e, ok := errors.AsType[*openai.Error](err); ok {
		r.Details = []any{e.StatusCode, e.Type, e.Code, e.Message}
	}
}

func (c *openAI) whole(ctx context.Context, a ask) (r reply) {
	v, err := c.c.Chat.Completions.New(ctx, c.params(a))
	if err != nil {
		openAIFailure(&r, err)
		return r
	}
	r.id(v.ID)
	for _, x := range v.Choices {
		r.say(int(x.Index), x.Message.Content, x.FinishReason)
	}
	r.Usage = []int64{v.Usage.PromptTokens, v.Usage.CompletionTokens, v.Usage.TotalTokens}
	return r
}

func (c *openAI) stream(ctx context.Context, a ask, each func()) (r reply) {
	p := c.params(a)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.c.Chat.Completions.NewStreaming(ctx, p)
	for s.Next() {
		v := s.Current()
		r.id(v.ID)
		choice := a.answers()
		for _, x := range v.Choices {
			choice = int(x.Index)
			r.say(choice, x.Delta.Content, x.FinishReason)
		}
		if v.JSON.Usage.Valid() {
			r.Usage = []int64{v.Usage.PromptTokens, v.Usage.CompletionTokens, v.Usage.TotalTokens}
		}
		r.event(choice, v.RawJSON(), "created")
		each()
	}
	openAIFailure(&r, s.Err())
	_ = s.Close()
	return r
}

// openAICompletions is the same library on the API without turns.
type openAICompletions struct{ c openai.Client }

func newOpenAICompletions(_ *testing.T, url, key string, h *http.Client) client {
	return &openAICompletions{openAIClient(url+"/v1", key, h)}
}

func (c *openAICompletions) params(a ask) openai.CompletionNewParams {
	return openai.CompletionNewParams{
		Model: "m", MaxTokens: openai.Int(int64(a.maxTokens)), N: openai.Int(int64(a.answers())),
		Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String(a.text())},
	}
}

func (c *openAICompletions) whole(ctx context.Context, a ask) (r reply) {
	v, err := c.c.Completions.New(ctx, c.params(a))
	if err != nil {
		openAIFailure(&r, err)
		return r
	}
	r.id(v.ID)
	for _, x := range v.Choices {
		r.say(int(x.Index), x.Text, string(x.FinishReason))
	}
	r.Usage = []int64{v.Usage.PromptTokens, v.Usage.CompletionTokens, v.Usage.TotalTokens}
	return r
}

func (c *openAICompletions) stream(ctx context.Context, a ask, each func()) (r reply) {
	p := c.params(a)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.c.Completions.NewStreaming(ctx, p)
	for s.Next() {
		v := s.Current()
		r.id(v.ID)
		choice := a.answers()
		for _, x := range v.Choices {
			choice = int(x.Index)
			r.say(choice, x.Text, string(x.FinishReason))
		}
		if v.JSON.Usage.Valid() {
			r.Usage = []int64{v.Usage.PromptTokens, v.Usage.CompletionTokens, v.Usage.TotalTokens}
		}
		r.event(choice, v.RawJSON(), "created")
		each()
	}
	openAIFailure(&r, s.Err())
	_ = s.Close()
	return r
}
