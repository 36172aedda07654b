package sim

// The engine runs one cluster on one goroutine. Everything that touches the
// cluster goes through that goroutine: requests and cancellations arrive by a
// channel, and between two of the cluster's steps it takes in whatever has
// arrived. It never waits for a client: the tokens of an answer collect in a
// stream of their own, which holds at most as many as the request may generate,
// and the handler takes them out at the client's pace.
//
// Without rates the cluster steps as fast as it can. A decode rate makes a step
// last as long as one token of every running request takes; a prefill rate makes
// a chunk of a prompt last as long as its tokens take. With both, the chunk is
// what the prefill node computes in one decode step, in whole pages, so that the
// nodes run side by side; if that is less than a page, decoding slows down while
// a prompt is read. A request that the fault turns into a prompt of one token so
// gets its first token far too early, as it did in the incident.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/auditproxy/auditproxy/gpukv"
)

// Options configure an [Engine]. The zero value is the incident's cluster
// without the fault, at full size.
type Options struct {
	// Cluster describes the cluster at full size. Its zero value is the
	// incident's hardware with a correct engine, and seed 0.
	Cluster gpukv.Config
	// Divisor divides the window and both pools, and nothing else: pages keep
	// their size. 0 means 1.
	Divisor int
	// Model is the name that the engine serves. "" means @cf/zai-org/glm-5.3.
	Model string
	// MaxNew is how many tokens an answer has at most when the request doesn't
	// say. 0 means 256.
	MaxNew int
	// MaxNewLimit is the most that a request may say; more is cut to it. 0
	// means 4096.
	MaxNewLimit int
	// PrefillRate is how many prompt tokens are computed in a second. 0 means
	// without delay.
	PrefillRate float64
	// DecodeRate is how many tokens a running request gets in a second. 0 means
	// without delay.
	DecodeRate float64
	// MaxPending is how many requests the engine holds at once; more are turned
	// away with 503. 0 means 1024.
	MaxPending int
	// MaxTenants is how many tenants the engine tells apart; requests of more
	// are turned away with 503. 0 means 65,536.
	MaxTenants int
	// MaxBody is the most bytes of a request body; more are turned away with
	// 413. 0 means 64 MiB.
	MaxBody int64
	// MaxPieces is how many pieces of text the vocabulary numbers, at about 120
	// bytes each, and at least the background's own; later ones are spelt in
	// bytes. 0 means 4,194,304.
	MaxPieces int
	// MaxOrigins is how many runs of 11 words the ground truth remembers in
	// each of two generations, at about 30 bytes each. 0 means 16,777,216.
	MaxOrigins int
	// MaxLabels is how many labels are kept, the newest. 0 means 65,536.
	MaxLabels int
}

const defaultModel = "@cf/zai-org/glm-5.3"

