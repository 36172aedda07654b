package audit

import (
	"slices"
	"time"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// Coverage says how much of a response was audited. Every response has one.
type Coverage string

// The coverages.
const (
	Whole Coverage = "whole" // all text of prompt and response was read
	Part  Coverage = "part"  // some was; the reasons say what was not
	None  Coverage = "none"  // no text was read; the reasons say why
)

// Coverages lists all coverages.
func Coverages() []Coverage { return []Coverage{Whole, Part, None} }

// The reasons of the transport and of the audit itself, beside those of
// package dialect.
const (
	ReasonTooLarge       dialect.Reason = "too_large"       // the body is over the copy's limit
	ReasonClientGone     dialect.Reason = "client_gone"     // the client left before the end
	ReasonUpstreamBroken dialect.Reason = "upstream_broken" // the upstream broke off
	ReasonOverload       dialect.Reason = "overload"        // the audit could not keep up, or was full
	ReasonUpgrade        dialect.Reason = "upgrade"         // the connection became another protocol
	ReasonPanic          dialect.Reason = "panic"           // the audit of this exchange failed inside
	ReasonEncoding       dialect.Reason = "encoding"        // a content coding that is not read, or is damaged
)

// Reasons lists every reason that an engine can give.
func Reasons() []dialect.Reason {
	return append(dialect.Reasons(),
		ReasonTooLarge, ReasonClientGone, ReasonUpstreamBroken, ReasonOverload,
		ReasonUpgrade, ReasonPanic, ReasonEncoding)
}

// Summary is what came of one exchange.
type Summary struct {
	ID, Tenant   string
	Dialect      string // "" if none speaks on the path
	Model        string
	Start, End   time.Time // event times
	Status       int       // 0: no response came
	Coverage     Coverage  // of a response; "" if none came
	Reasons      []dialect.Reason
	PromptPrints int
	Words        int // words of response text
	Leaks        int // final findings, suspects left out
	// Control is the confidence of each match of the prompt with earlier
	// answers to other tenants, which are no findings: see detectors.Control.
	Control []detectors.Confidence
}

// reasons collects each reason once.
type reasons []dialect.Reason

func (r *reasons) add(all ...dialect.Reason) {
	for _, x := range all {
		if x != "" && !slices.Contains(*r, x) {
			*r = append(*r, x)
		}
	}
}
