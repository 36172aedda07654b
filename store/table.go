package store

import (
	"math/bits"
	"sync"

	"github.com/auditproxy/auditproxy/fingerprint"
)

// The table
//
// 256 shards, each an open-addressing table of 32-byte entries with linear
// probing, filled to three quarters at most: 43 bytes a print when full, 64
// just after it has grown. A print's place is its high half scaled to the
// table's size, so that a table may have any size and can end exactly at the
// budget. Shards are chosen by other bits.
//
// Nothing is deleted one by one. An entry of an expired epoch is not found, is
// overwritten by the next insertion that passes it, and leaves its slot when
// the shard is compacted: when it is full, or after an expiry, one shard for
// each event.

const (
	shardCount    = 256
	entryBytes    = 32
	bytesPerPrint = 48 // an entry at three quarters of load, and its share of the rest
	firstSlots    = 16
)

// shard is one part of the table.
type shard struct {
	mu      sync.RWMutex
	entries []entry
	used    int // slots that are not free, those of expired epochs included
}

func (x *Index) shard(hi uint64) *shard { return &x.shards[hi&(shardCount-1)] }

// slot returns the first slot to try.
func slot(hi uint64, n int) int {
	i, _ := bits.Mul64(hi, uint64(n))
	return int(i)
}

func full(used, slots int) bool { return 4*(used+1) > 3*slots }

func (e *entry) is(p fingerprint.Print) bool { return e.hi == p.Hi && e.lo == uint32(p.Lo) }

// find returns the entry of p if its epoch lives, or nil. The shard is locked.
func (s *shard) find(p fingerprint.Print, oldest uint32) *entry {
	n := len(s.entries)
	if n == 0 {
		return nil
	}
	for i := slot(p.Hi, n); ; i++ {
		if i == n {
			i = 0
		}
		e := &s.entries[i]
		if e.owner == 0 {
			return nil
		}
		if e.is(p) {
			if e.epoch < oldest {
				return nil
			}
			return e
		}
	}
}

// arrival is one call of Add. Its owner's record is made when the first entry
// needs it, and held by the arrival until the call is over.
type arrival struct {
	Owner
	tenant uint32
	epoch  uint32
	ref    uint32
}

func (a *arrival) record() record {
	return record{tenant: a.tenant, kind: a.Kind, at: a.At, exchange: a.Exchange}
}

// hold returns a reference to the arrival's record for one more entry; 0 when
// there is no room.
func (a *arrival) hold(x *Index) uint32 {
	if a.ref == 0 {
		if a.ref = x.owners.make(a.record()); a.ref == 0 {
			return 0
		}
	}
	x.owners.retain(a.ref)
	return a.ref
}

// add enters one print.
func (s *shard) add(x *Index, a *arrival, p fingerprint.Print) {
	for {
		s.mu.Lock()
		done := s.put(x, a, p)
		s.mu.Unlock()
		if done {
			return
		}
		if !x.makeRoom(a) {
			x.epochs.early.Add(1)
			return
		}
	}
}

// put enters one print; it reports false when the index has no room. The shard
// is locked.
func (s *shard) put(x *Index, a *arrival, p fingerprint.Print) bool {
	oldest := x.epochs.oldest.Load()
	if e := s.find(p, oldest); e != nil {
		return s.touch(x, e, a, p)
	}
	if full(s.used, len(s.entries)) && !s.grow(x) {
		return false
	}
	ref := a.hold(x)
	if ref == 0 {
		return false
	}
	e := s.place(p, oldest)
	if e.owner != 0 {
		x.owners.release(e.owner) // what was there has expired
	} else {
		s.used++
	}
	*e = entry{hi: p.Hi, lo: uint32(p.Lo), word: p.Word, owner: ref, epoch: a.epoch}
	x.epochs.count(a.epoch, 1)
	return true
}

// touch applies the arrival to an entry that is known.
func (s *shard) touch(x *Index, e *entry, a *arrival, p fingerprint.Print) bool {
	first, next := x.owners.at(e.owner), a.record()
	changed := *e
	owner, seen := x.rules.arrive(&changed, &first, &next)
	if owner {
		ref := a.hold(x)
		if ref == 0 {
			return false
		}
		x.owners.release(e.owner)
		changed.owner, changed.word = ref, p.Word
	}
	if seen && a.epoch > e.epoch {
		x.epochs.count(e.epoch, -1)
		x.epochs.count(a.epoch, 1)
		changed.epoch = a.epoch
	}
	*e = changed
	return true
}

// place returns the slot for a print that is not in the shard: the entry of an
// expired epoch on its way, which may be its own, or the free slot at the end.
func (s *shard) place(p fingerprint.Print, oldest uint32) *entry {
	n := len(s.entries)
	var expired *entry
	for i := slot(p.Hi, n); ; i++ {
		if i == n {
			i = 0
		}
		e := &s.entries[i]
		switch {
		case e.owner == 0 && expired != nil:
			return expired
		case e.owner == 0 || e.is(p):
			return e
		case e.epoch < oldest && expired == nil:
			expired = e
		}
	}
}

// grow makes room in a full shard: by dropping what has expired if that is an
// eighth or more, else with half as many slots again, if the budget has them.
func (s *shard) grow(x *Index) bool {
	s.drop(x)
	n := len(s.entries)
	if 8*s.used < 5*n {
		return true // a sixth of what was full has come free
	}
	more := rounded(n+max(firstSlots, n/2)) - n
	if !x.space.take(int64(more) * entryBytes) {
		return !full(s.used, n)
	}
	s.rebuild(n + more)
	return true
}

// rounded returns n or a little more slots: large tables take whole pages, so
// that what is counted is what the allocator hands out.
func rounded(n int) int {
	const page = 8192 / entryBytes
	if n <= 2*page {
		return n
	}
	return (n + page - 1) / page * page
}

// compact gives back what an expiry has freed.
func (s *shard) compact(x *Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(x)
	if n := len(s.entries); n > firstSlots && 4*s.used < n {
		smaller := rounded(max(firstSlots, 2*s.used))
		x.space.give(int64(n-smaller) * entryBytes)
		s.rebuild(smaller)
	}
}

// drop frees the slots of expired epochs.
func (s *shard) drop(x *Index) {
	oldest, dead := x.epochs.oldest.Load(), 0
	for i := range s.entries {
		if e := &s.entries[i]; e.owner != 0 && e.epoch < oldest {
			x.owners.release(e.owner)
			e.owner = 0
			dead++
		}
	}
	if dead > 0 {
		s.used -= dead
		s.rebuild(len(s.entries))
	}
}

// rebuild moves the live entries to a table of n slots.
func (s *shard) rebuild(n int) {
	old := s.entries
	s.entries = make([]entry, n)
	for i := range old {
		if old[i].owner == 0 {
			continue
		}
		j := slot(old[i].hi, n)
		for s.entries[j].owner != 0 {
			if j++; j == n {
				j = 0
			}
		}
		s.entries[j] = old[i]
	}
}

// makeRoom evicts the oldest epoch of the index and gives back its space. It
// reports false when only the epoch of the arrival is left.
func (x *Index) makeRoom(a *arrival) bool {
	if !x.epochs.evict(a.epoch) {
		return false
	}
	for i := range x.shards {
		x.shards[i].compact(x)
	}
	return true
}
