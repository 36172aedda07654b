package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// sglang asks SGLang's own API, for which there is no library.
type sglang struct {
	url string
	h   *http.Client
}

func newSGLang(_ *testing.T, url, _ string, h *http.Client) client {
	return &sglang{url + "/generate", h}
}

type sglangAnswer struct {
	Text  string `json:"text"`
	Index int    `json:"index"`
	Meta  struct {
		ID           string `json:"id"`
		FinishReason *struct {
			Type    string `json:"type"`
			Message string `json:"message"`
			Status  int    `json:"status_code"`
		} `json:"finish_reason"`
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"meta_info"`
}

// sglang notes the last state of an answer.
func (r *reply) sglang(v *sglangAnswer, i int) {
	r.id(v.Meta.ID)
	f := v.Meta.FinishReason
	if f != nil && f.Type == "abort" {
		r.err = fmt.Errorf("aborted: %s", f.Message)
		r.Details = []any{f.Status}
		return
	}
	r.say(i, v.Text, f.Type)
	r.Usage = append(r.Usage, v.Meta.Prompt, v.Meta.Completion)
}

func (c *sglang) send(ctx context.Context, a ask, stream bool) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{
		"text": a.text(), "stream": stream, "sampling_params": map[string]int{"n": a.answers(), "max_new_tokens": a.maxTokens},
	})
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := c.h.Do(q)
	if err == nil && res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	return res, err
}

func (c *sglang) whole(ctx context.Context, a ask) (r reply) {
	res, err := c.send(ctx, a, false)
	if err != nil {
		r.err = err
		return r
	}
	defer res.Body.Close()
	all := make([]sglangAnswer, a.answers())
	d := json.NewDecoder(res.Body)
	if len(all) == 1 {
		err = d.Decode(&all[0])
	} else {
		err = d.Decode(&all)
	}
	r.err = err
	for i := range all {
		r.sglang(&all[i], i)
	}
	return r
}

// stream keeps the last state of each answer only: which states an event shows
// on the way depends on who is faster.
func (c *sglang) stream(ctx context.Context, a ask, each func()) (r reply) {
	res, err := c.send(ctx, a, true)
	if err != nil {
		r.err = err
		return r
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	done := false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var v sglangAnswer
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			r.err = err
			return r
		}
		if v.Meta.FinishReason != nil {
			r.sglang(&v, v.Index)
		}
		each()
	}
	if err := lines.Err(); err != nil {
		r.err = err
	} else if !done {
		r.err = fmt.Errorf("the stream ends without [DONE]")
	}
	return r
}
