package detectors

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/auditproxy/auditproxy/fingerprint"
)

// Kind says what was found.
type Kind string

// The kinds of findings. A leak names its donor; what names none is a suspect.
const (
	PromptLeak Kind = "prompt_leak" // text first seen in another tenant's prompt
	Suspect    Kind = "suspect"     // something is odd, and nobody's text is proven; the reason says what
)

// Reason says what is odd in a suspect.
type Reason string

// The reasons of suspects.
const (
	ShortRun Reason = "short_run" // a passage of another tenant's prompt, too short for a leak
)

// Confidence says how sure a finding is.
type Confidence string

// The confidences, surest first.
const (
	Confirmed Confidence = "confirmed" // two independent passages of one donor
	Probable  Confidence = "probable"  // one run of one donor
	Possible  Confidence = "possible"  // a suspect's: less than a leak
)

// Severity says how urgent a finding is.
type Severity string

// The severities, most urgent first.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Info     Severity = "info"
)

// State says where a finding stands in the life of its exchange.
type State string

// The states. The last line of a finding is final or withdrawn; exchanges that
// are replayed from a log are over, so they give final lines only.
const (
	Open      State = "open"      // seen while the response streams; a last line follows
	Final     State = "final"     // the verdict at the end of the response
	Withdrawn State = "withdrawn" // before the response ended the text became common, or the recipient's own
)

// Finding is one verdict. It never holds text of a prompt or a response.
type Finding struct {
	ID         string     `json:"id"` // the same for the same exchange, donor and place, live or replayed
	Time       time.Time  `json:"time"`
	State      State      `json:"state"`
	Kind       Kind       `json:"kind"`
	Confidence Confidence `json:"confidence"`
	Severity   Severity   `json:"severity"`
	Reason     Reason     `json:"reason,omitempty"` // of a suspect
	Recipient  Recipient  `json:"recipient"`
	Donor      Donor      `json:"donor"`
	Evidence   Evidence   `json:"evidence"`
	Model      string     `json:"model,omitempty"`
	Instance   string     `json:"instance,omitempty"`
	Detector   string     `json:"detector"`

	// Prints are the passages that matched. The audit keeps them from ever
	// becoming the recipient's own text.
	Prints []fingerprint.Print `json:"-"`
}

// Recipient is where the text came out.
type Recipient struct {
	Tenant   string `json:"tenant"`
	User     string `json:"user,omitempty"`
	Exchange string `json:"exchange"`
	Choice   int    `json:"choice"`
	Channel  string `json:"channel"`
	Block    int    `json:"block,omitempty"` // content block or tool call
	Offset   int    `json:"offset"`          // of the longest run, in bytes of the channel's decoded text
	Length   int    `json:"length"`          // in bytes
}

// Donor is whose text it is.
type Donor struct {
	Tenant   string `json:"tenant"`
	Exchange string `json:"exchange"` // that most of the passages came from; it may change until the finding is final
	Part     string `json:"part"`     // "prompt"
}

// Evidence counts what the finding rests on. Words are counted from the
// passages that matched, so each count is a lower bound: a run of n words
// shows as n-18 words at the least.
type Evidence struct {
	RunWords     int `json:"run_words"`     // words of the longest unbroken run
	CoveredWords int `json:"covered_words"` // words of all runs together
	Passages     int `json:"passages"`      // prints that matched
	// PromptUnseen says that a part of the recipient's own prompt could not be
	// read, so that the text may be its own. The finding is then probable at
	// most.
	PromptUnseen bool `json:"prompt_unseen,omitempty"`
}

// Leak reports whether the finding is a leak, and no suspect.
func (f *Finding) Leak() bool { return f.Kind != Suspect }

// SetConfidence sets the confidence and the severity that goes with it.
func (f *Finding) SetConfidence(c Confidence) {
	f.Confidence = c
	switch c {
	case Confirmed:
		f.Severity = Critical
	case Probable:
		f.Severity = High
	default:
		f.Severity = Info
	}
}

// setID derives the id from what the finding is about. The same finding has
// the same id in every update, and when its exchange is replayed.
func (f *Finding) setID() {
	h := sha256.New()
	for _, s := range []string{string(f.Kind), string(f.Reason), f.Detector, f.Recipient.Exchange, f.Recipient.Channel, f.Donor.Tenant, f.Donor.Part} {
		fmt.Fprintf(h, "%d:%s,", len(s), s)
	}
	fmt.Fprintf(h, "%d,%d", f.Recipient.Choice, f.Recipient.Block)
	f.ID = "f-" + strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:10]))
}
