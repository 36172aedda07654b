package main

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/auditproxy/auditproxy/fingerprint"
)

var quiet = slog.New(slog.DiscardHandler)

// A missing key file is made once, whoever comes first, for its owner alone.
func TestKeyFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	keys := make([]fingerprint.Keyring, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = loadKey(name, quiet); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] || k.Current == (fingerprint.Key{}) {
			t.Fatal("processes that start at once have different keys")
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files, %v; want the key alone", len(left), err)
	}
}

func TestKeyFileErrors(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("c0ffee\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadKey(short, quiet); err == nil || !strings.Contains(err.Error(), short) || strings.Contains(err.Error(), "c0ffee") {
		t.Errorf("a short key: %v; want an error that names the file and not the key", err)
	}
	if _, err := loadKey(filepath.Join(dir, "missing", "key"), quiet); err == nil {
		t.Error("a key file in a folder that does not exist: no error")
	}
}

// The default key is kept in the user's state folder, and "none" is kept nowhere.
func TestDefaultKey(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	first, err := loadKey(keyDefault, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := loadKey(keyDefault, quiet); err != nil || second != first {
		t.Errorf("the default key changes (%v)", err)
	}
	if none, err := loadKey(keyNone, quiet); err != nil || none == first {
		t.Errorf("key none is the default key (%v)", err)
	}
}

// A rotation keeps the old key, and the environment can hold what the file held.
func TestKeyRotate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	first, err := loadKey(name, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := rotateKey(name); err != nil {
		t.Fatal(err)
	}
	second, err := loadKey(name, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if second.Previous != first.Current || second.Base != first.Current || second.Current == first.Current {
		t.Error("after the rotation the file does not hold a new key before the first")
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(keyVariable, string(text))
	if got, err := loadKey(keyDefault, quiet); err != nil || got != second {
		t.Errorf("the environment holds another keyring (%v)", err)
	}
	if _, err := loadKey(name, quiet); err == nil || !strings.Contains(err.Error(), keyVariable) {
		t.Errorf("the environment and a file: %v, want an error that names both", err)
	}
	t.Setenv(keyVariable, "c0ffee")
	if _, err := loadKey(keyDefault, quiet); err == nil || !strings.Contains(err.Error(), keyVariable) || strings.Contains(err.Error(), "c0ffee") {
		t.Errorf("a short key: %v; want an error that names the variable and not the key", err)
	}
	if err := rotateKey(name + "-missing"); err == nil {
		t.Error("a rotation of a file that is missing: no error")
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("AUDITPROXY_TENANT_HEADER", "X-From-Env")
	t.Setenv("AUDITPROXY_ID_HEADER", "X-Env-Id")
	cmd := newServe()
	if err := cmd.ParseFlags([]string{"--id-header", "X-Flag-Id"}); err != nil {
		t.Fatal(err)
	}
	if err := environment(cmd.Flags()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tenant-header": "X-From-Env", "id-header": "X-Flag-Id"} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	t.Setenv("AUDITPROXY_HORIZON", "soon")
	if err := environment(newServe().Flags()); err == nil || !strings.Contains(err.Error(), "AUDITPROXY_HORIZON") {
		t.Errorf("a bad value: %v; want an error that names the variable", err)
	}
}

// Every bad setting ends with an error that names it, and leaves nothing open.
func TestBadSettings(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serve"}, "--upstream"},
		{[]string{"serve", "--upstream", "ftp://x"}, "upstream"},
		{[]string{"serve", "--upstream", "http://127.0.0.1:1", "--common-tenants", "7"}, "common tenants"},
		{[]string{"serve", "--upstream", "http://127.0.0.1:1", "--listen", "nowhere:x"}, "--listen"},
		{[]string{"serve", "--upstream", "http://127.0.0.1:1", "--findings", "/no/such/folder/f"}, "--findings"},
		{[]string{"sim", "--fault", "gremlins"}, "gremlins"},
		{[]string{"sim", "--fix", "hope"}, "hope"},
		{[]string{"replay"}, "arg"},
		{[]string{"replay", "/no/such/file"}, "/no/such/file"},
		{[]string{"replay", "--fail-on", "maybe", "-"}, "--fail-on"},
		{[]string{"demo", "--divisor", "-1"}, "divisor"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := newRoot()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append(c.args, "--key-file", "none"))
		if c.args[0] == "sim" {
			cmd.SetArgs(c.args)
		}
		err := cmd.ExecuteContext(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want an error about %s", c.args, err, c.want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1048576: "1,048,576", -1234: "-1,234"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) is %s, want %s", n, got, want)
		}
	}
}

var update = flag.Bool("update", false, "write the generated parts of the README")

// The README's table of dialects is what the code says. Run with -update to
// write it anew.
func TestReadmeDialects(t *testing.T) {
	const name, begin, end = "../../README.md", "<!-- dialects: auditproxy dialects -->\n", "<!-- end of dialects -->\n"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of dialects", name)
	}
	var want strings.Builder
	if err := writeDialects(&want); err != nil {
		t.Fatal(err)
	}
	if got == want.String() {
		return
	}
	if !*update {
		t.Fatal("the table of dialects is out of date: run go test ./cmd/auditproxy -update")
	}
	if err := os.WriteFile(name, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
