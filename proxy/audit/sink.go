package audit

import "github.com/auditproxy/auditproxy/detectors"

// Sink takes what the engine finds. Its methods are called from many
// goroutines at once, beside the traffic, and should not block for long.
type Sink interface {
	// Finding takes a finding each time it changes: when it opens, when it
	// grows surer, and at its end. news is true where this finding has reached
	// this confidence for the first time.
	Finding(f detectors.Finding, news bool)
	// Exchange takes the summary of an exchange after its last finding.
	Exchange(s Summary)
}