func (o Options) complete() (Options, error) {
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{
		{"divisor", &o.Divisor, 1},
		{"max new", &o.MaxNew, 256},
		{"max new limit", &o.MaxNewLimit, 4096},
		{"max pending", &o.MaxPending, 1024},
		{"max tenants", &o.MaxTenants, 1 << 16},
		{"max pieces", &o.MaxPieces, defaultVocabMax},
		{"max origins", &o.MaxOrigins, defaultOrigins},
		{"max labels", &o.MaxLabels, defaultLabels},
	} {
		if *f.value < 0 {
			return o, fmt.Errorf("%s: %d is negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	for name, rate := range map[string]float64{"prefill rate": o.PrefillRate, "decode rate": o.DecodeRate} {
		if rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
			return o, fmt.Errorf("%s: %v is no rate", name, rate)
		}
	}
	if o.MaxBody < 0 {
		return o, fmt.Errorf("max body: %d is negative", o.MaxBody)
	}
	if o.MaxBody == 0 {
		o.MaxBody = 64 << 20
	}
	if o.Model == "" {
		o.Model = defaultModel
	}
	c := &o.Cluster
	c.Window = scaled(c.Window, fullWindow, o.Divisor)
	c.PrefillTokens = scaled(c.PrefillTokens, fullPrefillPool, o.Divisor)
	c.DecodeTokens = scaled(c.DecodeTokens, fullDecodePool, o.Divisor)
	if c.ChunkTokens == 0 && o.PrefillRate > 0 && o.DecodeRate > 0 {
		page := c.PageSize
		if page <= 0 {
			page = defaultPage
		}
		c.ChunkTokens = max(1, int(math.Ceil(o.PrefillRate/o.DecodeRate/float64(page)))) * page
	}
	return o, nil
}

// The incident's sizes, in tokens, for options that name none.
const (
	fullWindow      = 1 << 20
	fullPrefillPool = 681_280
	fullDecodePool  = 1 << 21
	fullChunk       = 8192
	defaultPage     = 64
)

// scaled returns a token count divided, at least 1.
func scaled(tokens, def, divisor int) int {
	if tokens == 0 {
		tokens = def
	}
	return max(1, tokens/divisor)
}

// Engine is a running simulated engine. It is safe for concurrent use.
type Engine struct {
	o          Options
	vocabulary *Vocabulary
	origins    *origins
	labels     labelRing
	gauges     gauges

	ops      chan func(*loop)
	quit     chan struct{}
	done     chan struct{}
	closing  sync.Once
	pending  atomic.Int64
	lastID   atomic.Uint64 // of requests to the cluster
	lastCall atomic.Uint64 // of HTTP requests
	stats    atomic.Pointer[gpukv.Stats]

	mu      sync.RWMutex
	numbers map[string]uint32 // of tenants, from 1 on
	names   []string          // of tenants, by number less 1
}

// New starts an engine. It fails if the options make no sense.
func New(o Options) (*Engine, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	v := NewVocabulary(0)
	b, err := newBackground(v, backgroundText)
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	v.limit = max(o.MaxPieces, v.Len())
	cluster, err := gpukv.New(o.Cluster, newWriter(b))
	if err != nil {
		return nil, fmt.Errorf("sim: cluster: %w", err)
	}
	e := &Engine{
		o:          o,
		vocabulary: v,
		origins:    newOrigins(o.MaxOrigins),
		labels:     labelRing{limit: o.MaxLabels},
		gauges:     newGauges(),
		ops:        make(chan func(*loop)),
		quit:       make(chan struct{}),
		done:       make(chan struct{}),
		numbers:    make(map[string]uint32),
	}
	s := cluster.Stats()
	e.stats.Store(&s)
	l := &loop{e: e, cluster: cluster, live: make(map[uint64]*stream)}
	go l.run()
	return e, nil
}

// Close stops the engine. Requests that are not finished end with 503. It
// returns when the engine's goroutine has.
func (e *Engine) Close() {
	e.closing.Do(func() { close(e.quit) })
	<-e.done
}

// Model returns the name that the engine serves.
func (e *Engine) Model() string { return e.o.Model }

// Stats returns the gauges of both nodes as of the last step.
func (e *Engine) Stats() gpukv.Stats { return *e.stats.Load() }

// Labels returns the ground truth of the finished responses, oldest first: the
// newest 65,536, or as many as the options say.
func (e *Engine) Labels() []Label { return e.labels.all() }

// LabelsDropped returns how many labels were dropped for newer ones.
func (e *Engine) LabelsDropped() uint64 { return e.labels.lost() }

// tenant returns the number of a tenant, or false if there are too many.
func (e *Engine) tenant(name string) (uint32, bool) {
	e.mu.RLock()
	n, ok := e.numbers[name]
	e.mu.RUnlock()
	if ok {
		return n, true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.numbers[name]; ok {
		return n, true
	}
	if len(e.names) >= e.o.MaxTenants {
		return 0, false
	}
	e.names = append(e.names, name)
	e.numbers[name] = uint32(len(e.names))
	return uint32(len(e.names)), true
}

func (e *Engine) tenantName(number uint32) string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.names[number-1]
}

var (
	errClosed = errors.New("the engine is shutting down")
	errBusy   = errors.New("the engine holds as many requests as it can")
)

// submit hands a request to the cluster. wake gets a value, if it has room,
// whenever the stream has more to read; several streams may share it.
func (e *Engine) submit(tenant uint32, prompt []gpukv.Token, maxNew int, wake chan<- struct{}) (*stream, error) {
	if e.pending.Add(1) > int64(e.o.MaxPending) {
		e.pending.Add(-1)
		return nil, errBusy
	}
	s := &stream{id: e.lastID.Add(1), wake: wake}
	r := gpukv.Request{ID: s.id, Tenant: tenant, Prompt: prompt, MaxNew: maxNew, Stop: endToken}
	if !e.do(func(l *loop) { l.submit(r, s) }) {
		e.pending.Add(-1)
		return nil, errClosed
	}
	return s, nil
}

// cancel ends a request whose client has left.
func (e *Engine) cancel(s *stream) {
	e.do(func(l *loop) { l.cluster.Cancel(s.id) })
}

// do has the engine's goroutine call f, and returns false if it never will: the
// channel has no buffer, so what it took it calls.
func (e *Engine) do(f func(*loop)) bool {
	select {
	case e.ops <- f:
		return true
	case <-e.quit:
		return false
	}
}

// stream is the answer to one request, as far as it has come.
type stream struct {
	id   uint64
	wake chan<- struct{}

	mu      sync.Mutex
	tokens  []gpukv.Token
	finish  *gpukv.Finish // nil while the request runs
	refused bool
	reads   []gpukv.Read // valid once finish is set
}

// from returns the tokens from index i on, and how the answer ended if it has.
// The caller must not change the tokens.
func (s *stream) from(i int) ([]gpukv.Token, *gpukv.Finish) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.tokens[i:]), s.finish
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) append(t gpukv.Token) {
	s.mu.Lock()
	s.tokens = append(s.tokens, t)
	s.mu.Unlock()
}

