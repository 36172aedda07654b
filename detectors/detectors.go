// Package detectors decides, from the words of a response and the index of
// what all tenants sent, whether the response holds somebody else's text.
//
// A detector is a stateless factory that is safe for concurrent use. For each
// choice of each response it makes a [Scan]: a state machine of one goroutine,
// without I/O, clock or callbacks, that is fed the choice's text as it streams
// and appends what it finds. What a scan says while the text streams is early
// news; what it says at the end is the verdict. The verdict depends on the
// whole text and on the index at the end of the response alone, so it is the
// same live and from a log, however the stream was cut.
package detectors

import (
	"time"

	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/store"
)

// Delta is one piece of a choice's text with what the fingerprinter read in
// it. Deltas of one channel and block arrive in order; those of different
// channels and blocks interleave.
type Delta struct {
	Channel string
	Block   int                 // content block or tool call; passages never span two
	Offset  int                 // of Text, in bytes of the channel's block
	Text    string              // "" at the end of a block, which may complete prints
	Prints  []fingerprint.Print // completed by Text, with offsets in the channel's block
	Words   int                 // completed in the channel's block, with those of Text
}

// Index is the part of the index that a scan reads.
type Index interface {
	// Lookup appends a match for each print that the index knows, as tenant
	// sees it.
	Lookup(dst []store.Match, tenant string, prints []fingerprint.Print) []store.Match
}

// Exchange is what a scan knows of the exchange it belongs to.
type Exchange struct {
	ID     string
	Tenant string
	Index  Index
	// Own says whether the request itself holds the print, as text that the
	// tenant brought or was rightly given.
	Own func(fingerprint.Print) bool
}

// Scan is the state of one detector on one choice of one response.
type Scan interface {
	// Append reads d and appends findings that became certain, or surer, with
	// it. Their state is Open.
	Append(dst []Finding, d Delta) []Finding
	// Finish ends the choice at the given event time and appends the verdict:
	// every finding of the choice as Final, and as Withdrawn what Append had
	// said and the end does not bear out. It is called once.
	Finish(dst []Finding, end time.Time) []Finding
}

// Detector makes scans.
type Detector interface {
	Name() string
	// Scan starts a scan of one choice.
	Scan(x *Exchange, choice int) Scan
}

// All returns every detector, in the order in which they report.
func All() []Detector {
	return []Detector{Passages{}}
}
