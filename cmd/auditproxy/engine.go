package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/auditproxy/auditproxy/gpukv"
	"github.com/auditproxy/auditproxy/sim"
)

// engineFlags configure a simulated engine.
type engineFlags struct {
	faults, fixes []string
	divisor       int
	seed          uint64

	prefillRate, decodeRate float64
}

func (f *engineFlags) register(cmd *cobra.Command, faults ...string) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.faults, "fault", faults, "`FAULT` of the engine, may be repeated: "+list(gpukv.Faults())+", none")
	fl.StringSliceVar(&f.fixes, "fix", nil, "`FIX` that the engine has, may be repeated: "+list(gpukv.Fixes()))
	fl.IntVar(&f.divisor, "divisor", 64, "window and pools are divided by `N`; 1 is full size")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of everything random")
	fl.Float64Var(&f.prefillRate, "prefill-rate", 0, "`TOKENS` a second that the prefill node reads; 0 is as fast as it goes")
	fl.Float64Var(&f.decodeRate, "decode-rate", 0, "`TOKENS` a second of one answer; 0 is as fast as it goes")
}

func list[T ~string](all []T) string {
	var names []string
	for _, x := range all {
		names = append(names, string(x))
	}
	return strings.Join(names, ", ")
}

func (f *engineFlags) options() (sim.Options, error) {
	o := sim.Options{Divisor: f.divisor, PrefillRate: f.prefillRate, DecodeRate: f.decodeRate}
	o.Cluster.Seed = f.seed
	for _, name := range f.faults {
		if name == "none" {
			continue
		}
		fault, err := gpukv.ParseFault(name)
		if err != nil {
			return o, fmt.Errorf("--fault: %w", err)
		}
		o.Cluster.Faults = append(o.Cluster.Faults, fault)
	}
	for _, name := range f.fixes {
		fix, err := gpukv.ParseFix(name)
		if err != nil {
			return o, fmt.Errorf("--fix: %w", err)
		}
		o.Cluster.Fixes = append(o.Cluster.Fixes, fix)
	}
	return o, nil
}

// leaky reports whether the faults are on and no fix is.
func (f *engineFlags) leaky() bool {
	return len(f.fixes) == 0 && slices.Contains(f.faults, string(gpukv.StalePages))
}

func newSim() *cobra.Command {
	var f engineFlags
	var address string
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run the simulated engine alone",
		Long: `Runs a simulated engine with prefill and decode nodes, whose KV pages are never
cleared. It speaks the APIs of Workers AI, OpenAI, Anthropic, Gemini, Ollama and
SGLang, and tells at /sim/labels which answers held whose text.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := newLogger(cmd.ErrOrStderr(), slog.LevelInfo)
			e, srv, err := f.start(address, logger)
			if err != nil {
				return err
			}
			defer e.Close()
			s := e.Stats()
			logger.Info("listening", "url", srv.url, "model", e.Model(), "window", s.Window,
				"prefill_pool", s.Prefill.MaxTotalTokens, "decode_pool", s.Decode.MaxTotalTokens,
				"faults", strings.Join(f.faults, ","), "fixes", strings.Join(f.fixes, ","), "seed", f.seed)
			select {
			case <-cmd.Context().Done():
			case err = <-srv.done:
			}
			return errors.Join(err, srv.Close())
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&address, "listen", "127.0.0.1:8000", "`ADDRESS` to listen on")
	return cmd
}

// start runs the engine on an address.
func (f *engineFlags) start(address string, logger *slog.Logger) (*sim.Engine, *server, error) {
	o, err := f.options()
	if err != nil {
		return nil, nil, err
	}
	e, err := sim.New(o)
	if err != nil {
		return nil, nil, err
	}
	srv, err := listen("--listen", address, e.Handler(), logger)
	if err != nil {
		e.Close()
		return nil, nil, err
	}
	return e, srv, nil
}
