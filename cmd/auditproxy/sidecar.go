package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/auditproxy/auditproxy/proxy"
	"github.com/auditproxy/auditproxy/proxy/admin"
	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/replay"
	"github.com/auditproxy/auditproxy/store"
)

// sidecarFlags configure a sidecar.
type sidecarFlags struct {
	auditFlags
	upstream, listen, admin string
	findings, capture       string
	tenantHeader, idHeader  string
	instance                string
	preserveHost            bool
	drain                   time.Duration
	selfTest                time.Duration
	snapshot                string
	snapshotEvery           time.Duration
}

func (f *sidecarFlags) register(cmd *cobra.Command) {
	f.auditFlags.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.upstream, "upstream", "", "base `URL` of the API that is audited (required)")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDRESS` for the tenants' traffic")
	fl.StringVar(&f.admin, "admin", "127.0.0.1:9095", "`ADDRESS` for /metrics, /healthz and /readyz")
	fl.StringVar(&f.findings, "findings", "-", "`FILE` to which findings are appended; - is standard output")
	fl.StringVar(&f.capture, "capture", "", "`FILE` to which whole exchanges are appended, prompts and answers in plain text, for replay")
	fl.StringVar(&f.tenantHeader, "tenant-header", "", "request `HEADER` that names the tenant; set it only if a trusted hop sets the header on every request")
	fl.StringVar(&f.idHeader, "id-header", "", "request `HEADER` whose value becomes the exchange's id")
	fl.StringVar(&f.instance, "instance", "", "`NAME` of the upstream instance, as findings give it")
	fl.BoolVar(&f.preserveHost, "preserve-host", false, "send the client's Host to the upstream instead of the upstream's own")
	fl.DurationVar(&f.selfTest, "self-test", time.Minute, "how often a planted leak must be found, which no sink is told of; 0 for never")
	fl.StringVar(&f.snapshot, "snapshot", "", "`FILE` in which the index outlives a restart: read at the start, written at intervals and at shutdown; it holds keyed prints, names of tenants and ids of exchanges, and no text")
	fl.DurationVar(&f.snapshotEvery, "snapshot-interval", 5*time.Minute, "how often the snapshot is written while traffic goes on")
	fl.DurationVar(&f.drain, "drain", 30*time.Second, "how long running exchanges may take to end at shutdown")
}

// sidecar is a running sidecar: two listeners, one engine.
type sidecar struct {
	*auditor
	proxy       *proxy.Proxy
	data, admin *server
	background  *background
	closing     atomic.Bool
	drain       time.Duration
	cleanups    []func() error
}

// start brings a sidecar up. Sinks beside the findings log are optional.
func (f *sidecarFlags) start(stdout io.Writer, logger *slog.Logger, more ...audit.Sink) (_ *sidecar, err error) {
	s := &sidecar{drain: f.drain, background: newBackground()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	upstream, err := url.Parse(f.upstream)
	if err != nil || f.upstream == "" {
		return nil, errors.New("--upstream: want a URL such as http://127.0.0.1:8000")
	}
	findings, err := create(f.findings, os.O_APPEND, stdout)
	if err != nil {
		return nil, fmt.Errorf("--findings: %w", err)
	}
	log := audit.NewLog(findings)
	s.cleanups = append(s.cleanups, findings.Close, log.Err)
	reg := registry()
	s.auditor, err = f.build(logger, func(index *store.Index) ([]audit.Sink, error) {
		metrics, err := audit.NewMetrics(reg, index)
		return append([]audit.Sink{metrics, log}, more...), err
	})
	if err != nil {
		return nil, err
	}
	if err := f.keep(s, reg, logger); err != nil {
		return nil, err
	}
	reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "auditproxy_events_out_of_order_total",
		Help: "Arrivals and ends that were audited before earlier ones, whose audit hung.",
	}, func() float64 { return float64(s.engine.OutOfOrder()) }))
	record, err := s.record(f.capture, stdout)
	if err != nil {
		return nil, err
	}
	s.proxy, err = proxy.New(proxy.Options{
		Upstream:     upstream,
		Engine:       s.engine,
		Tenants:      proxy.TenantRules{TrustedHeader: f.tenantHeader, Pseudonym: s.scheme.Pseudonym},
		PreserveHost: f.preserveHost,
		IDHeader:     f.idHeader,
		Instance:     f.instance,
		Record:       record,
		Registerer:   reg,
		Logger:       logger,
	})
	if err != nil {
		return nil, err
	}
	if s.data, err = listen("--listen", f.listen, s.proxy, logger); err != nil {
		return nil, err
	}
	pages := admin.New(admin.Options{Gatherer: reg, Ready: s.ready, Logger: logger})
	if s.admin, err = listen("--admin", f.admin, pages, logger); err != nil {
		return nil, err
	}
	if test := newSelfTest(s.engine, reg, logger); f.selfTest > 0 {
		s.background.wg.Go(test.run)
		s.background.every(f.selfTest, test.run)
	}
	return s, nil
}

func (s *sidecar) record(name string, stdout io.Writer) (func(*audit.Record), error) {
	if name == "" {
		return nil, nil
	}
	out, err := create(name, os.O_APPEND, stdout)
	if err != nil {
		return nil, fmt.Errorf("--capture: %w", err)
	}
	capture := replay.NewCapture(out)
	s.cleanups = append(s.cleanups, out.Close, capture.Err)
	return capture.Write, nil
}

func (s *sidecar) ready() error {
	if s.closing.Load() {
		return errors.New("shutting down")
	}
	return nil
}

// stop lets running exchanges end, for as long as the drain allows, then their
// audits, and closes everything. What does not end in time is cut off.
func (s *sidecar) stop() error {
	s.closing.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	err := s.data.shutdown(ctx)
	audits, cancelAudits := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancelAudits()
	err = errors.Join(err, s.proxy.Shutdown(audits))
	return errors.Join(err, s.close())
}

// close closes what start opened.
func (s *sidecar) close() error {
	s.background.stop()
	var err error
	for _, v := range []*server{s.data, s.admin} {
		if v != nil {
			err = errors.Join(err, v.Close())
		}
	}
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		err = errors.Join(err, s.cleanups[i]())
	}
	return err
}

// failed delivers the first error of a listener that broke.
func (s *sidecar) failed() <-chan error {
	out := make(chan error, 2)
	for _, v := range []*server{s.data, s.admin} {
		go func() { out <- <-v.done }()
	}
	return out
}

// server is an HTTP server on a listener of its own.
type server struct {
	*http.Server
	url  string
	done chan error // closed when it no longer accepts
}

func listen(flag, address string, h http.Handler, logger *slog.Logger) (*server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	s := &server{
		Server: &http.Server{
			Handler:           h,
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    1 << 20,
			ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		},
		url:  "http://" + l.Addr().String(),
		done: make(chan error, 1),
	}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.done <- err
		}
		close(s.done)
	}()
	return s, nil
}

// shutdown waits for running requests, and cuts off what ctx does not wait for.
func (s *server) shutdown(ctx context.Context) error {
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("exchanges were cut off at shutdown: %w", err), s.Close())
	}
	return nil
}

func registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "auditproxy_build_info",
		Help:        "Always 1; the labels tell the build.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
