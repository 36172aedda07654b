package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/auditproxy/auditproxy/store"
)

// snapshots keep an index over restarts.
type snapshots struct {
	name             string
	binding          [16]byte
	index            *store.Index
	logger           *slog.Logger
	last             prometheus.Gauge
	failures, broken prometheus.Counter
}

// keep restores the index of s from the last snapshot, and has it written at
// intervals and when s closes. After a rotation of keys, what was indexed under
// the previous key counts for one more horizon.
func (f *sidecarFlags) keep(s *sidecar, reg prometheus.Registerer, logger *slog.Logger) error {
	if before := s.ring.Before(); before != nil {
		s.index.Rekey(before, time.Now().Add(f.horizon))
	}
	if f.snapshot == "" {
		return nil
	}
	if f.snapshotEvery <= 0 {
		return fmt.Errorf("--snapshot-interval: %v, want more than 0", f.snapshotEvery)
	}
	k := &snapshots{
		name: f.snapshot, binding: s.ring.ID(), index: s.index, logger: logger,
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "auditproxy_snapshot_last_success_timestamp_seconds",
			Help: "When the index was last written to its snapshot, 0 if not yet.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "auditproxy_snapshot_failures_total",
			Help: "Snapshots that could not be written.",
		}),
		broken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "auditproxy_snapshot_damaged_total",
			Help: "Snapshots that were damaged when they were read, and set aside; the index then began empty.",
		}),
	}
	reg.MustRegister(k.last, k.failures, k.broken)
	if err := k.restore(s); err != nil {
		return fmt.Errorf("--snapshot: %w", err)
	}
	s.background.every(f.snapshotEvery, func() { _ = k.save() }) // it is logged and counted
	s.cleanups = append(s.cleanups, k.save)
	return nil
}

// restore reads the snapshot. One that is missing or damaged leaves the index
// empty; one of another key is an error, for it would be overwritten.
func (k *snapshots) restore(s *sidecar) error {
	start := time.Now()
	err := k.index.RestoreFile(store.Disk{}, k.name, k.binding)
	if previous, ok := s.ring.PreviousID(); ok && errors.Is(err, store.ErrKey) {
		err = k.index.RestoreFile(store.Disk{}, k.name, previous)
	}
	switch {
	case err == nil:
		stats := k.index.Stats()
		k.logger.Info("index restored", "snapshot", k.name, "prints", stats.Prints, "reaches_back", stats.Horizon.Round(time.Second), "took", time.Since(start).Round(time.Millisecond))
	case errors.Is(err, fs.ErrNotExist):
		k.logger.Info("no snapshot yet, the index begins empty", "snapshot", k.name)
	case errors.Is(err, store.ErrDamaged):
		k.broken.Inc()
		k.logger.Error("the index begins empty", "err", err)
	default:
		return err
	}
	return nil
}

func (k *snapshots) save() error {
	if err := k.index.SaveFile(store.Disk{}, k.name, k.binding); err != nil {
		k.failures.Inc()
		k.logger.Error("the index was not saved", "err", err)
		return err
	}
	k.last.SetToCurrentTime()
	return nil
}
