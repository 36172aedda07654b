package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"google.golang.org/genai"
)

// geminiSDK is google.golang.org/genai.
type geminiSDK struct{ c *genai.Client }

func newGemini(t *testing.T, url, key string, h *http.Client) client {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: key, HTTPClient: h, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &geminiSDK{c}
}

func (c *geminiSDK) params(a ask) ([]*genai.Content, *genai.GenerateContentConfig) {
	config := &genai.GenerateContentConfig{CandidateCount: int32(a.answers()), MaxOutputTokens: int32(a.maxTokens)}
	if a.system != "" {
		config.SystemInstruction = genai.NewContentFromText(a.system, genai.RoleUser)
	}
	var contents []*genai.Content
	for i, text := range a.turns {
		role := genai.Role(genai.RoleUser)
		if i%2 == 1 {
			role = genai.RoleModel
		}
		contents = append(contents, genai.NewContentFromText(text, role))
	}
	return contents, config
}

func (r *reply) geminiFailure(err error) {
	r.err = err
	if e, ok := errors.AsType[genai.APIError](err); ok {
		r.Details = []any{e.Code, e.Status, e.Message}
	}
}

func (r *reply) gemini(v *genai.GenerateContentResponse) {
	r.id(v.ResponseID)
	for _, x := range v.Candidates {
		for _, part := range x.Content.Parts {
			r.say(int(x.Index), part.Text, string(x.FinishReason))
		}
	}
	if u := v.UsageMetadata; u != nil {
		r.Usage = []int64{int64(u.PromptTokenCount), int64(u.CandidatesTokenCount), int64(u.TotalTokenCount)}
	}
}

func (c *geminiSDK) whole(ctx context.Context, a ask) (r reply) {
	contents, config := c.params(a)
	v, err := c.c.Models.GenerateContent(ctx, "m", contents, config)
	if err != nil {
		r.geminiFailure(err)
		return r
	}
	r.gemini(v)
	return r
}

func (c *geminiSDK) stream(ctx context.Context, a ask, each func()) (r reply) {
	contents, config := c.params(a)
	for v, err := range c.c.Models.GenerateContentStream(ctx, "m", contents, config) {
		if err != nil {
			r.geminiFailure(err)
			return r
		}
		r.gemini(v)
		choice := a.answers()
		if len(v.Candidates) == 1 {
			choice = int(v.Candidates[0].Index)
		}
		v.SDKHTTPResponse = nil
		raw, err := json.Marshal(v)
		if err != nil {
			r.err = err
			return r
		}
		r.event(choice, string(raw))
		each()
	}
	return r
}
