package store

import (
	"sync"
	"sync/atomic"
)

// taints remembers which print leaked to which tenant. Leaks are rare, so a
// map does.
type taints struct {
	space *space
	n     atomic.Int64 // read without the lock: mostly there are none

	mu  sync.RWMutex
	all map[taint]uint32 // to the epoch of the last leak
}

type taint struct {
	hi     uint64
	tenant uint32
}

const taintBytes = 64

func (s *taints) init(sp *space) { s.space, s.all = sp, map[taint]uint32{} }

func (s *taints) has(hi uint64, tenant uint32) bool {
	if s.n.Load() == 0 || tenant == 0 {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.all[taint{hi, tenant}]
	return ok
}

// put remembers a leak; it reports false when there is no room.
func (s *taints) put(hi uint64, tenant, epoch, oldest uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := taint{hi, tenant}
	if last, ok := s.all[t]; ok {
		s.all[t] = max(last, epoch)
		return true
	}
	if !s.space.take(taintBytes) {
		if s.drop(oldest); !s.space.take(taintBytes) {
			return false
		}
	}
	s.all[t] = epoch
	s.n.Store(int64(len(s.all)))
	return true
}

// expire forgets the leaks of expired epochs.
func (s *taints) expire(oldest uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(oldest)
}

func (s *taints) drop(oldest uint32) {
	for t, epoch := range s.all {
		if epoch < oldest {
			delete(s.all, t)
			s.space.give(taintBytes)
		}
	}
	s.n.Store(int64(len(s.all)))
}

// datedTaint is a taint and the epoch of the last leak.
type datedTaint struct {
	taint
	epoch uint32
}

// list returns all taints.
func (s *taints) list() []datedTaint {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]datedTaint, 0, len(s.all))
	for t, epoch := range s.all {
		all = append(all, datedTaint{t, epoch})
	}
	return all
}
