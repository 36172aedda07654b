package sdk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the command, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "auditproxy-sdk-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "auditproxy")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	build := exec.CommandContext(ctx, "go", "build", "-C", "../..", "-o", binary, "./cmd/auditproxy")
	build.Stderr = os.Stderr
	code := 1
	if err := build.Run(); err == nil {
		forgetAccounts()
		log.SetOutput(io.Discard) // a library logs every response that it leaves
		code = m.Run()
	}
	cancel()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// forgetAccounts clears what the libraries read of the environment, so that
// neither a developer's key nor an address of theirs gets into a test.
func forgetAccounts() {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "OLLAMA_"} {
			if strings.HasPrefix(name, prefix) {
				_ = os.Unsetenv(name)
			}
		}
	}
}

// patience is how long anything may take that a test waits for.
const patience = 30 * time.Second

// process is a running command and the lines that it logged.
type process struct {
	cmd    *exec.Cmd
	exited chan error

	mu    sync.Mutex
	log   strings.Builder
	grown chan struct{} // closed when log has grown or is at its end, and replaced
	eof   bool
}

// start runs auditproxy with the given arguments until the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), exited: make(chan error, 1), grown: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.read(stderr)
		p.exited <- p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("auditproxy %q logged:\n%s", args, p.log.String())
		}
	})
	return p
}

func (p *process) read(r io.Reader) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		p.mu.Lock()
		p.log.WriteString(line)
		p.eof = err != nil
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// field waits for a log line with the field and returns its value.
func (p *process) field(t *testing.T, name string) string {
	t.Helper()
	re := regexp.MustCompile(`\b` + name + `=(\S+)`)
	over := time.After(patience)
	for {
		p.mu.Lock()
		log, grown, eof := p.log.String(), p.grown, p.eof
		p.mu.Unlock()
		if m := re.FindStringSubmatch(log); m != nil {
			return m[1]
		}
		if eof {
			t.Fatalf("%q ended without saying its %s:\n%s", p.cmd.Args[1:], name, log)
		}
		select {
		case <-grown:
		case <-over:
			t.Fatalf("%q never said its %s:\n%s", p.cmd.Args[1:], name, log)
		}
	}
}

// stop asks the process to end, waits until it has, and returns its exit status.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.exited:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatalf("%q does not end", p.cmd.Args[1:])
	}
	return p.cmd.ProcessState.ExitCode()
}
