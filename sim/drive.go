package sim

// The driver sends a workload to an engine or to a proxy in front of one, and
// reads the answers as a client does. It talks to loopback only: its traffic is
// made up and there is a lot of it.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Result is what became of one request.
type Result struct {
	ID               string // X-Request-Id, such as r-000123; also the exchange of its label
	Tenant           string
	Oversized        bool          // longer than the prefill pool
	Status           int           // HTTP status; 0 if no answer came
	Refused          bool          // answered with an error, by status or in the stream
	Aborted          bool          // the client left on purpose
	Latency          time.Duration // until the end of the answer
	FirstByte        time.Duration // until the first byte of the body; 0 if none came
	CompletionTokens int           // as the response says; 0 if it doesn't
	PromptTokens     int           // as the response says; 0 if it doesn't
	Err              error         // what went wrong, unless the client left on purpose
}

// Drive sends the workload's requests to baseURL, in order, at most concurrency
// at a time, and calls each with every result, one at a time, as they come. A
// turn of a conversation waits for the answer to the turn before.
//
// It returns when all have been answered, or earlier with ctx's error or with
// that of a workload, address or concurrency that makes no sense. baseURL must be
// on the loopback interface. What single requests meet is in their results.
func (w *Workload) Drive(ctx context.Context, client *http.Client, baseURL string, concurrency int, each func(Result)) error {
	base, err := loopback(baseURL)
	if err != nil {
		return err
	}
	if concurrency < 1 {
		return fmt.Errorf("drive: a concurrency of %d", concurrency)
	}
	p, err := newPlan(*w)
	if err != nil {
		return err
	}
	// A copy that follows no redirect, which could lead away from loopback.
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	d := driver{plan: p, client: &c, base: base}

	next := make(chan *item)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range concurrency {
		wg.Go(func() {
			for it := range next {
				r := d.do(ctx, it)
				mu.Lock()
				each(r)
				mu.Unlock()
			}
		})
	}
	func() {
		defer close(next)
		for i := range p.items {
			select {
			case next <- &p.items[i]:
			case <-ctx.Done():
				return
			}
		}
	}()
	wg.Wait()
	return ctx.Err()
}

// loopback returns the address of a server on this machine.
func loopback(baseURL string) (string, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "", fmt.Errorf("drive: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("drive: %s: want an http or https URL", baseURL)
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("drive: host %q is not on the loopback interface, and this traffic goes nowhere else", host)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

type driver struct {
	plan   *plan
	client *http.Client
	base   string
}

// do sends one request and reads its answer.
func (d *driver) do(ctx context.Context, it *item) (r Result) {
	r = Result{ID: it.id, Tenant: it.tenant.name, Oversized: it.kind == kindArchive}
	if it.talk != nil {
		// The answer, or its absence, lets the next turn go on.
		defer close(it.talk.turns[it.turn].done)
		if it.turn > 0 {
			select {
			case <-it.talk.turns[it.turn-1].done:
			case <-ctx.Done():
				r.Err = ctx.Err()
				return r
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.plan.w.Timeout)
	defer cancel()
	q, err := d.request(ctx, it)
	if err != nil {
		r.Err = err
		return r
	}
	start := time.Now()
	a := d.exchange(q, it, cancel, func() { r.FirstByte = time.Since(start) })
	r.Latency = time.Since(start)
	r.Status, r.Refused, r.Aborted, r.Err = a.status, a.refused, a.left, a.err
	r.PromptTokens, r.CompletionTokens = a.usage.Prompt, a.usage.Completion
	if it.talk != nil {
		it.talk.turns[it.turn].answer = a.text.String()
	}
	return r
}

// request builds an item's request.
func (d *driver) request(ctx context.Context, it *item) (*http.Request, error) {
	text := d.plan.text(it)
	model := d.plan.w.Model
	body := map[string]any{"stream": it.stream, "max_tokens": it.max}
	account := d.base + "/client/v4/accounts/" + url.PathEscape(it.tenant.name) + "/ai"
	var to string
	switch it.api {
	case nativePrompt:
		to = account + "/run/" + model
		body["prompt"] = text.joined()
	case nativeMessages:
		to = account + "/run/" + model
		body["messages"] = text
	case accountChat:
		to = account + "/v1/chat/completions"
		body["model"], body["messages"] = model, text
	case openAIChat:
		to = d.base + "/v1/chat/completions"
		body["model"], body["messages"] = model, text
	case openAICompletion:
		to = d.base + "/v1/completions"
		body["model"], body["prompt"] = model, text.joined()
	}
	if it.stream && it.api >= accountChat {
		body["stream_options"] = map[string]bool{"include_usage": true}
	}
	var b bytes.Buffer
	if err := encodeJSON(&b, body); err != nil {
		return nil, fmt.Errorf("request %s: %w", it.id, err)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, to, &b)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", it.id, err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+it.tenant.name)
	q.Header.Set("X-Request-Id", it.id)
	if h := d.plan.w.TenantHeader; h != "" {
		q.Header.Set(h, it.tenant.name)
	}
	return q, nil
}

// received is what a client made of a response.
type received struct {
	status  int
	text    strings.Builder
	usage   usage
	refused bool
	left    bool
	err     error
}

// exchange sends a request and reads the response. leave ends it from this side.
func (d *driver) exchange(q *http.Request, it *item, leave func(), firstByte func()) (a received) {
	res, err := d.client.Do(q)
	if err != nil {
		a.err = err
		return a
	}
	defer func() {
		// What is left unread belongs to a response that was given up.
		_ = res.Body.Close()
	}()
	a.status = res.StatusCode
	body := bufio.NewReaderSize(&firstRead{r: res.Body, f: firstByte}, 1<<16)
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		a.whole(body)
		return a
	}
	for n := 0; ; {
		line, err := body.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			data = bytes.TrimSpace(data)
			if string(data) == "[DONE]" {
				// Read to the end, so that the connection can be used again.
				_, a.err = io.Copy(io.Discard, body)
				return a
			}
			a.event(data)
			if n++; n == it.leave {
				a.left = true
				leave()
				return a
			}
		}
		if err != nil {
			a.err = fmt.Errorf("the stream ended before its end: %w", noEOF(err))
			return a
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// firstRead calls f when the first byte has come.
type firstRead struct {
	r io.Reader
	f func()
}

func (r *firstRead) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if n > 0 && r.f != nil {
		r.f()
		r.f = nil
	}
	return n, err
}

// payload is the union of what the APIs answer, whole and in events.
type payload struct {
	Response string `json:"response"`
	Result   *struct {
		Response string `json:"response"`
		Usage    usage  `json:"usage"`
	} `json:"result"`
	Choices []struct {
		Text    string `json:"text"`
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

func (a *received) whole(body io.Reader) {
	b, err := io.ReadAll(body)
	if err != nil {
		a.err = noEOF(err)
		return
	}
	if a.status != http.StatusOK {
		a.refused = true
		return
	}
	a.event(b)
}

func (a *received) event(data []byte) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		a.err = fmt.Errorf("the answer can't be read: %w", err)
		return
	}
	if len(p.Error) > 0 {
		a.refused = true
		return
	}
	a.text.WriteString(p.Response)
	if p.Result != nil {
		a.text.WriteString(p.Result.Response)
		a.usage = p.Result.Usage
	}
	for _, c := range p.Choices {
		a.text.WriteString(c.Text + c.Message.Content + c.Delta.Content)
	}
	if p.Usage != nil {
		a.usage = *p.Usage
	}
}
