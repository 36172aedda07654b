package sim

// The workload is a day of traffic, from a seed: what each tenant asks, in which
// order, by which API. A plan of it names every request; the text of a request
// is written when its turn comes, from a seed of its own, so that a plan is small
// and a long document exists once.
//
// The mix, of ordinary requests: some two in five are questions of 3 to 15 words,
// a good part of them the same for everybody. The rest carries text: notes, mails
// and records that belong to the tenant, excerpts of public documents, code under
// an agent's scaffold, turns of conversations whose history holds the answers that
// really came. Some are long: up to three fifths of what the prefill pool holds,
// or 131,072 tokens. Tenants come in bursts; some requests are sent twice, some
// clients leave in the middle of an answer.
//
// Oversized requests belong to the tenants that have an archive: one document,
// longer than the pool and shorter than the window, which goes along with every
// question about it, as agents and chat clients do. They begin when the warm-up
// is over and are spread over the rest of the day. By then the decode pool must
// have wrapped, or its pages are still empty. It does within 40 requests when the
// sizes are divided by 64, and within 400 at full size, where long requests are
// longer.
//
// How long answers are, and how much of the traffic is shared, is chosen such
// that at a divisor of 64 each of the 155 answers to oversized prompts, of 830 to
// 960 tokens, holds some foreign words legibly. Of 280 measured runs, seeds 1 to
// 200 with 1, 4 and 8 clients, one had 154. Nothing sees to it: a page table may
// by chance hold the victim's own text, or what everybody sends.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// Workload says what traffic to make. Its zero value is the demo's at full size;
// equal workloads make equal traffic, except for the answers in a history.
type Workload struct {
	Seed uint64 // of everything drawn at random; 0 is a seed like any other
	// Tenants is how many tenants there are. 0 means 24. Beyond 24, kinds of
	// tenants recur under other names and with other words.
	Tenants int
	// Ordinary is how many requests fit the prefill pool. 0 means 3000, below 0
	// means none.
	Ordinary int
	// Oversized is how many requests don't. 0 means 155, below 0 means none.
	Oversized int
	// Divisor divides Window and Pool. 0 means 1. Beyond 64 there is less and less
	// room for an answer between the two.
	Divisor int
	// Window and Pool are the engine's context window and prefill pool in tokens,
	// before the division. 0 means 1,048,576 and 681,280.
	Window, Pool int
	// WarmUp is the share of the ordinary requests that are sent before the first
	// oversized one. 0 means 0.4.
	WarmUp float64
	// Model is the model that requests name. "" means @cf/zai-org/glm-5.3.
	Model string
	// TenantHeader is a header that tells a trusting proxy the tenant's name.
	// "" means none is sent.
	TenantHeader string
	// Timeout is the most that one request may take. 0 means 2 minutes.
	Timeout time.Duration
}

