package main

import (
	"errors"
	"log/slog"

	"github.com/spf13/cobra"
)

func newServe() *cobra.Command {
	var f sidecarFlags
	cmd := &cobra.Command{
		Use:   "serve --upstream URL",
		Short: "Run the sidecar in front of an API",
		Long: `Runs the sidecar: a transparent, streaming reverse proxy that audits beside the
traffic. Findings go to standard output as NDJSON, logs to standard error.

Tenants are told apart by a header that a trusted hop sets (--tenant-header),
else by the account in the URL, else by a keyed hash of the API key.

Every flag can also be set in the environment: --tenant-header is
AUDITPROXY_TENANT_HEADER.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	f.register(cmd)
	return cmd
}

func (f *sidecarFlags) serve(cmd *cobra.Command) error {
	logger := newLogger(cmd.ErrOrStderr(), slog.LevelInfo)
	s, err := f.start(cmd.OutOrStdout(), logger)
	if err != nil {
		return err
	}
	logger.Info("listening", "traffic", s.data.url, "upstream", f.upstream, "admin", s.admin.url)
	select {
	case <-cmd.Context().Done():
		logger.Info("shutting down", "drain", f.drain)
	case err = <-s.failed():
	}
	return errors.Join(err, s.stop())
}
