package sim

// Ground truth: what the cluster's shadow record says of one finished answer,
// put as what an auditor should have found.
//
// The cluster reports every token that was copied from a slot of another
// tenant's request. Tokens copied one after the other from consecutive positions
// of one request are a run: a stretch of the donor's own words, standing whole
// in the answer. A run is cut where a role marker stands, because a marker is no
// text, and the edge word is left out where it has grown together with a word
// that the run doesn't hold.
//
// A run of a donor's prompt is LEGIBLE if 30 of its words in a row are evidence:
// if each of their runs of 11 words was brought by the donor's tenant and by
// nobody else (see origins). That leaves out, besides what the victim or several
// tenants sent, text that exactly one other tenant sent too, where nobody could
// say which of the two it leaked from; text that the engine itself had answered
// before anybody sent it, such as the assistant's turns in a history; and
// repetition. The label expects a leak from each tenant that a legible run came
// from.
//
// What else may be found, and need not be, the label allows: a leak from any
// tenant that a single token was read from, and from any tenant whose text
// stands in the answer by another way, such as a history that holds an earlier
// leak.

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"sync"

	"github.com/auditproxy/auditproxy/gpukv"
)

const (
	legibleWords  = 30
	defaultLabels = 1 << 16
)

// The kinds of a [Leak].
const (
	promptLeak   = "prompt_leak"
	responseLeak = "response_leak"
)

// Label is the ground truth of one exchange.
type Label struct {
	Exchange        string `json:"exchange"`          // the client's X-Request-Id, or the id in the response body
	Tenant          string `json:"tenant"`            // who got the answer
	Status          int    `json:"status"`            // HTTP status that the engine gave; 499 if the client left
	Expect          []Leak `json:"expect"`            // leaks that the answer holds legibly; empty means clean
	Allow           []Leak `json:"allow,omitempty"`   // leaks that may be reported and need not
	ForeignTokens   int    `json:"foreign_tokens"`    // read from other tenants' slots
	LongestRunWords int    `json:"longest_run_words"` // words of the longest run that is evidence
	Oversized       bool   `json:"oversized"`         // the prefill pool can't hold the prompt
	PromptTokens    int    `json:"prompt_tokens"`     // tokens of the prompt that was sent
	Aborted         bool   `json:"aborted,omitempty"` // the client left; what it got is unknown
}

// Leak names text of a donor that stands in an answer.
type Leak struct {
	Kind  string `json:"kind"`  // prompt_leak or response_leak
	Donor string `json:"donor"` // tenant
}

// WriteLabels writes labels as NDJSON.
func WriteLabels(w io.Writer, labels []Label) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range labels {
		if err := enc.Encode(&labels[i]); err != nil {
			return err
		}
	}
	return nil
}

// labelRing keeps the newest labels. It is safe for concurrent use.
type labelRing struct {
	mu      sync.Mutex
	labels  []Label
	limit   int
	next    int // where the next label goes once the ring is full
	dropped uint64
}

func (r *labelRing) add(l Label) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.labels) < r.limit {
		r.labels = append(r.labels, l)
		return
	}
	r.labels[r.next] = l
	r.next = (r.next + 1) % r.limit
	r.dropped++
}

// all returns the labels, oldest first.
func (r *labelRing) all() []Label {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.labels[r.next:], r.labels[:r.next])
}

// lost returns how many labels were dropped.
func (r *labelRing) lost() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// answer is one choice of a response as the cluster made it.
type answer struct {
	tokens []gpukv.Token
	reads  []gpukv.Read
}

// judge is the state of labelling one response.
type judge struct {
	e      *Engine
	victim uint32
	expect map[Leak]bool
	allow  map[Leak]bool
	label  *Label
}