func (w Workload) complete() (Workload, error) {
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{
		{"tenants", &w.Tenants, 24},
		{"divisor", &w.Divisor, 1},
		{"window", &w.Window, fullWindow},
		{"pool", &w.Pool, fullPrefillPool},
	} {
		if *f.value < 0 {
			return w, fmt.Errorf("workload: %s: %d is negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	count := func(n *int, def int) {
		if *n == 0 {
			*n = def
		}
		*n = max(*n, 0)
	}
	count(&w.Ordinary, 3000)
	count(&w.Oversized, 155)
	w.Window, w.Pool = w.Window/w.Divisor, w.Pool/w.Divisor
	if w.Pool < 256 || w.Oversized > 0 && w.Window-w.Pool < 256 {
		return w, fmt.Errorf("workload: a window of %d and a pool of %d tokens leave no room for prompts", w.Window, w.Pool)
	}
	if w.WarmUp < 0 || w.WarmUp > 1 || math.IsNaN(w.WarmUp) {
		return w, fmt.Errorf("workload: warm-up: %v is not between 0 and 1", w.WarmUp)
	}
	if w.WarmUp == 0 {
		w.WarmUp = 0.4
	}
	if w.Model == "" {
		w.Model = defaultModel
	}
	if w.Timeout < 0 {
		return w, fmt.Errorf("workload: timeout: %v is negative", w.Timeout)
	}
	if w.Timeout == 0 {
		w.Timeout = 2 * time.Minute
	}
	return w, nil
}

// tenant is one tenant of a plan.
type tenant struct {
	persona
	field  *industry
	lex    *lexicon
	system string        // its own system prompt
	doc    func() string // its long document
	tokens int           // of the document
	weight float64
}

// kind is what a request is about.
type kind uint8

const (
	kindShort   kind = iota // a question of 3 to 15 words
	kindNote                // private text and something to do with it
	kindMail                // a mail with a footer that others use too
	kindLookup              // public documents and a question
	kindCode                // code under the agent's scaffold
	kindTurn                // a turn of a conversation
	kindLong                // a long piece of the archive
	kindArchive             // all of the archive: oversized
)

// api is how a request is sent.
type api uint8

const (
	nativePrompt   api = iota // Workers AI, "prompt"
	nativeMessages            // Workers AI, "messages"
	accountChat               // Workers AI's OpenAI route
	openAIChat
	openAICompletion
)

// item is one request of a plan.
type item struct {
	id      string
	tenant  *tenant
	kind    kind
	api     api
	seed    uint64 // of its text
	stream  bool
	max     int           // tokens of the answer
	leave   int           // events after which the client leaves; 0 for never
	talk    *conversation // of kindTurn and kindArchive; nil for none
	turn    int           // of talk
	retried bool          // it was sent before
}

// conversation keeps the answers that the turns of a conversation really got.
type conversation struct {
	seed  uint64
	turns []turn
	last  int // index of the plan's item that has the latest turn
}

type turn struct {
	done   chan struct{} // closed when the answer is there, or none will come
	answer string
}

// plan is a workload, request by request.
type plan struct {
	w       Workload
	tenants []*tenant
	items   []item
}

const (
	turnGap    = 40 // items between two turns of a conversation
	maxTurns   = 4
	archiveMax = 0.75 // of the way from the pool to the window, for an archive
	archiveMin = 0.05
	longShare  = 0.6     // of the pool, for a long request at most
	longMax    = 131_072 // tokens of a long request, however large the pool
)

func newPlan(w Workload) (*plan, error) {
	w, err := w.complete()
	if err != nil {
		return nil, err
	}
	p := &plan{w: w}
	for i := range w.Tenants {
		p.tenants = append(p.tenants, p.newTenant(i))
	}
	ordinary := p.ordinary()
	p.items = p.merge(ordinary, p.oversized())
	for i := range p.items {
		p.items[i].id = fmt.Sprintf("r-%06d", i+1)
	}
	return p, nil
}

// The streams of random numbers of a plan.
const (
	streamTenant = iota
	streamArchive
	streamOrder
	streamOversized
	streamText
)

func (p *plan) random(stream, n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(p.w.Seed, mix(stream<<48+n)))
}

func (p *plan) newTenant(i int) *tenant {
	t := &tenant{persona: personas[i%len(personas)]}
	if round := i / len(personas); round > 0 {
		t.name = fmt.Sprintf("%s-%d", t.name, round+1)
	}
	t.field = industries[t.industry]
	rnd := p.random(streamTenant, uint64(i))
	t.lex = newLexicon(rnd, t.lang)
	t.weight = 0.5 + rnd.ExpFloat64()/2
	if t.archive {
		t.weight /= 2
	}
	b := t.prose(rnd)
	t.system = b.systemPrompt()
	t.tokens = p.longest()
	if t.archive {
		gap := float64(p.w.Window - p.w.Pool)
		t.tokens = p.w.Pool + int(gap*(archiveMin+(archiveMax-archiveMin)*rnd.Float64()))
	}
	t.doc = sync.OnceValue(func() string {
		return t.prose(p.random(streamArchive, uint64(i))).archive(t.tokens, t.repo)
	})
	return t
}

// longest returns how many tokens a long request has at most.
func (p *plan) longest() int { return min(int(longShare*float64(p.w.Pool)), longMax) }

// prose returns a writer of the tenant's private text.
func (t *tenant) prose(rnd *rand.Rand) *prose {
	return &prose{rnd: rnd, lex: t.lex, field: t.field, lang: t.lang}
}

// ordinary plans the requests that fit.
func (p *plan) ordinary() []item {
	rnd := p.random(streamOrder, 0)
	var total float64
	for _, t := range p.tenants {
		total += t.weight
	}
	talks := make(map[*tenant][]*conversation)
	items := make([]item, 0, p.w.Ordinary)
	for len(items) < p.w.Ordinary {
		t := p.tenants[len(p.tenants)-1]
		x := rnd.Float64() * total
		for _, u := range p.tenants {
			if x -= u.weight; x < 0 {
				t = u
				break
			}
		}
		// A burst: one request, or a few by the same tenant. Those that have an
		// archive ask about that, and seldom about anything else.
		burst := 1 + int(rnd.ExpFloat64()*0.9)
		if t.archive {
			burst = 1
		}
		for ; burst > 0 && len(items) < p.w.Ordinary; burst-- {
			it := item{tenant: t, kind: t.kind(rnd), seed: rnd.Uint64(), stream: rnd.Float64() < 0.55}
			it.api = t.api(rnd)
			it.max = maxTokens(it.kind, rnd)
			switch {
			case it.kind == kindTurn:
				it.api = t.chatAPI(rnd)
				p.converse(&it, talks, len(items), rnd)
			case rnd.Float64() < 0.015 && len(items) > 0 && items[len(items)-1].kind != kindTurn:
				it = items[len(items)-1]
				it.retried = true
			}
			if it.talk == nil && it.leave == 0 && rnd.Float64() < 0.03 {
				it.stream, it.leave = true, 1+rnd.IntN(12)
			}
			items = append(items, it)
		}
	}
	return items
}

// converse makes an item a turn of a conversation: of an old one that has rested
// long enough, or of a new one.
func (p *plan) converse(it *item, talks map[*tenant][]*conversation, at int, rnd *rand.Rand) {
	for _, c := range talks[it.tenant] {
		if len(c.turns) < maxTurns && at-c.last >= turnGap {
			c.add(it, at)
			return
		}
	}
	c := &conversation{seed: rnd.Uint64()}
	talks[it.tenant] = append(talks[it.tenant], c)
	c.add(it, at)
}

func (c *conversation) add(it *item, at int) {
	it.talk, it.turn = c, len(c.turns)
	c.turns = append(c.turns, turn{done: make(chan struct{})})
	c.last = at
}

// kind draws what a tenant's request is about.
func (t *tenant) kind(rnd *rand.Rand) kind {
	x := rnd.Float64()
	shares := []struct {
		kind  kind
		share float64
	}{{kindShort, 0.36}, {kindLookup, 0.06}, {kindTurn, 0.11}, {kindMail, 0.09}, {kindLong, 0.10}}
	if t.agent {
		shares[0].share, shares[3] = 0.26, struct {
			kind  kind
			share float64
		}{kindCode, 0.36}
	}
	for _, s := range shares {
		if x -= s.share; x < 0 {
			if s.kind == kindLong && t.archive {
				return kindNote // their long document doesn't fit
			}
			return s.kind
		}
	}
	return kindNote
}

func (t *tenant) api(rnd *rand.Rand) api {
	x := rnd.Float64()
	switch {
	case !t.native && x < 0.2:
		return openAICompletion
	case !t.native:
		return openAIChat
	case x < 0.3:
		return nativePrompt
	case x < 0.7:
		return nativeMessages
	}
	return accountChat
}

// chatAPI draws an API that takes a history.
func (t *tenant) chatAPI(rnd *rand.Rand) api {
	switch {
	case !t.native:
		return openAIChat
	case rnd.IntN(2) == 0:
		return nativeMessages
	}
	return accountChat
}

// maxTokens draws how long an answer may be.
func maxTokens(k kind, rnd *rand.Rand) int {
	switch k {
	case kindShort:
		return 16 + rnd.IntN(49)
	case kindArchive:
		return 832 + 16*rnd.IntN(9)
	}
	return 32 + 8*rnd.IntN(11)
}

// oversized plans the requests that don't fit, in order.
func (p *plan) oversized() []item {
	var owners []*tenant
	for _, t := range p.tenants {
		if t.archive {
			owners = append(owners, t)
		}
	}
	if len(owners) == 0 {
		return nil
	}
	rnd := p.random(streamOversized, 0)
	items := make([]item, 0, p.w.Oversized)
	talks := make(map[*tenant]*conversation)
	for i := range p.w.Oversized {
		t := owners[i%len(owners)]
		if i >= len(owners) {
			t = pick(rnd, owners)
		}
		it := item{tenant: t, kind: kindArchive, api: t.api(rnd), seed: rnd.Uint64(), stream: rnd.IntN(2) == 0}
		it.max = maxTokens(kindArchive, rnd)
		if rnd.IntN(3) == 0 {
			it.api = t.chatAPI(rnd)
			c := talks[t]
			if c == nil || len(c.turns) >= maxTurns-1 || i-c.last < turnGap/8 {
				c = &conversation{seed: rnd.Uint64()}
				talks[t] = c
			}
			c.add(&it, i)
		}
		items = append(items, it)
	}
	return items
}

// merge spreads the oversized requests over what comes after the warm-up.
func (p *plan) merge(ordinary, oversized []item) []item {
	out := make([]item, 0, len(ordinary)+len(oversized))
	warm := int(p.w.WarmUp * float64(len(ordinary)))
	at := 0
	for i, it := range oversized {
		upTo := warm + (len(ordinary)-warm)*i/len(oversized)
		out = append(append(out, ordinary[at:upTo]...), it)
		at = upTo
	}
	return append(out, ordinary[at:]...)
}
