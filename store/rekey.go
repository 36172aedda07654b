package store

import (
	"time"

	"github.com/auditproxy/auditproxy/fingerprint"
)

// rekey is a rotation of keys whose old prints still count.
type rekey struct {
	old   func(fingerprint.Print) fingerprint.Print
	until time.Time
}

// Rekey says that prints are made under a new key from now on: the print of a
// text that is p now was old(p) before. Until the given event time, which
// should be a horizon away, what was indexed under the old key goes on
// counting. When its text comes again its entry moves to the new print, so that
// no text ever has two owners. A lookup that falls between the two steps of
// such a move may miss the one print, once.
func (x *Index) Rekey(old func(fingerprint.Print) fingerprint.Print, until time.Time) {
	x.rekeyed.Store(&rekey{old: old, until: until})
}

// before returns the print that p had before the last rotation; it is p itself
// if there was none that still counts.
func (x *Index) before(p fingerprint.Print) fingerprint.Print {
	if r := x.rekeyed.Load(); r != nil {
		return r.old(p)
	}
	return p
}

// forgetKey drops the old key when its time is over.
func (x *Index) forgetKey(now time.Time) {
	if r := x.rekeyed.Load(); r != nil && now.After(r.until) {
		x.rekeyed.CompareAndSwap(r, nil)
	}
}

// move brings the entry of p's old print under p, if there is one and p has
// none.
func (x *Index) move(p, was fingerprint.Print) {
	if was.Hi == p.Hi {
		return
	}
	oldest := x.epochs.oldest.Load()
	s := x.shard(p.Hi)
	s.mu.RLock()
	known := s.find(p, oldest) != nil
	s.mu.RUnlock()
	if known {
		return
	}
	e, ok := x.shard(was.Hi).cut(x, was, oldest)
	if !ok {
		return
	}
	e.hi, e.lo = p.Hi, uint32(p.Lo)
	s.paste(x, e, oldest)
}

// cut takes the live entry of p out of the shard, with its reference to the
// owner. What is left in its place counts as expired.
func (s *shard) cut(x *Index, p fingerprint.Print, oldest uint32) (entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(p, oldest)
	if e == nil {
		return entry{}, false
	}
	out := *e
	x.owners.retain(e.owner)
	x.epochs.count(e.epoch, -1)
	e.epoch = 0
	return out, true
}

// paste puts an entry and its reference into the shard. It is dropped if
// another arrival was faster, and if the index has no room for it.
func (s *shard) paste(x *Index, e entry, oldest uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := fingerprint.Print{Hi: e.hi, Lo: uint64(e.lo)}
	if s.find(p, oldest) != nil {
		x.owners.release(e.owner)
		return
	}
	if full(s.used, len(s.entries)) && !s.grow(x) {
		x.owners.release(e.owner)
		x.epochs.early.Add(1)
		return
	}
	at := s.place(p, oldest)
	if at.owner != 0 {
		x.owners.release(at.owner)
	} else {
		s.used++
	}
	*at = e
	x.epochs.count(e.epoch, 1)
}
