// Package store holds the index of prints: which tenant introduced a passage,
// which tenants hold it rightly, and for how long it counts.
//
// The index keeps no text, only keyed prints. It has no clock: event times come
// with what is added, so that a replayed log fills it as the live traffic did.
//
// An [Index] is safe for concurrent use.
package store

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/auditproxy/auditproxy/fingerprint"
)

// Kind says how a text came into the index.
type Kind uint8

// The kinds of text.
const (
	Prompt   Kind = iota // text the tenant brought: system, user, tool
	History              // assistant turns that the client sent back with its request
	Response             // text an upstream gave in an answer, rightly as far as is known
)

// String returns "prompt", "history" or "response".
func (k Kind) String() string {
	switch k {
	case Prompt:
		return "prompt"
	case History:
		return "history"
	case Response:
		return "response"
	}
	return fmt.Sprintf("store.Kind(%d)", uint8(k))
}

// Owner is one arrival of text.
type Owner struct {
	Tenant   string
	Exchange string
	Kind     Kind
	At       time.Time // event time of the arrival; of a response, of its end
}

// Match is what the index knows of one print that was looked up.
type Match struct {
	Print   int    // index into the prints looked up
	Owner   Owner  // who introduced the text, first by event time
	Word    uint32 // position of the passage in the owner's text, in words
	Tenants int    // tenants that brought it, no more than Options.CommonTenants
	Own     bool   // the asking tenant brought it; or it was given it, and first
	Common  bool   // Options.CommonTenants tenants have brought it
	Said    bool   // an answer gave it to a tenant that had not brought it
}

// Options configure an [Index].
type Options struct {
	Bytes         int64         // budget in bytes; 0 means 256 MiB, the least is 1 MiB
	Horizon       time.Duration // how long text counts after it was last seen; 0 means 24 h
	Epochs        int           // the horizon and the budget are cut into this many epochs; 0 means 12
	CommonTenants int           // tenants that make text common; 0 means 3, else 2 or 3
	MaxTenants    int           // tenants known at once; 0 means 1,048,576
}

