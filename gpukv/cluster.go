package gpukv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Event is what a step did for one request. Every request that was submitted
// ends with exactly one event that is not Generated.
type Event struct {
	Request uint64
	Kind    EventKind
	Token   Token  // of Generated
	Finish  Finish // of Finished and Refused
}

// EventKind says what happened.
type EventKind uint8

// The kinds of events.
const (
	Generated EventKind = iota + 1 // one more token of the answer
	Finished                       // the answer is complete, or its client went away
	Refused                        // the request was answered with an error
)

// ErrLive is returned for a request whose id is taken.
var ErrLive = errors.New("id is taken")

// exchange is a request with its halves on both nodes and what joins them.
type exchange struct {
	id       uint64
	tenant   uint32
	who      uint32 // in the ledger
	p, d     req    // on the prefill and on the decode node
	room     *room
	context  Context
	answered bool
}

// core is what both nodes share, and the router's part: a request has one
// answer, whichever node gives it.
type core struct {
	faulty     map[Fault]bool
	fixed      map[Fix]bool
	window     int
	chunk      int
	maxRunning int
	old        bool
	model      Model
	link       *link
	truth      truth
	live       map[uint64]*exchange
	events     []Event // not yet handed out
	served     uint64
	refusals   uint64
	cancelled  uint64
}

// Cluster is a prefill and a decode node, the link between them, and the router
// in front. It is not safe for concurrent use.
type Cluster struct {
	core
	seed    uint64
	prefill prefill
	decode  decode
}

// New returns a cluster. It fails if the configuration makes no sense: a
// negative size, a pool that can't hold a page and a prompt, a fault or a fix
// that doesn't exist.
func New(cfg Config, m Model) (*Cluster, error) {
	if m == nil {
		return nil, errors.New("model: is nil")
	}
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	l := newLedger()
	c := &Cluster{seed: cfg.Seed, core: core{
		faulty:     set(cfg.Faults),
		fixed:      set(cfg.Fixes),
		window:     cfg.Window,
		chunk:      cfg.ChunkTokens,
		maxRunning: cfg.MaxRunning,
		old:        cfg.OldPrefill,
		model:      m,
		truth:      truth{ledger: l, reads: map[uint64][]Read{}},
		live:       map[uint64]*exchange{},
	}}
	from := newPool(cfg.PageSize, cfg.PrefillTokens/cfg.PageSize, c.fixed[ZeroOnAlloc], l)
	to := newPool(cfg.PageSize, cfg.DecodeTokens/cfg.PageSize, c.fixed[ZeroOnAlloc], l)
	c.link = &link{
		from: from, to: to, ranks: cfg.Ranks, keep: c.fixed[DeferredRelease],
		rnd: rand.New(rand.NewPCG(^cfg.Seed, 0)),
	}
	c.prefill = prefill{core: &c.core, pool: from, limit: maxReqInputLen(cfg.Window, from.capacity())}
	c.decode = decode{core: &c.core, pool: to, limit: maxReqInputLen(cfg.Window, to.capacity())}
	c.prefill.slotBytes, c.decode.slotBytes = uint64(cfg.SlotBytes), uint64(cfg.SlotBytes)
	return c, nil
}

