package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/ollama/ollama/api"
)

// ollamaSDK is github.com/ollama/ollama/api. It has no keys, so that the
// transport adds one.
type ollamaSDK struct {
	c    *api.Client
	chat bool
}

func newOllama(chat bool) func(*testing.T, string, string, *http.Client) client {
	return func(t *testing.T, base, _ string, h *http.Client) client {
		t.Helper()
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		return &ollamaSDK{api.NewClient(u, h), chat}
	}
}

func (c *ollamaSDK) whole(ctx context.Context, a ask) reply {
	off := false
	return c.ask(ctx, a, &off, func() {})
}

// A request streams unless it says that it doesn't.
func (c *ollamaSDK) stream(ctx context.Context, a ask, each func()) reply {
	return c.ask(ctx, a, nil, each)
}

func (c *ollamaSDK) ask(ctx context.Context, a ask, stream *bool, each func()) (r reply) {
	options := map[string]any{"num_predict": a.maxTokens}
	took := func(v any, text, reason string, m *api.Metrics) error {
		r.say(0, text, reason)
		if reason != "" {
			r.Usage = []int64{int64(m.PromptEvalCount), int64(m.EvalCount)}
		}
		raw, err := json.Marshal(v)
		r.event(0, string(raw), "created_at", "total_duration")
		each()
		return err
	}
	var err error
	if c.chat {
		q := &api.ChatRequest{Model: "m", Stream: stream, Options: options}
		if a.system != "" {
			q.Messages = append(q.Messages, api.Message{Role: "system", Content: a.system})
		}
		for i, text := range a.turns {
			q.Messages = append(q.Messages, api.Message{Role: []string{"user", "assistant"}[i%2], Content: text})
		}
		err = c.c.Chat(ctx, q, func(v api.ChatResponse) error {
			return took(v, v.Message.Content, v.DoneReason, &v.Metrics)
		})
	} else {
		q := &api.GenerateRequest{Model: "m", Prompt: a.text(), System: a.system, Stream: stream, Options: options}
		err = c.c.Generate(ctx, q, func(v api.GenerateResponse) error {
			return took(v, v.Response, v.DoneReason, &v.Metrics)
		})
	}
	r.err = err
	if e, ok := errors.AsType[api.StatusError](err); ok {
		r.Details = []any{e.StatusCode, e.ErrorMessage}
	}
	return r
}