// judge fills in what l expects and allows, from all answers of the response,
// and records the answers' words.
func (e *Engine) judge(l *Label, victim uint32, answers []answer) {
	j := &judge{e: e, victim: victim, expect: map[Leak]bool{}, allow: map[Leak]bool{}, label: l}
	for _, a := range answers {
		words := e.vocabulary.words(nil, a.tokens)
		for _, r := range runs(a) {
			j.run(a, words, r)
		}
		j.scan(words)
		e.origins.addAnswer(words)
	}
	for k := range j.expect {
		if l.Aborted {
			j.allow[k] = true
		} else {
			l.Expect = append(l.Expect, k)
			delete(j.allow, k)
		}
	}
	for k := range j.allow {
		l.Allow = append(l.Allow, k)
	}
	byDonor := func(a, b Leak) int { return cmp.Or(cmp.Compare(a.Donor, b.Donor), cmp.Compare(a.Kind, b.Kind)) }
	slices.SortFunc(l.Expect, byDonor)
	slices.SortFunc(l.Allow, byDonor)
}

// run is a stretch of an answer, copied from consecutive positions.
type run struct {
	from, to int // tokens of the answer
	tenant   uint32
	answer   bool
}

func runs(a answer) []run {
	var out []run
	var last gpukv.Read
	for i, r := range a.reads {
		if r.Step >= len(a.tokens) {
			break // the token that ended the answer
		}
		joins := i > 0 && r.Step == last.Step+1 && r.Donor == last.Donor &&
			r.Position == last.Position+1 && r.Answer == last.Answer && a.tokens[r.Step] >= firstPiece &&
			a.tokens[last.Step] >= firstPiece
		if joins {
			out[len(out)-1].to = r.Step + 1
		} else {
			out = append(out, run{from: r.Step, to: r.Step + 1, tenant: r.Tenant, answer: r.Answer})
		}
		last = r
	}
	return out
}

func (j *judge) run(a answer, words []uint64, r run) {
	j.label.ForeignTokens += r.to - r.from
	donor := j.e.tenantName(r.tenant)
	j.allow[Leak{promptLeak, donor}] = true
	if r.answer {
		j.allow[Leak{responseLeak, donor}] = true
	}
	from, to := j.e.trim(a.tokens, r)
	var w window
	begun := []int{0} // words that begin among the first k tokens that have one
	evidence := 0     // full windows in a row
	longest := 0
	for i := from; i < to; i++ {
		if words[i] == 0 {
			continue
		}
		n := begun[len(begun)-1]
		if i == from || !j.e.grown(a.tokens[i-1], a.tokens[i]) {
			n++
		}
		begun = append(begun, n)
		if !w.add(words[i]) {
			continue
		}
		o, known := j.e.origins.find(w.hash)
		if !known || r.answer || !o.sole(r.tenant) || !w.distinct() {
			evidence = 0
			continue
		}
		evidence++
		longest = max(longest, n-begun[len(begun)-evidence-runWords])
	}
	j.label.LongestRunWords = max(j.label.LongestRunWords, longest)
	if longest >= legibleWords {
		j.expect[Leak{promptLeak, donor}] = true
	}
}

// scan allows the tenants whose text stands in the answer, by whatever way it
// came there.
func (j *judge) scan(words []uint64) {
	var w window
	for _, h := range words {
		if h == 0 || !w.add(h) {
			continue
		}
		o, ok := j.e.origins.find(w.hash)
		if !ok || o.first == 0 || o.more == several || o.sent(j.victim) {
			continue
		}
		j.allow[Leak{promptLeak, j.e.tenantName(o.first)}] = true
		if o.more != 0 {
			j.allow[Leak{promptLeak, j.e.tenantName(o.more)}] = true
		}
	}
}

// trim returns the part of a run whose first and last word stand alone in the
// answer.
func (e *Engine) trim(tokens []gpukv.Token, r run) (from, to int) {
	from, to = r.from, r.to
	if from > 0 && e.grown(tokens[from-1], tokens[from]) {
		from++
	}
	if to < len(tokens) && to > from && e.grown(tokens[to-1], tokens[to]) {
		to--
	}
	return from, to
}

// grown reports whether the last word of a goes on in b.
func (e *Engine) grown(a, b gpukv.Token) bool {
	ga, gb := e.vocabulary.glue(a), e.vocabulary.glue(b)
	return ga&glueRight != 0 && gb&glueLeft != 0 && ga&glueNever == 0 && gb&glueNever == 0
}
