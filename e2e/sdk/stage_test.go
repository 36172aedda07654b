package sdk

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stage is an engine at 1/512 of the incident's size, a window of 2,048 tokens
// and a prefill pool of 1,330, with a sidecar in front of it or without.
type stage struct {
	engine, sidecar   *process // sidecar is nil without
	url               string   // for clients
	engineURL, admin  string
	findings, capture string // files
}

// newStage starts a fresh engine, and with audited also a sidecar.
func newStage(t *testing.T, audited bool, engine ...string) *stage {
	t.Helper()
	s := &stage{engine: start(t, append([]string{"sim", "--listen", "127.0.0.1:0", "--divisor", "512", "--seed", "7"}, engine...)...)}
	s.engineURL = s.engine.field(t, "url")
	s.url = s.engineURL
	if audited {
		dir := t.TempDir()
		s.findings, s.capture = filepath.Join(dir, "findings.ndjson"), filepath.Join(dir, "capture.ndjson")
		s.sidecar = start(t, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", s.engineURL,
			"--id-header", "X-Request-Id", "--findings", s.findings, "--capture", s.capture, "--key-file", filepath.Join(dir, "key"))
		s.url, s.admin = s.sidecar.field(t, "traffic"), s.sidecar.field(t, "admin")
	}
	return s
}

// until calls done until it returns true, at most for as long as patience
// allows, and says whether it did.
func until(t *testing.T, done func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, res.StatusCode, err)
	}
	return string(text)
}

// metrics returns the sidecar's counters that are not 0, by name and labels.
func (s *stage) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(get(t, s.admin+"/metrics")) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil && v != 0 {
			all[name] = v
		}
	}
	return all
}

// audited waits until the sidecar has counted that many exchanges in each of its
// counters, and returns the metrics of that moment. What is counted first may
// show first.
func (s *stage) audited(t *testing.T, exchanges int) map[string]float64 {
	t.Helper()
	var m map[string]float64
	if !until(t, func() bool {
		m = s.metrics(t)
		responses := total(m, "auditproxy_responses_total{")
		return total(m, "auditproxy_requests_total{") >= float64(exchanges) && responses >= float64(exchanges) &&
			total(m, "auditproxy_unaudited_total{") >= responses-m[`auditproxy_responses_total{coverage="whole"}`]
	}) {
		t.Fatalf("%d exchanges do not end; metrics: %v", exchanges, only(m, "auditproxy_"))
	}
	return m
}

// only returns what begins with a prefix.
func only(m map[string]float64, prefix string) map[string]float64 {
	some := maps.Clone(m)
	maps.DeleteFunc(some, func(name string, _ float64) bool { return !strings.HasPrefix(name, prefix) })
	return some
}

// total adds up what begins with a prefix.
func total(m map[string]float64, prefix string) (sum float64) {
	for name, v := range m {
		if strings.HasPrefix(name, prefix) {
			sum += v
		}
	}
	return sum
}

// label is what these tests read of the engine's ground truth.
type label struct {
	Exchange, Tenant string
	Status           int
	Aborted          bool
	Expect           []struct{ Kind, Donor string }
}

func (s *stage) labels(t *testing.T) []label {
	t.Helper()
	return ndjson[label](t, get(t, s.engineURL+"/sim/labels"))
}

// finding is what these tests read of a line of the findings log.
type finding struct {
	State, Kind      string
	Recipient, Donor struct{ Tenant, Exchange string }
}

// exchange is what these tests read of a line of the capture.
type exchange struct{ ID, Tenant string }

func readLines[T any](t *testing.T, file string) []T {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return ndjson[T](t, string(text))
}

func ndjson[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("a line: %v", err)
		}
		all = append(all, v)
	}
	return all
}
