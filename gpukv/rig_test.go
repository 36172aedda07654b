package gpukv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// modelFunc is a model that a test writes in place.
type modelFunc func(*Context) (Token, int)

func (f modelFunc) Next(c *Context) (Token, int) { return f(c) }

// noise is a background that draws from words 1 to its value.
type noise int

func (n noise) Next(_ []Token, rnd *rand.Rand) Token { return Token(1 + rnd.IntN(int(n))) }

// small is the induction model at the scale of the random runs.
var small = Induction{Background: noise(12), GapMin: 1, GapMax: 4, RunMin: 3, RunMax: 12}

// at copies the same position for ever.
func at(pos int) Model {
	return modelFunc(func(c *Context) (Token, int) {
		if pos >= c.Len() {
			return 1, -1
		}
		return c.At(pos), pos
	})
}

// rig drives a cluster, keeps what was said, and checks what must always hold.
type rig struct {
	*Cluster
	t       testing.TB
	prompts map[uint64][]Token
	tenants map[uint64]uint32
	answers map[uint64][]Token
	ends    map[uint64]Event
	events  []Event
	steps   int
}

func newRig(t testing.TB, cfg Config, m Model) *rig {
	t.Helper()
	c, err := New(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{
		Cluster: c, t: t,
		prompts: map[uint64][]Token{}, tenants: map[uint64]uint32{},
		answers: map[uint64][]Token{}, ends: map[uint64]Event{},
	}
}

func (r *rig) submit(q Request) {
	r.t.Helper()
	if err := r.Submit(q); err != nil {
		r.t.Fatal(err)
	}
	r.prompts[q.ID], r.tenants[q.ID] = q.Prompt, q.Tenant
}

func (r *rig) step() []Event {
	r.t.Helper()
	r.steps++
	n := len(r.events)
	r.events = r.Step(r.events)
	for i, e := range r.events[n:] {
		if _, over := r.ends[e.Request]; over {
			r.t.Fatalf("step %d: request %d: event %d after its end", r.steps, e.Request, e.Kind)
		}
		if e.Kind == Generated {
			for _, other := range r.events[n : n+i] {
				if other.Request == e.Request {
					r.t.Fatalf("step %d: request %d: two tokens in one step", r.steps, e.Request)
				}
			}
			r.answers[e.Request] = append(r.answers[e.Request], e.Token)
		} else {
			r.ends[e.Request] = e
		}
	}
	return r.events[n:]
}

// drain steps until nothing is left to do, and then every request must have
// ended and every page must be free.
func (r *rig) drain() {
	r.t.Helper()
	for i := 0; !r.Idle(); i++ {
		if i > 200_000 {
			r.t.Fatalf("not idle after %d steps: %+v", i, r.Stats())
		}
		r.step()
	}
	for id := range r.prompts {
		if _, ok := r.ends[id]; !ok {
			r.t.Errorf("request %d was lost", id)
		}
	}
	for _, p := range []*pool{r.prefill.pool, r.decode.pool} {
		if p.used() != 0 || p.promised != 0 {
			r.t.Errorf("idle with %d pages used and %d promised", p.used(), p.promised)
		}
	}
	s := r.Stats()
	if got := int(s.Finished + s.Refused + s.Cancelled); got != len(r.prompts) {
		r.t.Errorf("%d requests ended by the gauges, %d were submitted", got, len(r.prompts))
	}
	r.audit()
}

// run submits one request and steps until it has ended.
func (r *rig) run(q Request) Finish {
	r.t.Helper()
	r.submit(q)
	r.drain()
	return r.ends[q.ID].Finish
}

// text returns the token at a position of a request's sequence.
func (r *rig) text(id uint64, pos int) (Token, bool) {
	if p := r.prompts[id]; pos < len(p) {
		return p[pos], true
	} else if a := r.answers[id]; pos-len(p) < len(a) {
		return a[pos-len(p)], true
	}
	return 0, false
}

// audit checks that no page has two owners and none is lost, that every shadow
// record agrees with its slot, and that the ledger counts what the pools hold.
func (r *rig) audit() {
	r.t.Helper()
	owned := map[*pool][][]uint32{}
	owed := map[*pool]int{}
	holds := make([]int, len(r.truth.ledger.writers))
	for _, x := range r.live {
		for p, half := range map[*pool]*req{r.prefill.pool: &x.p, r.decode.pool: &x.d} {
			owned[p] = append(owned[p], half.pages)
			owed[p] += half.owed
		}
		holds[x.who]++
	}
	for _, q := range [][]*exchange{r.decode.waiting, r.decode.batch} {
		for _, x := range q {
			r.attends(x)
		}
	}
	for name, p := range map[string]*pool{"prefill": r.prefill.pool, "decode": r.decode.pool} {
		owners := make([]int, p.capacity()/p.size)
		for _, pages := range append(owned[p], p.free, p.released) {
			for _, page := range pages {
				owners[page]++
			}
		}
		for page, n := range owners {
			if n != 1 {
				r.t.Fatalf("step %d: %s page %d has %d owners", r.steps, name, page, n)
			}
		}
		if !slices.IsSorted(p.free) {
			r.t.Fatalf("step %d: %s free list is not ascending", r.steps, name)
		}
		if owed[p] != p.promised || p.promised > len(p.free)+len(p.released) {
			r.t.Fatalf("step %d: %s: %d pages promised, %d owed, %d left", r.steps, name,
				p.promised, owed[p], len(p.free)+len(p.released))
		}
		for slot, who := range p.shadow.writer {
			tok, pos := p.tokens[slot], int(p.positions[slot])
			if who == nobody {
				if tok != 0 || pos != 0 {
					r.t.Fatalf("step %d: %s slot %d holds token %d and nobody wrote it", r.steps, name, slot, tok)
				}
				continue
			}
			holds[who]++
			w := r.truth.ledger.writers[who]
			want, ok := r.text(w.id, pos)
			if len(r.prompts[w.id]) >= min(r.prefill.limit, r.decode.limit) && pos == 0 && tok == placeholder {
				want = placeholder
			}
			if !ok || tok != want || int(p.shadow.position[slot]) != pos ||
				w.tenant != r.tenants[w.id] || w.prompt != len(r.prompts[w.id]) {
				r.t.Fatalf("step %d: %s slot %d: token %d at %d, shadow says %d of request %d, whose text has %d",
					r.steps, name, slot, tok, pos, p.shadow.position[slot], w.id, want)
			}
		}
	}
	for who, w := range r.truth.ledger.writers {
		if w.holds != holds[who] {
			r.t.Fatalf("step %d: writer %d holds %d slots, the ledger says %d", r.steps, who, holds[who], w.holds)
		}
	}
}

// attends checks that the page table of a request that fits holds its own
// sequence, and nothing else, at every position up to its length.
func (r *rig) attends(x *exchange) {
	r.t.Helper()
	if x.room.receiver.poll() < pollSuccess && !x.answered {
		r.t.Fatalf("step %d: request %d was committed at %v", r.steps, x.id, x.room.receiver.ranks)
	}
	if x.p.finished() && !x.answered && x.room.sender.poll() < pollSuccess {
		r.t.Fatalf("step %d: request %d left prefill at %v", r.steps, x.id, x.room.sender.ranks)
	}
	if x.p.aborted() || x.d.aborted() {
		return // the incident, or a cancel
	}
	var c Context
	c.bind(r.decode.pool, x.d.pages, len(x.d.input)+max(0, len(x.d.output)-1), len(x.d.input))
	for i := range c.Len() {
		want, _ := r.text(x.id, i)
		if slot := c.slot(i); c.At(i) != want || r.decode.pool.shadow.writer[slot] != x.who {
			r.t.Fatalf("step %d: request %d of %d tokens attends to token %d of writer %d at position %d, want %d of %d",
				r.steps, x.id, len(x.d.input), c.At(i), r.decode.pool.shadow.writer[slot], i, want, x.who)
		}
	}
}

// foreign returns how many foreign reads there were, after checking each
// against what was said.
func (r *rig) foreign() int {
	r.t.Helper()
	n := 0
	for id := range r.prompts {
		reads := r.Reads(id)
		n += len(reads)
		for _, rd := range reads {
			if rd.Tenant == r.tenants[id] || rd.Tenant != r.tenants[rd.Donor] {
				r.t.Fatalf("request %d of tenant %d: %+v", id, r.tenants[id], rd)
			}
			if rd.Answer != (rd.Position >= len(r.prompts[rd.Donor])) {
				r.t.Fatalf("request %d: %+v: donor's prompt has %d tokens", id, rd, len(r.prompts[rd.Donor]))
			}
			want, ok := r.text(rd.Donor, rd.Position)
			if rd.Step >= len(r.answers[id]) {
				continue // chosen by the prefill node, never yielded
			}
			if got := r.answers[id][rd.Step]; !ok || got != want {
				r.t.Fatalf("request %d: %+v: said %d, donor has %d", id, rd, got, want)
			}
			if len(r.prompts[id]) < min(r.prefill.limit, r.decode.limit) {
				r.t.Fatalf("request %d fits in the pool and read foreign slots: %+v", id, rd)
			}
		}
	}
	return n
}

// words returns n tokens of a request that no other request has: its id is in
// each, with the position.
func words(id uint64, n int) []Token {
	p := make([]Token, n)
	for i := range p {
		p[i] = Token(id<<20 | uint64(i+1))
	}
	return p
}

// chaos is one random run: sizes, load, cancels and pressure are drawn from the
// seed, and whatever else the caller sets in cfg stays.
func chaos(t testing.TB, seed uint64, cfg Config) *rig {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	cfg.Seed = seed
	cfg.PageSize = 1 + rnd.IntN(12)
	cfg.PrefillTokens = cfg.PageSize * (2 + rnd.IntN(12))
	cfg.PrefillTokens = max(cfg.PrefillTokens, 16+cfg.PageSize)
	cfg.DecodeTokens = cfg.PrefillTokens/2 + rnd.IntN(4*cfg.PrefillTokens)
	cfg.DecodeTokens = max(cfg.DecodeTokens, 16+cfg.PageSize)
	cfg.Window = 20 + rnd.IntN(cfg.DecodeTokens)
	cfg.MaxRunning = 1 + rnd.IntN(6)
	cfg.ChunkTokens = 1 + rnd.IntN(cfg.PrefillTokens)
	cfg.Ranks = 1 + rnd.IntN(4)
	r := newRig(t, cfg, small)
	var ids []uint64
	for id := uint64(1); id <= 30; {
		for range rnd.IntN(3) {
			q := Request{ID: id, Tenant: uint32(rnd.IntN(5)), MaxNew: rnd.IntN(24), Stop: Token(rnd.IntN(40))}
			n := 1 + rnd.IntN(20)
			if rnd.IntN(3) == 0 {
				n = 1 + rnd.IntN(cfg.Window+3)
			}
			q.Prompt = make([]Token, n)
			for i := range q.Prompt {
				q.Prompt[i] = Token(rnd.IntN(60))
			}
			r.submit(q)
			ids = append(ids, id)
			id++
		}
		if len(ids) > 0 && rnd.IntN(8) == 0 {
			r.Cancel(ids[rnd.IntN(len(ids))])
		}
		r.step()
		if rnd.IntN(16) == 0 {
			r.audit()
		}
	}
	r.drain()
	return r
}

func describe(cfg Config) string {
	return fmt.Sprintf("faults %v, fixes %v, old %v", cfg.Faults, cfg.Fixes, cfg.OldPrefill)
}
