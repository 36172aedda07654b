package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the command, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "auditproxy-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "auditproxy")
	build := exec.Command("go", "build", "-o", binary, "../cmd/auditproxy")
	build.Stderr = os.Stderr
	code := 1
	if err := build.Run(); err == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is a running command.
type process struct {
	cmd    *exec.Cmd
	stdout *tail
	stderr *tail
	exited chan error
}

// tail keeps what a process wrote, and lets a test wait for it.
type tail struct {
	mu   sync.Mutex
	cond *sync.Cond
	buf  bytes.Buffer
	eof  bool
}

func newTail() *tail {
	t := &tail{}
	t.cond = sync.NewCond(&t.mu)
	return t
}

func (t *tail) read(r io.Reader) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		t.mu.Lock()
		t.buf.Write(line)
		t.eof = err != nil
		t.cond.Broadcast()
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// find waits until the output matches, and returns the submatches; nil if the
// output ends, or the time is over, before it does.
func (t *tail) find(re *regexp.Regexp, patience time.Duration) [][]byte {
	over := false
	timer := time.AfterFunc(patience, func() {
		t.mu.Lock()
		over = true
		t.cond.Broadcast()
		t.mu.Unlock()
	})
	defer timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if m := re.FindSubmatch(t.buf.Bytes()); m != nil {
			return m
		}
		if t.eof || over {
			return nil
		}
		t.cond.Wait()
	}
}

// start runs auditproxy with the given arguments until the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), stdout: newTail(), stderr: newTail(), exited: make(chan error, 1)}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	readers.Go(func() { p.stdout.read(stdout) })
	readers.Go(func() { p.stderr.read(stderr) })
	go func() {
		readers.Wait()
		p.exited <- p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("auditproxy %q wrote to stderr:\n%s", args, p.stderr)
		}
	})
	return p
}

// field waits for a log line with the field and returns its value.
func (p *process) field(t *testing.T, name string) string {
	t.Helper()
	m := p.stderr.find(regexp.MustCompile(`\b`+name+`=(\S+)`), 20*time.Second)
	if m == nil {
		t.Fatalf("%q never said its %s:\n%s", p.cmd.Args[1:], name, p.stderr)
	}
	return string(m[1])
}

// stop asks the process to end, and returns its exit status.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case err := <-p.exited:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(60 * time.Second):
		t.Fatalf("%q does not end", p.cmd.Args[1:])
		return -1
	}
}

// run runs a command to its end.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}
