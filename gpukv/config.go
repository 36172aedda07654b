package gpukv

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Fault names a defect of the engine.
type Fault string

// The faults.
const (
	// StalePages is the incident: a prompt that the prefill node can't hold is
	// marked as aborted, yet goes on through every queue as one placeholder
	// token, while the decode node reserves pages for its true length and
	// attends to all of them.
	StalePages Fault = "stale_pages"
)

// Fix names a defence of the engine. Each works at one place of the state
// machine, whichever fault is present.
type Fix string

// The fixes.
const (
	// RetireAfterForward retires an aborted request on the prefill node after
	// its forward pass, before anything is cached or sent.
	RetireAfterForward Fix = "retire_after_forward"
	// DoorCheck retires an aborted request at the bootstrap queue of the
	// prefill node.
	DoorCheck Fix = "door_check"
	// LengthCheck makes the decode node reject a transfer whose committed
	// length is not the one it expects. A prefill node that reports none is
	// rejected too: see [Config.OldPrefill].
	LengthCheck Fix = "length_check"
	// LengthCheckFailOpen is LengthCheck, except that a reported length of 0
	// passes.
	LengthCheckFailOpen Fix = "length_check_fail_open"
	// KVChecksum makes the decode node compare a checksum of what was sent with
	// one of the pages that it is about to attend to.
	KVChecksum Fix = "kv_checksum"
	// DeferredRelease holds the pages of a cancelled request until no write to
	// or from them is in flight. It does nothing against stale pages.
	DeferredRelease Fix = "deferred_release"
	// ZeroOnAlloc clears pages when they are allocated. The request is served,
	// and finds nothing.
	ZeroOnAlloc Fix = "zero_on_alloc"
)

// Faults returns every fault, in the order of the documentation.
func Faults() []Fault { return []Fault{StalePages} }

// Fixes returns every fix, in the order of the documentation.
func Fixes() []Fix {
	return []Fix{
		RetireAfterForward, DoorCheck, LengthCheck, LengthCheckFailOpen,
		KVChecksum, DeferredRelease, ZeroOnAlloc,
	}
}

// ParseFault returns the fault of that name. The error lists the names.
func ParseFault(name string) (Fault, error) {
	if f := Fault(name); slices.Contains(Faults(), f) {
		return f, nil
	}
	return "", fmt.Errorf("fault %q is unknown: want one of %s", name, list(Faults()))
}

// ParseFix returns the fix of that name; length_check_strict is another name of
// [LengthCheck]. The error lists the names.
func ParseFix(name string) (Fix, error) {
	if name == "length_check_strict" {
		return LengthCheck, nil
	}
	if f := Fix(name); slices.Contains(Fixes(), f) {
		return f, nil
	}
	return "", fmt.Errorf("fix %q is unknown: want one of %s", name, list(Fixes()))
}

func list[S ~string](names []S) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(n))
	}
	return b.String()
}

// Config describes a cluster of one prefill and one decode node. Its zero value
// is the incident's hardware with a correct engine.
type Config struct {
	PageSize      int     // tokens in a page; 0 means 64
	Window        int     // advertised context window in tokens; 0 means 1,048,576
	PrefillTokens int     // KV pool of the prefill node in tokens; 0 means 681,280; rounded down to whole pages
	DecodeTokens  int     // KV pool of the decode node in tokens; 0 means 2,097,152; rounded down to whole pages
	MaxRunning    int     // requests decoded at once; 0 means 32
	ChunkTokens   int     // chunked prefill: tokens of one forward; 0 means 8,192; rounded up to whole pages
	Ranks         int     // tensor-parallel ranks that must agree before a transfer advances; 0 means 4, at most 64
	SlotBytes     int     // bytes of KV that a token takes, for accounting alone; 0 means 44,928 (576 in each of 78 layers)
	OldPrefill    bool    // the prefill node predates the length check and reports a committed length of 0
	Faults        []Fault // none means a correct engine
	Fixes         []Fix   // on top of what a correct engine does; none of them is needed without a fault
	Seed          uint64  // of everything drawn at random; 0 is a seed like any other
}

// complete returns the configuration with its defaults filled in.
func (c Config) complete() (Config, error) {
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{
		{"page size", &c.PageSize, 64},
		{"window", &c.Window, 1 << 20},
		{"prefill tokens", &c.PrefillTokens, 681_280},
		{"decode tokens", &c.DecodeTokens, 1 << 21},
		{"max running", &c.MaxRunning, 32},
		{"chunk tokens", &c.ChunkTokens, 8192},
		{"ranks", &c.Ranks, 4},
		{"slot bytes", &c.SlotBytes, 44_928},
	} {
		if *f.value < 0 {
			return c, fmt.Errorf("%s: %d is negative", f.name, *f.value)
		}
		*f.value = or(*f.value, f.def)
	}
	for _, f := range c.Faults {
		if !slices.Contains(Faults(), f) {
			return c, fmt.Errorf("fault %q is unknown: want one of %s", f, list(Faults()))
		}
	}
	for _, f := range c.Fixes {
		if !slices.Contains(Fixes(), f) {
			return c, fmt.Errorf("fix %q is unknown: want one of %s", f, list(Fixes()))
		}
	}
	if c.Ranks > 64 {
		return c, fmt.Errorf("ranks: %d is more than 64", c.Ranks)
	}
	if c.Window > math.MaxInt32 || c.PrefillTokens > math.MaxInt32 || c.DecodeTokens > math.MaxInt32 {
		return c, fmt.Errorf("window and pools: more than %d tokens", math.MaxInt32)
	}
	for _, tokens := range []int{c.PrefillTokens, c.DecodeTokens} {
		if whole := tokens - tokens%c.PageSize; maxReqInputLen(c.Window, whole) < 2 {
			return c, fmt.Errorf("a pool of %d tokens in pages of %d, with a window of %d: no room for a prompt",
				tokens, c.PageSize, c.Window)
		}
	}
	c.ChunkTokens += (c.PageSize - c.ChunkTokens%c.PageSize) % c.PageSize
	return c, nil
}