func set[S ~string](names []S) map[S]bool {
	m := make(map[S]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// Submit hands a request to the engine. Its first event comes from a later
// [Cluster.Step], also that of a refusal. It fails if the request can't be one:
// an empty prompt, a negative MaxNew, or an id that is taken ([ErrLive]).
func (c *Cluster) Submit(r Request) error {
	if len(r.Prompt) == 0 {
		return fmt.Errorf("request %d: prompt is empty", r.ID)
	}
	if r.MaxNew < 0 {
		return fmt.Errorf("request %d: %d new tokens is negative", r.ID, r.MaxNew)
	}
	if c.live[r.ID] != nil || c.truth.reads[r.ID] != nil {
		return fmt.Errorf("request %d: %w", r.ID, ErrLive)
	}
	r.MaxNew = or(r.MaxNew, 128)
	x := &exchange{id: r.ID, tenant: r.Tenant, room: c.link.room(), p: newReq(&r), d: newReq(&r)}
	x.who = c.truth.ledger.open(r.ID, r.Tenant, len(r.Prompt))
	x.context = Context{copied: -1, rnd: rand.New(rand.NewPCG(c.seed, r.ID))}
	c.live[r.ID] = x
	if n := len(r.Prompt); n >= c.window {
		c.answer(x, Refused, overWindow(n, c.window), 0, 0)
		x.p.gone, x.d.gone = true, true
		c.leave(x)
		return nil
	}
	c.prefill.accept(x)
	c.decode.accept(x)
	return nil
}

// Cancel says that the client of a request has gone. The next step ends it with
// a Finished event with the reason abort, and no token of it is generated or
// written any more. A request that has ended, or never was, is left alone.
func (c *Cluster) Cancel(id uint64) {
	x := c.live[id]
	if x == nil || x.answered {
		return
	}
	c.cancelled++
	c.answer(x, Finished, finishGone, len(x.d.input), len(x.d.output))
	c.link.fail(x.room)
	for _, r := range []*req{&x.p, &x.d} {
		r.toFinish = finishGone
		r.updateFinishState()
	}
}

// Step runs one scheduler iteration of both nodes and one turn of the link, and
// appends what happened to dst. A running request yields one token at most.
func (c *Cluster) Step(dst []Event) []Event {
	c.decode.step()
	c.prefill.step()
	c.link.step()
	dst = append(dst, c.events...)
	clear(c.events)
	c.events = c.events[:0]
	return dst
}

// Idle reports whether every request has ended, its pages are back and its
// events have been handed out.
func (c *Cluster) Idle() bool { return len(c.live) == 0 && len(c.events) == 0 }

// Reads returns the ground truth of a request: each token of its answer that was
// copied from a slot that another tenant's request wrote, in the order of the
// answer. It grows while the request runs, is kept until [Cluster.Forget], and
// must not be changed.
func (c *Cluster) Reads(id uint64) []Read { return slices.Clip(c.truth.reads[id]) }

// Forget drops the ground truth of a request.
func (c *Cluster) Forget(id uint64) { delete(c.truth.reads, id) }

// next chooses a token of the answer and notes what it was copied from.
func (c *core) next(x *exchange, step int) Token {
	tok, from := c.model.Next(&x.context)
	if from < 0 || from >= x.context.n {
		from = -1
	}
	x.context.note(from)
	if from >= 0 && (x.d.stop == 0 || tok != x.d.stop) {
		c.truth.observe(x.id, x.tenant, step, x.context.pool, x.context.slot(from))
	}
	return tok
}

// recorded returns the abort that a scheduler has marked the request with, or f
// if none has.
func (x *exchange) recorded(f *finish) *finish {
	for _, r := range []*req{&x.p, &x.d} {
		if r.toFinish != nil {
			return r.toFinish
		}
	}
	return f
}

// answer ends a request for its client, once.
func (c *core) answer(x *exchange, kind EventKind, f *finish, prompt, generated int) {
	if x.answered {
		return
	}
	x.answered = true
	if kind == Refused {
		c.refusals++
	} else if f.status == 200 {
		c.served++
	}
	c.events = append(c.events, Event{Request: x.id, Kind: kind, Finish: Finish{
		Reason:           f.reason,
		Status:           f.status,
		Message:          f.message,
		ErrType:          f.errType,
		PromptTokens:     prompt,
		CompletionTokens: generated,
	}})
}

// leave forgets a request when both nodes have let go of it.
func (c *core) leave(x *exchange) {
	if x.p.gone && x.d.gone {
		delete(c.live, x.id)
		c.truth.ledger.drop(x.who, 1)
	}
}

// ended says whether the prefill node has nothing more to do for a request.
func ended(x *exchange) bool { return x.p.finished() || x.room.failed() }

// sweep visits a queue in order and returns those that stay in it. Whoever
// doesn't stay has been taken care of by the visit.
func sweep(q []*exchange, stays func(*exchange) bool) []*exchange {
	rest := q[:0]
	for _, x := range q {
		if stays(x) {
			rest = append(rest, x)
		}
	}
	clear(q[len(rest):])
	return rest
}

// pop removes the first element of a queue.
func pop[T any](q []T) []T {
	var zero T
	q[0] = zero
	return q[1:]
}
