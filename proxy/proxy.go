// Package proxy is the data path: an http.Handler that forwards every request
// to one upstream, byte for byte and as it comes, and lets the audit read a
// copy beside it.
//
// The two sides meet in one place, the exchange. The forwarding goroutine hands
// over what it has already delivered and never waits; one audit goroutine for
// each exchange takes what has piled up. When the audit can't keep up, text
// goes unaudited and is counted as such, and the traffic never notices.
//
// Serve a Proxy with an [http.Server] that has a ReadHeaderTimeout and neither
// a ReadTimeout nor a WriteTimeout, which would end long uploads and streams;
// a client that stops reading is the business of [Options.StallTimeout]. A
// program that serves one must also send the standard logger of package log
// nowhere: when an upstream sends more than an answer, net/http writes the
// surplus there, and it is text of some tenant's.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/auditproxy/auditproxy/proxy/audit"
)

// Options configure a [Proxy].
type Options struct {
	// Upstream is where requests go: http or https, a host, and perhaps a
	// path that is set before each request's own. Required.
	Upstream *url.URL
	// Engine audits the exchanges. Required.
	Engine *audit.Engine
	// Tenants say who sent a request. The zero value knows API keys and
	// account ids.
	Tenants TenantRules

	// PreserveHost sends the client's Host header on; false sends the
	// upstream's own.
	PreserveHost bool
	// HTTP2 speaks HTTP/2 to the upstream, agreed on by ALPN over https and
	// taken for granted over http; false means HTTP/1.1.
	HTTP2 bool
	// TLS configures connections to an https upstream; nil means the system's
	// roots and Go's defaults.
	TLS *tls.Config
	// IdleTimeout is how long an idle upstream connection is kept. It should
	// be below the upstream's own timeout, or requests meet connections that
	// are just being closed. 0 means 4 s, just under the 5 s that uvicorn and
	// Node.js keep theirs.
	IdleTimeout time.Duration
	// StallTimeout is how long a client may take nothing of a response that
	// is there for it, before it counts as gone. 0 means 5 min, below 0 for
	// ever.
	StallTimeout time.Duration

	// MaxRequestCopy bounds the bytes of a request body that are copied for
	// the audit; what lies beyond is forwarded all the same. 0 means 64 MiB.
	MaxRequestCopy int
	// MaxBacklog bounds the bytes of one response that wait for its audit;
	// beyond, the rest of the response goes unaudited. 0 means 8 MiB.
	MaxBacklog int
	// MaxAudits bounds the exchanges audited at once; beyond, exchanges pass
	// unaudited. 0 means 4096.
	MaxAudits int

	// IDHeader names a request header whose value becomes the exchange's id
	// if it is printable ASCII of at most 128 bytes. Name only a header that
	// a trusted hop sets, and sets anew for each request. "" means an id of
	// our own for each exchange, a ULID.
	IDHeader string
	// Instance names the upstream instance in findings; "" leaves it out.
	Instance string

	// Record takes each audited exchange after its end, on the exchange's
	// audit goroutine; nil means that none is captured. It owns the record.
	Record func(*audit.Record)
	// MaxRecordBody bounds each body of a record, in bytes. 0 means 64 MiB.
	MaxRecordBody int

	// Registerer takes the data path's metrics; nil leaves them unregistered.
	Registerer prometheus.Registerer
	// Logger takes what goes wrong with upstreams; nil discards it.
	Logger *slog.Logger
}

// Proxy forwards requests and has them audited. It is safe for concurrent use.
type Proxy struct {
	o         Options // defaults filled in
	scheme    string
	host      string
	base      string // path before each request's own, escaped, without a slash at its end
	tenants   tenants
	transport *http.Transport
	errors    errorBodies
	metrics   *metrics
	audits    counter
	tallies   counter // of exchanges that are not audited, but counted
	// maxTallies bounds tallies. They take microseconds, so only a burst or an
	// engine that is stuck comes near it.
	maxTallies int
	quit       chan struct{} // closed when Shutdown begins
	quitOnce   sync.Once
}

