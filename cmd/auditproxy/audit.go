package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/store"
)

// auditFlags are the flags of every command that audits.
type auditFlags struct {
	keyFile    string
	indexBytes int64
	horizon    time.Duration
	common     int
}

func (a *auditFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.keyFile, "key-file", "", "`FILE` with the fingerprint key; made with mode 0600 if missing; none for a key that lives as long as the process; AUDITPROXY_KEY may hold the key instead (default: auditproxy/key in $XDG_STATE_HOME or ~/.local/state)")
	f.Int64Var(&a.indexBytes, "index-bytes", 1<<30, "memory budget of the index, in `BYTES`")
	f.DurationVar(&a.horizon, "horizon", 24*time.Hour, "how long a prompt can be a donor")
	f.IntVar(&a.common, "common-tenants", 3, "how many tenants must have sent a text to make it common property: 2 or 3")
}

// auditor is what every command that audits is built on.
type auditor struct {
	ring   fingerprint.Keyring
	scheme *fingerprint.Scheme
	index  *store.Index
	engine *audit.Engine
}

func (a *auditFlags) build(logger *slog.Logger, sinks func(*store.Index) ([]audit.Sink, error)) (*auditor, error) {
	ring, err := loadKey(a.keyFile, logger)
	if err != nil {
		return nil, err
	}
	index, err := store.New(store.Options{Bytes: a.indexBytes, Horizon: a.horizon, CommonTenants: a.common})
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	all, err := sinks(index)
	if err != nil {
		return nil, err
	}
	scheme := ring.Scheme()
	engine, err := audit.New(scheme, index, audit.Options{Sinks: all})
	if err != nil {
		return nil, err
	}
	return &auditor{ring, scheme, index, engine}, nil
}
