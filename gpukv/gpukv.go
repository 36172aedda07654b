// Package gpukv is the deterministic core of the engine simulator: a prefill
// and a decode node with paged KV pools that are never cleared, the scheduler
// between them, the transfer that joins them, named faults and fixes, and the
// ground truth of who wrote what each request read.
//
// The package has no goroutine, clock, disk or network. A [Cluster] is driven
// by [Cluster.Step]; the same configuration, seed and sequence of calls give
// the same events. Text is a sequence of [Token], an index into a vocabulary
// that only the caller knows.
//
// Nothing here scripts a leak. A decode node attends to the slots that its page
// table names, a [Model] picks the next token from them, and a slot holds what
// was last written there. The shadow record of who wrote a slot lies apart from
// the slot and is read only after the token has been chosen.
//
// A Cluster is not safe for concurrent use.
package gpukv

// Token is an index into the caller's vocabulary. 0 is the placeholder that an
// aborted request is given and what a slot holds that was never written; it is
// never copied from a context.
type Token uint32
