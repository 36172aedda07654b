package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/auditproxy/auditproxy/proxy/audit"
)

// background is what a sidecar does beside the traffic, at intervals.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel}
}

// every runs do at each interval until stop.
func (b *background) every(interval time.Duration, do func()) {
	b.wg.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				do()
			case <-b.ctx.Done():
				return
			}
		}
	})
}

// stop returns when nothing runs any more.
func (b *background) stop() {
	b.cancel()
	b.wg.Wait()
}

// selfTest is the proof, from one interval to the next, that silence means
// clean and not blind.
type selfTest struct {
	engine   *audit.Engine
	logger   *slog.Logger
	last     prometheus.Gauge
	failures prometheus.Counter
}

func newSelfTest(engine *audit.Engine, reg prometheus.Registerer, logger *slog.Logger) *selfTest {
	s := &selfTest{
		engine: engine,
		logger: logger,
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "auditproxy_selftest_last_success_timestamp_seconds",
			Help: "When a planted leak was last found by the audit, with its donor, and a clean answer passed; 0 if never.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "auditproxy_selftest_failures_total",
			Help: "Self-tests in which the audit missed a planted leak, named the wrong donor, or took a clean answer for a leak.",
		}),
	}
	reg.MustRegister(s.last, s.failures)
	return s
}

func (s *selfTest) run() {
	if err := s.engine.SelfTest(time.Now()); err != nil {
		s.failures.Inc()
		s.logger.Error("the audit may be blind", "err", err)
		return
	}
	s.last.SetToCurrentTime()
}