func (s *stream) end(f gpukv.Finish, refused bool, reads []gpukv.Read) {
	s.mu.Lock()
	s.finish, s.refused, s.reads = &f, refused, reads
	s.mu.Unlock()
}

// loop is what belongs to the engine's goroutine.
type loop struct {
	e       *Engine
	cluster *gpukv.Cluster
	live    map[uint64]*stream
	events  []gpukv.Event
	touched []*stream
}

func (l *loop) run() {
	defer close(l.e.done)
	defer l.abandon()
	for {
		if l.cluster.Idle() {
			select {
			case op := <-l.e.ops:
				op(l)
			case <-l.e.quit:
				return
			}
		}
		if !l.takeIn() {
			return
		}
		l.events = l.cluster.Step(l.events[:0])
		s := l.cluster.Stats()
		l.e.stats.Store(&s)
		if !l.wait(l.lasts(&s)) {
			return
		}
		l.deliver()
	}
}

// takeIn does all that is waiting to be done. It returns false if the engine is
// to stop.
func (l *loop) takeIn() bool {
	for {
		select {
		case op := <-l.e.ops:
			op(l)
		case <-l.e.quit:
			return false
		default:
			return true
		}
	}
}

func (l *loop) submit(r gpukv.Request, s *stream) {
	if err := l.cluster.Submit(r); err != nil {
		l.e.pending.Add(-1)
		s.end(gpukv.Finish{Reason: "abort", Status: 500, Message: "the cluster rejects the request: " + err.Error(),
			ErrType: "InternalServerError"}, true, nil)
		s.signal()
		return
	}
	l.live[r.ID] = s
}

// deliver hands the events of a step to their streams.
func (l *loop) deliver() {
	for i := range l.events {
		ev := &l.events[i]
		s := l.live[ev.Request]
		if s == nil {
			continue
		}
		if ev.Kind == gpukv.Generated {
			s.append(ev.Token)
		} else {
			l.finish(s, ev.Finish, ev.Kind == gpukv.Refused)
		}
		l.touched = append(l.touched, s)
	}
	for _, s := range l.touched {
		s.signal()
	}
	clear(l.touched)
	l.touched = l.touched[:0]
}

func (l *loop) finish(s *stream, f gpukv.Finish, refused bool) {
	s.end(f, refused, slices.Clone(l.cluster.Reads(s.id)))
	l.cluster.Forget(s.id)
	delete(l.live, s.id)
	l.e.pending.Add(-1)
}

// abandon ends every request that has not ended.
func (l *loop) abandon() {
	for _, s := range l.live {
		l.finish(s, gpukv.Finish{Reason: "abort", Status: 503, Message: errClosed.Error(), ErrType: "ServiceUnavailableError"}, true)
		s.signal()
	}
}

// lasts returns how long the step takes.
func (l *loop) lasts(s *gpukv.Stats) time.Duration {
	var seconds float64
	if rate := l.e.o.DecodeRate; rate > 0 && s.Decode.Running > 0 {
		seconds = 1 / rate
	}
	if rate := l.e.o.PrefillRate; rate > 0 && s.Prefill.Running > 0 {
		chunk := l.e.o.Cluster.ChunkTokens
		if chunk == 0 {
			chunk = fullChunk
		}
		seconds = max(seconds, float64(chunk)/rate)
	}
	return time.Duration(seconds * float64(time.Second))
}

// wait lets the step last for d, and takes in what arrives meanwhile. It returns
// false if the engine is to stop.
func (l *loop) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return true
		case op := <-l.e.ops:
			op(l)
		case <-l.e.quit:
			l.deliver()
			return false
		}
	}
}

// await waits until one of the streams that share wake has more to read. It
// returns false when the client has left.
func await(ctx context.Context, wake <-chan struct{}) bool {
	select {
	case <-wake:
		return true
	case <-ctx.Done():
		return false
	}
}
