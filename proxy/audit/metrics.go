package audit

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/proxy/dialect"
	"github.com/auditproxy/auditproxy/store"
)

// Metrics is a [Sink] that counts. Its label sets are bounded: tenants are
// never labels, and models beyond the first 64 count as "other".
type Metrics struct {
	requests   *prometheus.CounterVec
	responses  *prometheus.CounterVec
	unaudited  *prometheus.CounterVec
	findings   *prometheus.CounterVec
	withdrawn  prometheus.Counter
	leaks      *prometheus.CounterVec
	control    *prometheus.CounterVec
	lastLeak   prometheus.Gauge
	maxModels  int
	mu         sync.Mutex
	models     map[string]bool
	lastLeakAt float64
}

// NewMetrics registers the metrics of the audit and of the index with reg.
func NewMetrics(reg prometheus.Registerer, index *store.Index) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "auditproxy_" + name, Help: help}, labels)
	}
	m := &Metrics{
		requests:  counter("requests_total", "Exchanges that ended, by dialect and status code; code 0 had no response.", "dialect", "code"),
		responses: counter("responses_total", "Responses by how much of them was audited. Whole, part and none add up to all.", "coverage"),
		unaudited: counter("unaudited_total", "Reasons why responses were audited in part or not at all; a response may have several.", "reason"),
		findings:  counter("findings_total", "Findings, counted once for each confidence they reached.", "kind", "confidence", "detector"),
		leaks:     counter("leaks_total", "Leaks by model of the recipient, each counted once.", "model"),
		control:   counter("control_matches_total", "Matches of prompts with earlier answers to other tenants, which can't be leaks: an estimate of the false alarms among the findings of the same confidence.", "confidence"),
		withdrawn: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "auditproxy_findings_withdrawn_total",
			Help: "Findings that opened while a response streamed and that its end did not bear out.",
		}),
		lastLeak: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "auditproxy_last_leak_timestamp_seconds",
			Help: "Event time of the newest leak, 0 if there was none.",
		}),
		maxModels: 64,
		models:    map[string]bool{},
	}
	for _, c := range Coverages() {
		m.responses.WithLabelValues(string(c))
	}
	for _, r := range Reasons() {
		m.unaudited.WithLabelValues(string(r))
	}
	for _, c := range []detectors.Confidence{detectors.Confirmed, detectors.Probable} {
		m.findings.WithLabelValues(string(detectors.PromptLeak), string(c), detectors.Passages{}.Name())
		m.control.WithLabelValues(string(c))
	}
	m.findings.WithLabelValues(string(detectors.Suspect), string(detectors.Possible), detectors.Passages{}.Name())
	for _, c := range []prometheus.Collector{m.requests, m.responses, m.unaudited, m.findings, m.leaks, m.control, m.withdrawn, m.lastLeak, indexCollector{index}} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Finding implements [Sink].
func (m *Metrics) Finding(f detectors.Finding, news bool) {
	if f.State == detectors.Withdrawn {
		m.withdrawn.Inc()
	}
	if !news {
		return
	}
	m.findings.WithLabelValues(string(f.Kind), string(f.Confidence), f.Detector).Inc()
	if !f.Leak() {
		return
	}
	at := float64(f.Time.UnixMilli()) / 1000
	m.mu.Lock()
	defer m.mu.Unlock()
	if at > m.lastLeakAt {
		m.lastLeakAt = at
		m.lastLeak.Set(at)
	}
}

// Exchange implements [Sink].
func (m *Metrics) Exchange(s Summary) {
	name := s.Dialect
	if name == "" {
		name = "none"
	}
	m.requests.WithLabelValues(name, strconv.Itoa(s.Status)).Inc()
	if s.Coverage != "" {
		m.responses.WithLabelValues(string(s.Coverage)).Inc()
		m.count(s.Reasons)
	}
	for _, c := range s.Control {
		m.control.WithLabelValues(string(c)).Inc()
	}
	if s.Leaks > 0 {
		m.leaks.WithLabelValues(m.model(s.Model)).Add(float64(s.Leaks))
	}
}

func (m *Metrics) count(reasons []dialect.Reason) {
	for _, r := range reasons {
		m.unaudited.WithLabelValues(string(r)).Inc()
	}
}

// model bounds the label.
func (m *Metrics) model(name string) string {
	if name == "" {
		return "unknown"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.models[name] {
		if len(m.models) >= m.maxModels || len(name) > 128 {
			return "other"
		}
		m.models[name] = true
	}
	return name
}

// indexCollector reads the index's figures when asked.
type indexCollector struct{ index *store.Index }

var (
	indexPrints  = prometheus.NewDesc("auditproxy_index_prints", "Prints in the index.", nil, nil)
	indexBytes   = prometheus.NewDesc("auditproxy_index_bytes", "Bytes that the index holds.", nil, nil)
	indexHorizon = prometheus.NewDesc("auditproxy_index_horizon_seconds", "How far back the index reaches.", nil, nil)
	indexEarly   = prometheus.NewDesc("auditproxy_index_evicted_early_total", "Prints that the byte budget dropped before the horizon; while it grows, leaks may be missed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c indexCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{indexPrints, indexBytes, indexHorizon, indexEarly} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c indexCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.index.Stats()
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(indexPrints, float64(s.Prints))
	gauge(indexBytes, float64(s.Bytes))
	gauge(indexHorizon, s.Horizon.Seconds())
	ch <- prometheus.MustNewConstMetric(indexEarly, prometheus.CounterValue, float64(s.EvictedEarly))
}