func (o *Options) check() error {
	switch {
	case o.Bytes != 0 && o.Bytes < 1<<20:
		return fmt.Errorf("bytes: %d, want at least %d", o.Bytes, 1<<20)
	case o.Horizon < 0:
		return fmt.Errorf("horizon: %v is negative", o.Horizon)
	case o.Epochs < 0 || o.Epochs > 1000:
		return fmt.Errorf("epochs: %d, want 1 to 1000", o.Epochs)
	case o.CommonTenants != 0 && o.CommonTenants != 2 && o.CommonTenants != 3:
		return fmt.Errorf("common tenants: %d, want 2 or 3", o.CommonTenants)
	case o.MaxTenants < 0:
		return fmt.Errorf("max tenants: %d is negative", o.MaxTenants)
	}
	set(&o.Bytes, 256<<20)
	set(&o.Horizon, 24*time.Hour)
	set(&o.Epochs, 12)
	set(&o.CommonTenants, 3)
	set(&o.MaxTenants, 1<<20)
	if o.Horizon/time.Duration(o.Epochs) <= 0 {
		return fmt.Errorf("horizon: %v is too short for %d epochs", o.Horizon, o.Epochs)
	}
	return nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Stats describes an index at one moment.
type Stats struct {
	Prints       int           // live prints
	Bytes        int64         // bytes held, at most Options.Bytes
	Tenants      int           // tenants known
	Owners       int           // arrivals that live prints name
	Horizon      time.Duration // from the start of the oldest live epoch to the newest event
	Expired      uint64        // prints dropped at the horizon
	EvictedEarly uint64        // prints dropped before the horizon, or never taken, for want of room
	Stale        uint64        // prints never taken because they arrived from beyond the horizon
}

// Index maps prints to their owners.
type Index struct {
	o      Options
	rules  rules
	epochs epochs
	owners owners
	names  tenants
	taints taints
	shards [shardCount]shard
	space  space

	rekeyed atomic.Pointer[rekey]
}

// New returns an empty index.
func New(o Options) (*Index, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	x := &Index{o: o, rules: rules{common: o.CommonTenants}}
	x.epochs.init(o.Horizon, o.Epochs, o.Bytes/bytesPerPrint/int64(o.Epochs))
	x.space.budget = o.Bytes
	x.owners.space = &x.space
	x.names.init(o.MaxTenants, &x.space)
	x.taints.init(&x.space)
	return x, nil
}

// Add enters the prints of one text. What it does to each is told in the
// essay on ownership (entry.go).
func (x *Index) Add(o Owner, prints []fingerprint.Print) {
	if len(prints) == 0 {
		return
	}
	epoch, ok := x.epochs.of(o.At)
	if !ok {
		x.epochs.stale.Add(uint64(len(prints)))
		return
	}
	tenant, ok := x.names.intern(o.Tenant)
	if !ok {
		x.epochs.early.Add(uint64(len(prints)))
		return
	}
	a := &arrival{Owner: o, tenant: tenant, epoch: epoch}
	for _, p := range prints {
		was := x.before(p)
		if x.tainted(tenant, p, was) {
			continue
		}
		x.move(p, was)
		x.shard(p.Hi).add(x, a, p)
	}
	if a.ref != 0 {
		x.owners.release(a.ref)
	}
}

// Lookup appends to dst a match for each print that the index knows, as the
// given tenant sees it, in the order of prints.
func (x *Index) Lookup(dst []Match, tenant string, prints []fingerprint.Print) []Match {
	asking := x.names.find(tenant)
	oldest := x.epochs.oldest.Load()
	for i, p := range prints {
		m, ok := x.match(p, asking, i, oldest)
		if !ok {
			if was := x.before(p); was.Hi != p.Hi {
				m, ok = x.match(was, asking, i, oldest)
			}
		}
		if ok {
			dst = append(dst, m)
		}
	}
	return dst
}

// match looks up one print.
func (x *Index) match(p fingerprint.Print, asking uint32, i int, oldest uint32) (m Match, ok bool) {
	s := x.shard(p.Hi)
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.find(p, oldest)
	if e == nil {
		return m, false
	}
	// The entry holds its owner's record for as long as the shard is locked.
	first := x.owners.at(e.owner)
	return x.rules.match(e, &first, asking, i, x.names.name(first.tenant)), true
}

// Taint says that prints leaked to tenant at the given event time. They never
// become its own, however it brings them, until they have aged out.
func (x *Index) Taint(tenant string, prints []fingerprint.Print, at time.Time) {
	epoch, ok := x.epochs.of(at)
	if !ok {
		return
	}
	id, ok := x.names.intern(tenant)
	if !ok {
		return
	}
	for _, p := range prints {
		if !x.taints.put(p.Hi, id, epoch, x.epochs.oldest.Load()) {
			x.epochs.early.Add(1)
		}
	}
}

// Tainted reports whether p leaked to tenant.
func (x *Index) Tainted(tenant string, p fingerprint.Print) bool {
	return x.tainted(x.names.find(tenant), p, x.before(p))
}

// tainted says whether a print, or the one that it was before a rotation,
// leaked to the tenant.
func (x *Index) tainted(tenant uint32, p, was fingerprint.Print) bool {
	return x.taints.has(p.Hi, tenant) || was.Hi != p.Hi && x.taints.has(was.Hi, tenant)
}

// Advance says that event time has reached now. Epochs that ended before the
// horizon expire whole: their prints are no longer found, and their space
// comes back little by little, one shard a call.
func (x *Index) Advance(now time.Time) {
	if x.epochs.advance(now) {
		x.taints.expire(x.epochs.oldest.Load())
	}
	x.forgetKey(now)
	if s, ok := x.epochs.sweep(); ok {
		x.shards[s].compact(x)
	}
}

// Stats returns the present figures.
func (x *Index) Stats() Stats {
	s := Stats{
		Bytes:        x.space.used.Load(),
		Tenants:      x.names.len(),
		Owners:       x.owners.len(),
		Expired:      x.epochs.expired.Load(),
		EvictedEarly: x.epochs.early.Load(),
		Stale:        x.epochs.stale.Load(),
	}
	s.Prints, s.Horizon = x.epochs.live()
	return s
}
