package sim

import (
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/auditproxy/auditproxy/gpukv"
)

// call is one HTTP request to a model: some choices, one label.
type call struct {
	e       *Engine
	id      string // of the label
	tenant  string
	prompts [][]part
	n       int // choices for each prompt
	maxNew  int
	reply   reply
}

// reply writes the answer in the form of one API, whole or as a stream. Its
// methods are called from one goroutine.
type reply interface {
	// delta adds a token's text to a choice. It may be empty.
	delta(choice int, text string)
	// finish ends a choice with stop or length.
	finish(choice int, reason string)
	// end ends the response.
	end(usage)
	// refuse answers with an error instead, also after the stream has begun.
	refuse(refusal)
	// flush sends what has been written and reports whether the client still
	// listens.
	flush() error
}

// usage counts tokens as the engine reports them.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// refusal is an error as the engine words it.
type refusal struct {
	status  int
	message string
	kind    string // BadRequestError and the like
}

func badRequest(format string, args ...any) refusal {
	return refusal{http.StatusBadRequest, fmt.Sprintf(format, args...), "BadRequestError"}
}

// choice is one answer as far as it was passed on.
type choice struct {
	s       *stream
	read    int    // tokens passed on
	pending []byte // the beginning of a character
	ended   bool
}

// serve runs the call to its end, label included. The label is there before the
// client has got the end of the response.
func (c *call) serve(r *http.Request) {
	start := time.Now()
	tenant, ok := c.e.tenant(c.tenant)
	if !ok {
		c.reply.refuse(refusal{http.StatusServiceUnavailable, "too many tenants", "ServiceUnavailableError"})
		return
	}
	wake := make(chan struct{}, 1)
	choices := make([]choice, 0, len(c.prompts)*c.n)
	label := Label{Exchange: c.id, Tenant: c.tenant, Expect: []Leak{}}
	var f *refusal
	for _, parts := range c.prompts {
		tokens := c.e.encode(tenant, parts)
		label.PromptTokens += len(tokens)
		label.Oversized = label.Oversized || c.e.oversized(len(tokens))
		for range c.n {
			if f != nil {
				continue // the words of all prompts are entered all the same
			}
			s, err := c.e.submit(tenant, tokens, c.maxNew, wake)
			if err != nil {
				kind := refusal{http.StatusServiceUnavailable, err.Error(), "ServiceUnavailableError"}
				f = &kind
				continue
			}
			choices = append(choices, choice{s: s})
		}
	}
	for listens := true; f == nil && listens; {
		var done bool
		if f, done = c.pass(choices, &label, tenant, start); f != nil {
			break
		}
		listens = c.reply.flush() == nil
		if done {
			return
		}
		listens = listens && await(r.Context(), wake)
	}
	c.abandon(choices, wake)
	if f != nil {
		label.Status = f.status
		c.label(&label, tenant, choices)
		c.e.gauges.refused.Inc()
		c.reply.refuse(*f)
		return
	}
	label.Status, label.Aborted = statusClientGone, true
	c.label(&label, tenant, choices)
}

// statusClientGone is what servers log when the client left first.
const statusClientGone = 499

// pass hands on what the choices have got since it was last called. It returns
// why the call was refused, or whether it is complete.
func (c *call) pass(choices []choice, label *Label, tenant uint32, start time.Time) (*refusal, bool) {
	left := 0
	for i := range choices {
		if !choices[i].ended {
			left++
		}
	}
	for i := range choices {
		ch := &choices[i]
		if ch.ended {
			continue
		}
		tokens, finish := ch.s.from(ch.read)
		if finish != nil && finish.Status != http.StatusOK {
			return &refusal{finish.Status, finish.Message, finish.ErrType}, false
		}
		if ch.read == 0 && len(tokens) > 0 {
			c.e.gauges.firstToken.Observe(time.Since(start).Seconds())
		}
		for _, t := range tokens {
			c.reply.delta(i, ch.text(c.e.vocabulary, t))
		}
		ch.read += len(tokens)
		if finish == nil {
			continue
		}
		if len(ch.pending) > 0 {
			c.reply.delta(i, string(ch.pending))
		}
		ch.ended = true
		if left--; left == 0 {
			label.Status = http.StatusOK
			c.label(label, tenant, choices)
			c.e.gauges.latency.Observe(time.Since(start).Seconds())
		}
		c.reply.finish(i, finish.Reason)
	}
	if left > 0 {
		return nil, false
	}
	var u usage
	for i := range choices {
		_, f := choices[i].s.from(0)
		if i%c.n == 0 {
			u.Prompt += f.PromptTokens
		}
		u.Completion += f.CompletionTokens
	}
	u.Total = u.Prompt + u.Completion
	c.reply.end(u)
	return nil, true
}

// text returns the characters that token t completes.
func (ch *choice) text(v *Vocabulary, t gpukv.Token) string {
	ch.pending = v.Append(ch.pending, t)
	whole := len(ch.pending)
	for i := max(0, whole-utf8.UTFMax+1); i < whole; i++ {
		if utf8.RuneStart(ch.pending[i]) && !utf8.FullRune(ch.pending[i:]) {
			whole = i
			break
		}
	}
	s := string(ch.pending[:whole])
	ch.pending = append(ch.pending[:0], ch.pending[whole:]...)
	return s
}

// abandon cancels the choices that still run and waits until they have ended.
func (c *call) abandon(choices []choice, wake <-chan struct{}) {
	for i := range choices {
		c.e.cancel(choices[i].s)
	}
	for i := range choices {
		for {
			if _, f := choices[i].s.from(0); f != nil {
				break
			}
			<-wake
		}
	}
}

func (c *call) label(l *Label, tenant uint32, choices []choice) {
	answers := make([]answer, len(choices))
	for i := range choices {
		s := choices[i].s
		answers[i].tokens, _ = s.from(0)
		answers[i].reads = s.reads
	}
	c.e.judge(l, tenant, answers)
	c.e.labels.add(*l)
}

// oversized reports whether a prompt is longer than the prefill node can hold,
// though the window would let it pass.
func (e *Engine) oversized(tokens int) bool {
	s := e.stats.Load()
	return tokens >= s.Prefill.MaxReqInputLen && tokens < s.Window
}

// errGone is what flush returns when the client has stopped listening.
var errGone = errors.New("the client has left")
