package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"google.golang.org/genai"
)

// geminiArray streams Gemini's answers as a JSON array, which is what the API
// sends to clients that don't ask for server-sent events. The library always
// asks for them, so only the rest is its own.
type geminiArray struct {
	*geminiSDK
	url, key string
	h        *http.Client
}

func newGeminiArray(t *testing.T, url, key string, h *http.Client) client {
	t.Helper()
	return &geminiArray{newGemini(t, url, key, h).(*geminiSDK), url, key, h}
}

func (c *geminiArray) stream(ctx context.Context, a ask, each func()) (r reply) {
	contents, config := c.params(a)
	body, err := json.Marshal(map[string]any{
		"contents": contents, "systemInstruction": config.SystemInstruction,
		"generationConfig": map[string]int32{"candidateCount": config.CandidateCount, "maxOutputTokens": config.MaxOutputTokens},
	})
	if err != nil {
		r.err = err
		return r
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1beta/models/m:streamGenerateContent", bytes.NewReader(body))
	if err != nil {
		r.err = err
		return r
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Goog-Api-Key", c.key)
	res, err := c.h.Do(q)
	if err != nil {
		r.err = err
		return r
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		r.err = fmt.Errorf("status %d", res.StatusCode)
		return r
	}
	defer func() {
		if r.err != nil && ctx.Err() != nil {
			r.err = ctx.Err() // the decoder hides the first error and reads on
		}
	}()
	d := json.NewDecoder(res.Body)
	if _, r.err = d.Token(); r.err != nil { // the opening bracket
		return r
	}
	for d.More() {
		var raw json.RawMessage
		var v genai.GenerateContentResponse
		if r.err = d.Decode(&raw); r.err != nil {
			return r
		}
		if r.err = json.Unmarshal(raw, &v); r.err != nil {
			return r
		}
		if len(v.Candidates) == 0 && v.UsageMetadata == nil {
			r.err = fmt.Errorf("an element without candidates: %s", raw)
			return r
		}
		r.gemini(&v)
		choice := a.answers()
		if len(v.Candidates) == 1 {
			choice = int(v.Candidates[0].Index)
		}
		r.event(choice, string(raw))
		each()
	}
	_, r.err = d.Token() // the closing bracket
	return r
}