// New returns a proxy for o.Upstream.
func New(o Options) (*Proxy, error) {
	base, err := checkUpstream(o.Upstream)
	if err != nil {
		return nil, err
	}
	if o.Engine == nil {
		return nil, errors.New("proxy: no audit engine")
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"MaxRequestCopy", o.MaxRequestCopy},
		{"MaxBacklog", o.MaxBacklog},
		{"MaxAudits", o.MaxAudits},
		{"MaxRecordBody", o.MaxRecordBody},
		{"IdleTimeout", int(o.IdleTimeout)},
	} {
		if n.value < 0 {
			return nil, fmt.Errorf("proxy: %s is negative", n.name)
		}
	}
	fill(&o.IdleTimeout, 4*time.Second)
	fill(&o.StallTimeout, 5*time.Minute)
	fill(&o.MaxRequestCopy, 64<<20)
	fill(&o.MaxBacklog, 8<<20)
	fill(&o.MaxAudits, 4096)
	fill(&o.MaxRecordBody, 64<<20)
	o.IDHeader = http.CanonicalHeaderKey(o.IDHeader)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{
		o:      o,
		scheme: o.Upstream.Scheme,
		host:   o.Upstream.Host,
		base:   base,
		quit:   make(chan struct{}),

		maxTallies: 4096,
	}
	if p.tenants, err = newTenants(o.Tenants); err != nil {
		return nil, err
	}
	if p.errors, err = newErrorBodies(); err != nil {
		return nil, err
	}
	if p.metrics, err = newMetrics(o.Registerer, p.inflight); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p.transport = newTransport(o)
	return p, nil
}

// inflight returns how many audits run.
func (p *Proxy) inflight() float64 { return float64(p.audits.count() + p.tallies.count()) }

func fill[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

// checkUpstream returns the path that comes before each request's own.
func checkUpstream(u *url.URL) (base string, err error) {
	switch {
	case u == nil:
		return "", errors.New("proxy: no upstream")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("proxy: upstream: scheme %q is neither http nor https", u.Scheme)
	case u.Host == "":
		return "", errors.New("proxy: upstream: no host")
	case u.User != nil:
		return "", errors.New("proxy: upstream: credentials don't belong in its URL")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("proxy: upstream: query and fragment don't belong in its URL")
	}
	base = strings.TrimSuffix(u.EscapedPath(), "/")
	if strings.HasPrefix(base, "//") {
		return "", errors.New("proxy: upstream: its path begins with two slashes")
	}
	return base, nil
}

// ServeHTTP forwards one request. It panics with [http.ErrAbortHandler] where
// the client has to see a broken response.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.metrics.requests.Inc()
	defer p.metrics.requests.Dec()
	start := time.Now()
	if r.Method == http.MethodConnect {
		p.errors.write(w, http.StatusMethodNotAllowed)
		return
	}
	x := p.begin(r)
	defer x.end(audit.ReasonPanic) // changes nothing once the exchange has ended
	l := &leg{
		p: p, x: x, w: w, r: r,
		control:  http.NewResponseController(w),
		upload:   x.upload,
		received: start,
	}
	cut, broken := l.forward()
	x.end(cut)
	if broken {
		panic(http.ErrAbortHandler)
	}
}

// Shutdown ends the proxy after the [http.Server] that serves it was shut down
// and no request is left. It closes upgraded connections, which the server no
// longer knows of, and waits for the audits that still run. If ctx ends
// first, the error says how many were left.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.quitOnce.Do(func() { close(p.quit) })
	defer p.transport.CloseIdleConnections()
	if left := p.audits.wait(ctx) + p.tallies.wait(ctx); left > 0 {
		return fmt.Errorf("proxy: %d audits left: %w", left, ctx.Err())
	}
	return nil
}
