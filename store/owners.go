package store

import (
	"sync"
	"sync/atomic"
)

// space accounts for the bytes of the index.
type space struct {
	budget int64
	used   atomic.Int64
}

// take claims bytes, unless the budget lacks them.
func (s *space) take(n int64) bool {
	if s.used.Add(n) > s.budget {
		s.used.Add(-n)
		return false
	}
	return true
}

func (s *space) give(n int64) { s.used.Add(-n) }

// owners keeps the records of arrivals that entries name. A record lives while
// an entry, or the arrival itself, holds a reference to it; then its place is
// used again. References count from 1.
type owners struct {
	space *space

	mu     sync.RWMutex
	chunks []*chunk
	free   []uint32
	n      int
}

// chunk holds records where they do not move.
type chunk [chunkRecords]struct {
	record
	refs atomic.Int64
}

const (
	chunkRecords = 256
	chunkBytes   = chunkRecords * (64 + 4) // and the list of free places
)

func (s *owners) place(ref uint32) (*record, *atomic.Int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := &s.chunks[(ref-1)/chunkRecords][(ref-1)%chunkRecords]
	return &p.record, &p.refs
}

// make stores a record and returns the first reference to it, or 0 when there
// is no room.
func (s *owners) make(r record) uint32 {
	if !s.space.take(int64(len(r.exchange))) {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 && !s.extend() {
		s.space.give(int64(len(r.exchange)))
		return 0
	}
	ref := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.n++
	p := &s.chunks[(ref-1)/chunkRecords][(ref-1)%chunkRecords]
	p.record = r
	p.refs.Store(1)
	return ref
}

func (s *owners) extend() bool {
	if !s.space.take(chunkBytes) {
		return false
	}
	s.chunks = append(s.chunks, new(chunk))
	last := uint32(len(s.chunks)) * chunkRecords
	for i := range uint32(chunkRecords) {
		s.free = append(s.free, last-i)
	}
	return true
}

// at returns the record of a reference that the caller, or an entry under the
// caller's lock, holds.
func (s *owners) at(ref uint32) record {
	r, _ := s.place(ref)
	return *r
}

// retain takes one more reference, beside one that is held.
func (s *owners) retain(ref uint32) {
	_, refs := s.place(ref)
	refs.Add(1)
}

// hold takes n more references.
func (s *owners) hold(ref uint32, n int64) {
	_, refs := s.place(ref)
	refs.Add(n)
}

// release gives a reference back.
func (s *owners) release(ref uint32) {
	r, refs := s.place(ref)
	if refs.Add(-1) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.space.give(int64(len(r.exchange)))
	*r = record{}
	s.free = append(s.free, ref)
	s.n--
}

func (s *owners) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.n
}
