package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What one sidecar has indexed, the next one knows: over a restart, and over a
// rotation of the key. A snapshot that is damaged is set aside, and the traffic
// goes on; one of another key is refused.
func TestRestart(t *testing.T) {
	rnd := seeded(t)
	s := newStage(t, "--fault", "stale_pages")
	s.sidecar.stop(t)
	dir := t.TempDir()
	index := filepath.Join(dir, "index")
	s.serve(t, "--snapshot", index)
	s.fill(t, rnd)
	stop := func() {
		t.Helper()
		if code := s.sidecar.stop(t); code != 0 {
			t.Fatalf("the sidecar ended with status %d", code)
		}
	}
	rotate := func() {
		t.Helper()
		if _, stderr, code := run(t, "key", "rotate", "--key-file", s.key); code != 0 {
			t.Fatalf("key rotate: status %d: %s", code, stderr)
		}
	}
	stop()
	rotate()
	s.serve(t, "--snapshot", index)
	s.oversized(t, rnd)
	stop()
	log, err := os.ReadFile(s.findings)
	if err != nil {
		t.Fatal(err)
	}
	if leaks(t, finals(t, string(log))) == 0 {
		t.Error("no leak of what came before the restart was found")
	}

	// Twice rotated without a start between, the previous key is not the
	// snapshot's.
	rotate()
	rotate()
	_, stderr, code := run(t, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--upstream", s.engine.field(t, "url"), "--key-file", s.key, "--snapshot", index)
	if code != 2 || !strings.Contains(stderr, index) || !strings.Contains(stderr, "another key") {
		t.Errorf("a snapshot of another key: status %d: %s", code, stderr)
	}

	if err := os.Truncate(index, 1000); err != nil {
		t.Fatal(err)
	}
	s.serve(t, "--snapshot", index)
	if status, _ := s.ask(t, "c-1", "carol", letter(rnd, 50), false); status != http.StatusOK {
		t.Errorf("after a damaged snapshot a request got %d", status)
	}
	if metrics := get(t, s.admin+"/metrics"); !strings.Contains(metrics, "auditproxy_snapshot_damaged_total 1\n") {
		t.Error("the damaged snapshot is not counted")
	}
	stop()
	if aside, err := filepath.Glob(index + ".damaged-*"); err != nil || len(aside) != 1 {
		t.Errorf("set aside: %v, %v; want one file", aside, err)
	}
	if info, err := os.Stat(index); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the new snapshot: %v, %v; want a file of mode 0600", info, err)
	}
}
