package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/gpukv"
	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/replay"
	"github.com/auditproxy/auditproxy/sim"
)

type demoFlags struct {
	engine   engineFlags
	sidecar  sidecarFlags
	workload sim.Workload

	concurrency       int
	full, once, quiet bool
}

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the incident: a simulated engine, the sidecar and its tenants",
		Long: `Runs the incident of September 2026 in one process: a simulated engine with the
fault, the sidecar in front of it, and the traffic of 24 tenants with 155
requests that are longer than the engine's prefill pool. Prints each leak as it
is caught, then the score against the engine's ground truth.

Add --fix door_check (or another fix) to see the leaks end. The metrics stay up
until you interrupt; with --once the exit status is 0 only if the score is
perfect.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	f.engine.register(cmd, string(gpukv.StalePages))
	fl.BoolVar(&f.full, "full", false, "full token counts, as --divisor 1")
	fl.BoolVar(&f.once, "once", false, "end after the run; status 0 only if the score is perfect")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print no single leaks")
	fl.IntVar(&f.workload.Tenants, "tenants", 24, "number of tenants")
	fl.IntVar(&f.workload.Ordinary, "ordinary", 3000, "number of requests that fit the pool")
	fl.IntVar(&f.workload.Oversized, "oversized", 155, "number of requests that don't")
	fl.IntVar(&f.concurrency, "concurrency", 8, "requests in flight")
	fl.StringVar(&f.sidecar.admin, "admin", "127.0.0.1:0", "`ADDRESS` for /metrics, /healthz and /readyz")
	fl.StringVar(&f.sidecar.keyFile, "key-file", keyNone, "`FILE` with the fingerprint key, as of serve")
	fl.StringVar(&f.sidecar.findings, "findings", "", "`FILE` to which findings are appended")
	fl.StringVar(&f.sidecar.capture, "capture", "", "`FILE` to which the exchanges are appended, for replay")
	return cmd
}

// demoTenantHeader is how the demo's clients name themselves to the sidecar.
const demoTenantHeader = "X-Demo-Tenant"

func (f *demoFlags) run(cmd *cobra.Command) (err error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	logger := newLogger(cmd.ErrOrStderr(), slog.LevelWarn)
	if f.full {
		f.engine.divisor = 1
	}
	engine, srv, err := f.engine.start("127.0.0.1:0", logger)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, srv.Close())
		engine.Close()
	}()

	watch := &watcher{out: out, quiet: f.quiet, start: time.Now(), found: map[string][]detectors.Finding{}, changed: make(chan struct{}, 1)}
	f.sidecar.auditFlags = auditFlags{keyFile: f.sidecar.keyFile, indexBytes: 2 << 30, horizon: 24 * time.Hour, common: 3}
	f.sidecar.upstream, f.sidecar.listen = srv.url, "127.0.0.1:0"
	f.sidecar.tenantHeader, f.sidecar.idHeader = demoTenantHeader, "X-Request-Id"
	f.sidecar.drain, f.sidecar.selfTest = 30*time.Second, time.Minute
	if f.sidecar.findings == "" {
		f.sidecar.findings = "-"
	}
	findings := out
	if f.sidecar.findings == "-" {
		findings = io.Discard
	}
	s, err := f.sidecar.start(findings, logger, watch)
	if err != nil {
		return err
	}
	f.workload.Seed, f.workload.Divisor, f.workload.TenantHeader = f.engine.seed, f.engine.divisor, demoTenantHeader
	f.introduce(out, engine.Stats(), srv.url, s)
	score, err := f.drive(ctx, out, s, engine, watch)
	if err == nil && !f.once {
		fmt.Fprintf(out, "\nThe sidecar and its metrics stay up; interrupt to end.\n  curl -s %s/metrics | grep ^auditproxy_\n", s.admin.url)
		<-ctx.Done()
	}
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	if f.once && !f.perfect(score) {
		return &status{code: exitLeak, err: errors.New("the score is not perfect")}
	}
	return nil
}

// perfect reports whether every leak was caught, none was made up, and the
// fault, if nothing stands in its way, leaked at every chance.
func (f *demoFlags) perfect(s replay.Score) bool {
	return s.Perfect() && (!f.engine.leaky() || s.Leaks == f.workload.Oversized)
}

func (f *demoFlags) introduce(out io.Writer, s gpukv.Stats, engine string, side *sidecar) {
	scale := "full token counts"
	if f.engine.divisor > 1 {
		scale = fmt.Sprintf("token counts divided by %d", f.engine.divisor)
	}
	none := func(names []string) string {
		if len(names) == 0 {
			return "none"
		}
		return strings.Join(names, ", ")
	}
	fmt.Fprintf(out, "The incident of September 2026, %s.\n\n", scale)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  engine\t%s: window %s tokens, prefill pool %s, decode pool %s\n", engine, thousands(s.Window), thousands(s.Prefill.MaxTotalTokens), thousands(s.Decode.MaxTotalTokens))
	fmt.Fprintf(t, "  \tfaults: %s; fixes: %s\n", none(f.engine.faults), none(f.engine.fixes))
	fmt.Fprintf(t, "  sidecar\t%s, metrics at %s/metrics\n", side.data.url, side.admin.url)
	fmt.Fprintf(t, "  traffic\t%d tenants, %s requests that fit the prefill pool and %d that do not, seed %d\n\n", f.workload.Tenants, thousands(f.workload.Ordinary), f.workload.Oversized, f.engine.seed)
	_ = t.Flush()
}

// drive sends the traffic, waits for the audits and tells how it went.
func (f *demoFlags) drive(ctx context.Context, out io.Writer, s *sidecar, engine *sim.Engine, watch *watcher) (replay.Score, error) {
	var traffic traffic
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: f.concurrency, DisableCompression: true}}
	defer client.CloseIdleConnections()
	err := f.workload.Drive(ctx, client, s.data.url, f.concurrency, func(r sim.Result) {
		traffic.add(r)
		if n := traffic.total(); n%1000 == 0 && !f.quiet {
			fmt.Fprintf(out, "%6.1f s  engine: %s requests, all answers %s, queue %d\n",
				time.Since(watch.start).Seconds(), thousands(n), traffic.statuses(), engine.Stats().Decode.Queued)
		}
	})
	if err != nil {
		return replay.Score{}, err
	}
	if err := watch.wait(ctx, traffic.total()); err != nil {
		return replay.Score{}, err
	}
	took := time.Since(watch.start)
	var labels bytes.Buffer
	if err := sim.WriteLabels(&labels, engine.Labels()); err != nil {
		return replay.Score{}, err
	}
	truth, err := replay.ReadLabels(&labels)
	if err != nil {
		return replay.Score{}, fmt.Errorf("ground truth: %w", err)
	}
	score := replay.Compare(truth, watch.findings, traffic.total())
	traffic.print(out)
	fmt.Fprintf(out, "\nWhat the sidecar saw, %.1f s after the start:\n", took.Seconds())
	watch.tally.print(out)
	fmt.Fprint(out, "\nScore against the engine's ground truth:\n  ")
	if err := score.Write(out); err != nil {
		return score, err
	}
	if f.perfect(score) && f.engine.leaky() {
		fmt.Fprintf(out, "\nThe fixes that end it: --fix %s\n", strings.Join(covering, ", --fix "))
	}
	return score, nil
}

// covering are the fixes that cover stale pages.
var covering = []string{
	string(gpukv.DoorCheck), string(gpukv.RetireAfterForward), string(gpukv.LengthCheck),
	string(gpukv.KVChecksum), string(gpukv.ZeroOnAlloc),
}

// watcher is the sink that prints leaks as they are caught: a line for each
// answer that leaks, when its audit ends.
type watcher struct {
	tally
	mu      sync.Mutex // of what follows
	out     io.Writer
	quiet   bool
	start   time.Time
	found   map[string][]detectors.Finding // of exchanges that have not ended
	leaks   int
	ended   int
	changed chan struct{} // holds one token when ended has changed
}

// Finding implements [audit.Sink].
func (w *watcher) Finding(f detectors.Finding, news bool) {
	w.tally.Finding(f, news)
	if f.State != detectors.Final || !f.Leak() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found[f.Recipient.Exchange] = append(w.found[f.Recipient.Exchange], f)
}

// Exchange implements [audit.Sink].
func (w *watcher) Exchange(s audit.Summary) {
	w.tally.Exchange(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.found[s.ID]; len(found) > 0 {
		delete(w.found, s.ID)
		w.leaks++
		if !w.quiet {
			w.print(found)
		}
	}
	w.ended++
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// print tells one answer's leaks, the longest first.
func (w *watcher) print(found []detectors.Finding) {
	slices.SortFunc(found, func(a, b detectors.Finding) int { return b.Evidence.CoveredWords - a.Evidence.CoveredWords })
	f := found[0]
	fmt.Fprintf(w.out, "%6.1f s  leak %3d: the answer %s to %s holds %d words of %s's prompt %s (%s)",
		time.Since(w.start).Seconds(), w.leaks, f.Recipient.Exchange, f.Recipient.Tenant,
		f.Evidence.CoveredWords, f.Donor.Tenant, f.Donor.Exchange, f.Confidence)
	var others []string
	for _, f := range found[1:] {
		if len(others) == 2 {
			others = append(others, "...")
			break
		}
		others = append(others, fmt.Sprintf("%d of %s's", f.Evidence.CoveredWords, f.Donor.Tenant))
	}
	if len(others) > 0 {
		fmt.Fprintf(w.out, ", and %s", strings.Join(others, ", "))
	}
	fmt.Fprintln(w.out)
}

// wait waits until so many exchanges have been audited.
func (w *watcher) wait(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		w.mu.Lock()
		ended := w.ended
		w.mu.Unlock()
		if ended >= n {
			return nil
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d exchanges were audited: %w", ended, n, ctx.Err())
		}
	}
}

// traffic is what the clients saw: the engine's gauges, as an operator of the
// engine has them.
type traffic struct{ fits, oversized results }

type results struct {
	n, aborted         int
	status             map[int]int
	first, latency     []time.Duration
	prompt, completion []int
}

func (t *traffic) add(r sim.Result) {
	if r.Oversized {
		t.oversized.add(r)
	} else {
		t.fits.add(r)
	}
}

func (t *traffic) total() int { return t.fits.n + t.oversized.n }

// statuses lists the statuses of the answers.
func (t *traffic) statuses() string {
	all := map[int]int{}
	for _, r := range []*results{&t.fits, &t.oversized} {
		for code, n := range r.status {
			all[code] += n
		}
	}
	return codes(all)
}

func codes(all map[int]int) string {
	var out []string
	for code, n := range all {
		if len(all) == 1 {
			return fmt.Sprint(code)
		}
		out = append(out, fmt.Sprintf("%d (%d)", code, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (r *results) add(x sim.Result) {
	r.n++
	if x.Aborted {
		r.aborted++
		return
	}
	if r.status == nil {
		r.status = map[int]int{}
	}
	r.status[x.Status]++
	r.first = append(r.first, x.FirstByte)
	r.latency = append(r.latency, x.Latency)
	r.prompt = append(r.prompt, x.PromptTokens)
	r.completion = append(r.completion, x.CompletionTokens)
}

// median returns the middle of the values, 0 of none.
func median[T time.Duration | int](all []T) T {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

func (t *traffic) print(out io.Writer) {
	fmt.Fprint(out, "\nWhat the engine's own gauges say:\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "  prompts\trequests\tleft early\tstatus\tfirst byte p50\twhole answer p50\tprompt tokens p50\tanswer tokens p50\t\n")
	for _, row := range []struct {
		name string
		r    *results
	}{{"fit the pool", &t.fits}, {"larger than it", &t.oversized}} {
		r := row.r
		fmt.Fprintf(w, "  %s\t%s\t%d\t%s\t%.1f ms\t%.1f ms\t%s\t%s\t\n", row.name, thousands(r.n), r.aborted, codes(r.status),
			ms(median(r.first)), ms(median(r.latency)), thousands(median(r.prompt)), thousands(median(r.completion)))
	}
	_ = w.Flush()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// print tells coverage and findings.
func (t *tally) print(out io.Writer) {
	fmt.Fprintf(out, "  responses audited whole %s, in part %s, not %s; exchanges without a response %s\n",
		thousands(t.coverage[audit.Whole]), thousands(t.coverage[audit.Part]), thousands(t.coverage[audit.None]), thousands(t.coverage[""]))
	recipients := map[string]bool{}
	for _, f := range t.findings {
		if f.Leak() {
			recipients[f.Recipient.Exchange] = true
		}
	}
	fmt.Fprintf(out, "  answers that hold other tenants' prompts: %d, with %d findings, %d of them confirmed\n",
		len(recipients), t.leaks(detectors.Probable), t.leaks(detectors.Confirmed))
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
