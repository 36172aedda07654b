// Package audit turns exchanges into findings. It is fed the bytes of requests
// and responses with their event times, by the data path live and by a log
// reader afterwards, and treats both alike. It knows neither HTTP nor clocks.
//
// The verdict on an exchange is a function of the order of two kinds of
// events: the arrival of a request, and the end of a response. The engine
// gives each of them a time of its own when it happens, strictly increasing,
// and takes them one at a time in that order, however long the work before
// each of them is; only there does the index change. A log that holds those
// times can thus be replayed to the very same findings, a donor that arrived in
// time counts even if its prompt took long to read, and one that arrived later
// never does. What a response shows while it streams is early news and changes
// nothing.
package audit

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/proxy/dialect"
	"github.com/auditproxy/auditproxy/store"
)

// Options configure an [Engine].
type Options struct {
	Dialects  []dialect.Dialect    // nil means dialect.All()
	Detectors []detectors.Detector // nil means detectors.All()
	Sinks     []Sink               // where findings and summaries go; nil means nowhere
	// MaxBody bounds what a compressed body may inflate to, in bytes; 0 means
	// 64 MiB.
	MaxBody int
	// Patience is how long an event waits for those before it whose work is
	// not done; 0 means 5 s. An exchange whose audit hangs holds up the others
	// for so long, once; then they go on without it, out of order.
	Patience time.Duration
}

// Engine audits exchanges against one index. It is safe for concurrent use.
type Engine struct {
	scheme    *fingerprint.Scheme
	index     *store.Index
	dialects  []dialect.Dialect
	detectors []detectors.Detector
	sinks     []Sink
	maxBody   int
	patience  time.Duration

	mu   sync.Mutex
	last time.Time       // of the newest event
	tail <-chan struct{} // closed when that event is over

	event      sync.Mutex // held during an event
	queue      queue
	outOfOrder atomic.Uint64
}

// New returns an engine that fingerprints by scheme and keeps prints in index.
func New(scheme *fingerprint.Scheme, index *store.Index, o Options) (*Engine, error) {
	if scheme == nil {
		return nil, errors.New("audit: no fingerprint scheme")
	}
	if index == nil {
		return nil, errors.New("audit: no index")
	}
	start := make(chan struct{})
	close(start)
	e := &Engine{
		tail:   start,
		scheme: scheme, index: index,
		dialects: o.Dialects, detectors: o.Detectors, sinks: o.Sinks, maxBody: o.MaxBody,
		patience: o.Patience,
	}
	if e.dialects == nil {
		e.dialects = dialect.All()
	}
	if e.detectors == nil {
		e.detectors = detectors.All()
	}
	if e.maxBody == 0 {
		e.maxBody = 64 << 20
	}
	if e.patience == 0 {
		e.patience = 5 * time.Second
	}
	return e, nil
}

// Index returns the index that the engine keeps.
func (e *Engine) Index() *store.Index { return e.index }

// turn is the place of an event in the order of all events.
type turn struct {
	at     time.Time
	before <-chan struct{} // closed when the event before is over
	over   chan struct{}
}

// turn gives out the next turn, at the given time or just after the last
// event, whichever is later. It must be taken.
func (e *Engine) turn(at time.Time) *turn {
	e.mu.Lock()
	defer e.mu.Unlock()
	at = at.Round(0).UTC()
	if !at.After(e.last) {
		at = e.last.Add(time.Nanosecond)
	}
	t := &turn{at: at, before: e.tail, over: make(chan struct{})}
	e.last, e.tail = at, t.over
	return t
}

// take waits for the turn and runs do as its event.
func (e *Engine) take(t *turn, do func(at time.Time)) {
	defer close(t.over)
	if !wait(t.before, e.patience) {
		e.outOfOrder.Add(1)
	}
	e.event.Lock()
	defer e.event.Unlock()
	e.index.Advance(t.at)
	do(t.at)
}

// wait waits until over is closed; it reports false if that takes too long.
func wait(over <-chan struct{}, patience time.Duration) bool {
	select {
	case <-over:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-over:
		return true
	case <-timer.C:
		return false
	}
}

// OutOfOrder returns how many events did not wait any longer for those before
// them. A replay may differ from the live run around them.
func (e *Engine) OutOfOrder() uint64 { return e.outOfOrder.Load() }

// accounted returns the prints that are not known as text that only another
// tenant's prompt accounts for.
func (e *Engine) accounted(tenant string, prints []fingerprint.Print) []fingerprint.Print {
	foreign := map[int]bool{}
	for _, m := range e.index.Lookup(nil, tenant, prints) {
		if m.Foreign() {
			foreign[m.Print] = true
		}
	}
	if len(foreign) == 0 {
		return prints
	}
	var rest []fingerprint.Print
	for i, p := range prints {
		if !foreign[i] {
			rest = append(rest, p)
		}
	}
	return rest
}

// Exchange is what is known of an exchange when its request begins.
type Exchange struct {
	ID       string         // unique; never empty
	Tenant   string         // never empty
	User     string         // sub-tenant; "" if unknown
	Instance string         // upstream instance as the sidecar names it; "" if unknown
	Method   string         //
	Path     string         // URL path as sent, still escaped
	Header   dialect.Header // of the request; nil means none
}

// Begin starts the audit of one exchange. The transaction must be finished.
func (e *Engine) Begin(x Exchange) *Transaction {
	if x.Header == nil {
		x.Header = headerOf("")
	}
	return &Transaction{
		engine:  e,
		sinks:   e.sinks,
		x:       x,
		dialect: dialect.Find(e.dialects, x.Method, x.Path),
	}
}
