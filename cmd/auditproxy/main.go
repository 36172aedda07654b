// Command auditproxy is a sidecar in front of multi-tenant LLM APIs. It flags
// answers that hold text of other tenants and names whose text it is.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version is set by the linker.
var version = "dev"

// The exit statuses.
const (
	exitLeak    = 1 // leaks were found, or a demo's score is not perfect
	exitTrouble = 2 // anything else
)

// status is an error that chooses the exit status; a nil error prints nothing.
type status struct {
	code int
	err  error
}

func (s *status) Error() string {
	if s.err == nil {
		return fmt.Sprintf("exit status %d", s.code)
	}
	return s.err.Error()
}

func (s *status) Unwrap() error { return s.err }

func main() {
	// net/http tells the standard logger of surplus answers, with their bytes.
	log.SetOutput(io.Discard)
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	cmd := newRoot()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	s := &status{code: exitTrouble, err: err}
	errors.As(err, &s)
	if s.err != nil {
		fmt.Fprintln(os.Stderr, "auditproxy:", err)
	}
	return s.code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "auditproxy",
		Short: "Flags LLM answers that hold other tenants' text",
		Long: `auditproxy stands in front of an LLM API that many tenants share. It
fingerprints what each tenant sends, and flags answers that hold text of
another tenant, naming whose it is.`,
		Version:           version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return environment(cmd.Flags()) },
	}
	root.AddCommand(newDemo(), newServe(), newReplay(), newSim(), newDialects(), newKey())
	return root
}

// newLogger logs to w, from the given level on.
func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// environment gives flags that were not set the values of AUDITPROXY_*: the
// flag --tenant-header is AUDITPROXY_TENANT_HEADER.
func environment(flags *pflag.FlagSet) error {
	var all error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "AUDITPROXY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", name, err))
		}
	})
	return all
}
