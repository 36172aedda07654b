// Package audit turns exchanges into findings. It is fed the bytes of requests
// and responses with their event times, by the data path live and by a log
// reader afterwards, and treats both alike. It knows neither HTTP nor clocks.
//
// The verdict on an exchange is a function of the order of two kinds of
// events: the arrival of a request, and the end of a response. The engine
// gives each of them a time of its own, strictly increasing, and changes the
// index only there, one event at a time. A log that holds those times can thus
// be replayed to the very same findings. What a response shows while it
// streams is early news and changes nothing.
package audit

import (
	"errors"
	"sync"
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
}

// Engine audits exchanges against one index. It is safe for concurrent use.
type Engine struct {
	scheme    *fingerprint.Scheme
	index     *store.Index
	dialects  []dialect.Dialect
	detectors []detectors.Detector
	sinks     []Sink
	maxBody   int

	mu    sync.Mutex // held while an event changes the index
	last  time.Time  // of the newest event
	queue queue
}

// New returns an engine that fingerprints by scheme and keeps prints in index.
func New(scheme *fingerprint.Scheme, index *store.Index, o Options) (*Engine, error) {
	if scheme == nil {
		return nil, errors.New("audit: no fingerprint scheme")
	}
	if index == nil {
		return nil, errors.New("audit: no index")
	}
	e := &Engine{
		scheme: scheme, index: index,
		dialects: o.Dialects, detectors: o.Detectors, sinks: o.Sinks, maxBody: o.MaxBody,
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
	return e, nil
}

// Index returns the index that the engine keeps.
func (e *Engine) Index() *store.Index { return e.index }

// event runs do as the next event, at the given time or just after the last
// event, whichever is later, and returns the time it took.
func (e *Engine) event(at time.Time, do func(at time.Time)) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	at = at.Round(0).UTC()
	if !at.After(e.last) {
		at = e.last.Add(time.Nanosecond)
	}
	e.last = at
	e.index.Advance(at)
	do(at)
	return at
}

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
		x.Header = noHeader{}
	}
	return &Transaction{
		engine:  e,
		x:       x,
		dialect: dialect.Find(e.dialects, x.Method, x.Path),
	}
}

type noHeader struct{}

func (noHeader) Get(string) string { return "" }
