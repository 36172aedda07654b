package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// failure says how an upstream failed. It is a label, so the set is closed.
type failure string

const (
	failDial     failure = "dial"     // no connection came about
	failTLS      failure = "tls"      // a connection, but no trust
	failTimeout  failure = "timeout"  // a time limit of ours passed
	failClosed   failure = "closed"   // the connection ended before the response began
	failProtocol failure = "protocol" // what came was no HTTP response
	failBody     failure = "body"     // the connection ended inside the response
)

// failureOf classifies the error of a round trip.
func failureOf(err error) failure {
	var (
		op     *net.OpError
		neterr net.Error
		verify *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
	)
	switch {
	case errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert):
		return failTLS
	case errors.As(err, &op) && op.Op == "dial":
		return failDial
	case errors.As(err, &neterr) && neterr.Timeout():
		return failTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errNotDrained),
		errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failClosed
	}
	return failProtocol
}

type metrics struct {
	requests  prometheus.Gauge
	failures  map[failure]prometheus.Counter
	latency   prometheus.Histogram
	unknown   prometheus.Counter
	dropped   prometheus.Counter
	uncounted prometheus.Counter
	panics    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, inflight func() float64) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "auditproxy_" + name, Help: help})
	}
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "auditproxy_upstream_errors_total",
		Help: "Exchanges that the upstream failed, by reason; clients that left are not among them.",
	}, []string{"reason"})
	m := &metrics{
		requests: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "auditproxy_inflight_requests",
			Help: "Requests being forwarded, upgraded connections among them.",
		}),
		failures: map[failure]prometheus.Counter{},
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "auditproxy_added_latency_seconds",
			Help: "Time that a response's headers spent in the sidecar: from the request's headers read to the request handed to the HTTP client, and from the upstream's headers read to ours written.",
			Buckets: []float64{
				5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 1e-1,
			},
		}),
		unknown:   counter("unknown_tenant_total", "Requests whose tenant only their address tells."),
		dropped:   counter("audit_dropped_bytes_total", "Bytes of responses that were delivered but not audited, since the audit was behind."),
		uncounted: counter("uncounted_exchanges_total", "Exchanges that passed while so many audits were stuck that not even the coverage counts them."),
		panics:    counter("audit_panics_total", "Exchanges whose audit or capture failed inside the sidecar."),
	}
	for _, f := range []failure{failDial, failTLS, failTimeout, failClosed, failProtocol, failBody} {
		m.failures[f] = failures.WithLabelValues(string(f))
	}
	if reg == nil {
		return m, nil
	}
	audits := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "auditproxy_inflight_audits",
		Help: "Exchanges whose audit has not ended.",
	}, inflight)
	for _, c := range []prometheus.Collector{
		m.requests, audits, failures, m.latency, m.unknown, m.dropped, m.uncounted, m.panics,
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) added(d time.Duration) { m.latency.Observe(d.Seconds()) }
