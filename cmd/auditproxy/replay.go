package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/replay"
	"github.com/auditproxy/auditproxy/store"
)

type replayFlags struct {
	auditFlags
	findings, labels, failOn string
	window                   time.Duration
	windowBytes              int64
	quiet                    bool
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE...",
		Short: "Audit captured exchanges",
		Long: `Audits exchanges that "serve --capture" wrote (NDJSON, also as .gz and .zst;
"-" is standard input) and writes what it finds as NDJSON. With the key of the
live run it finds exactly what that found.

Exit status: 0 if no leak was found, 1 if leaks at or above --fail-on were, 2
if something could not be read.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.findings, "findings", "-", "`FILE` for the findings; - is standard output")
	fl.StringVar(&f.labels, "labels", "", "`FILE` with labels (NDJSON) to score the findings against")
	fl.StringVar(&f.failOn, "fail-on", "probable", "the least `CONFIDENCE` that gives exit status 1: probable or confirmed")
	fl.DurationVar(&f.window, "window", 15*time.Minute, "how far records may be out of order; at least the longest exchange")
	fl.Int64Var(&f.windowBytes, "window-bytes", 1<<30, "bound on the `BYTES` held to put records in order")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no summary")
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, files []string) (err error) {
	if f.failOn != string(detectors.Probable) && f.failOn != string(detectors.Confirmed) {
		return fmt.Errorf("--fail-on: %q is neither probable nor confirmed", f.failOn)
	}
	labels, err := readLabels(f.labels)
	if err != nil {
		return err
	}
	out, err := create(f.findings, os.O_TRUNC, cmd.OutOrStdout())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	log, tally := audit.NewLog(out), &tally{}
	stderr := cmd.ErrOrStderr()
	a, err := f.build(newLogger(stderr, slog.LevelInfo), func(*store.Index) ([]audit.Sink, error) { return []audit.Sink{log, tally}, nil })
	if err != nil {
		return err
	}
	o := replay.Options{
		Window: f.window, WindowBytes: f.windowBytes,
		Bad: func(err error) { fmt.Fprintln(stderr, "auditproxy:", err) },
	}
	if !f.quiet && isTerminal(os.Stderr) {
		o.Progress = progress(stderr)
	}
	result, err := replay.Run(a.engine, files, cmd.InOrStdin(), o)
	if err != nil {
		return err
	}
	if err := log.Err(); err != nil {
		return err
	}
	if !f.quiet {
		tally.summary(stderr, result, a.index.Stats())
		if f.labels != "" {
			if err := replay.Compare(labels, tally.findings, result.Records).Write(stderr); err != nil {
				return err
			}
		}
	}
	switch {
	case tally.leaks(detectors.Confidence(f.failOn)) > 0:
		return &status{code: exitLeak}
	case result.Bad > 0:
		return &status{code: exitTrouble, err: fmt.Errorf("%d records could not be read", result.Bad)}
	}
	return nil
}

func readLabels(name string) ([]replay.Label, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	labels, err := replay.ReadLabels(f)
	if err != nil {
		err = fmt.Errorf("labels %s: %w", name, err)
	}
	return labels, errors.Join(err, f.Close())
}

// tally is a sink that keeps final findings and counts exchanges.
type tally struct {
	mu       sync.Mutex
	findings []detectors.Finding
	coverage map[audit.Coverage]int
	control  int // matches that can't be leaks
}

// Finding implements [audit.Sink].
func (t *tally) Finding(f detectors.Finding, _ bool) {
	if f.State != detectors.Final {
		return
	}
	f.Prints = nil
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findings = append(t.findings, f)
}

// Exchange implements [audit.Sink].
func (t *tally) Exchange(s audit.Summary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.coverage == nil {
		t.coverage = map[audit.Coverage]int{}
	}
	t.coverage[s.Coverage]++
	t.control += len(s.Control)
}

// leaks counts leaks of at least the given confidence.
func (t *tally) leaks(least detectors.Confidence) int {
	n := 0
	for _, f := range t.findings {
		if f.Leak() && (least == detectors.Probable || f.Confidence == detectors.Confirmed) {
			n++
		}
	}
	return n
}

func (t *tally) summary(w io.Writer, r replay.Result, s store.Stats) {
	fmt.Fprintf(w, "%d exchanges: %d responses audited whole, %d in part, %d not; %d had no response\n",
		r.Records, t.coverage[audit.Whole], t.coverage[audit.Part], t.coverage[audit.None], t.coverage[""])
	if r.Late > 0 {
		fmt.Fprintf(w, "%d records came after their window and were audited out of order: raise --window or --window-bytes\n", r.Late)
	}
	if s.EvictedEarly > 0 {
		fmt.Fprintf(w, "%d prints were dropped before the horizon, so leaks may have been missed: raise --index-bytes\n", s.EvictedEarly)
	}
	leaks := t.leaks(detectors.Probable)
	fmt.Fprintf(w, "%d leaks, %d of them confirmed, and %d suspects; the reverse-time control, which can only be wrong, has %d leaks\n",
		leaks, t.leaks(detectors.Confirmed), len(t.findings)-leaks, t.control)
}

func progress(w io.Writer) func(int64, int) {
	start := time.Now()
	next := start
	return func(bytes int64, records int) {
		now := time.Now()
		if now.Before(next) {
			return
		}
		next = now.Add(200 * time.Millisecond)
		mb := float64(bytes) / 1e6
		fmt.Fprintf(w, "\r%d exchanges, %.0f MB, %.0f MB/s \x1b[K\r", records, mb, mb/now.Sub(start).Seconds())
	}
}
