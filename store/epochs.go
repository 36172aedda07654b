package store

import (
	"sync"
	"sync/atomic"
	"time"
)

// Epochs
//
// Event time is cut into epochs, and every entry names the epoch in which its
// text was last seen. An epoch ends when its share of the horizon is over, or
// when its share of the budget is used, so that no flood of one epoch can push
// out all of its past. Epochs are numbered from 1 and expire whole: raising
// the number of the oldest is all it takes. A text is found for at least the
// horizon after it was last seen, and for one epoch more at the most.
//
// When the budget is spent the oldest epoch goes before its time, and its
// prints are counted as evicted early: while that count grows, the guarantee
// of detection does not hold for the whole horizon.

// epoch is one span of event time.
type epoch struct {
	start  time.Time
	prints int64
}

// epochs is the list of live epochs.
type epochs struct {
	horizon time.Duration
	span    time.Duration
	share   int64 // prints of an epoch
	most    int   // epochs after which no more end for their share

	oldest atomic.Uint32 // number of the first of list

	mu      sync.Mutex
	list    []epoch
	now     time.Time // newest event
	pending int       // shards still to be compacted

	expired, early, stale atomic.Uint64
}

func (s *epochs) init(horizon time.Duration, n int, share int64) {
	s.horizon, s.span, s.share = horizon, horizon/time.Duration(n), max(1, share)
	s.most = 4 * n
	s.oldest.Store(1)
}

// of returns the number of the epoch that holds an event time, and false for
// one that has expired.
func (s *epochs) of(at time.Time) (uint32, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.list) - 1
	if last < 0 || s.over(last, at) {
		s.list = append(s.list, epoch{start: at})
		last++
	}
	if at.After(s.now) {
		s.now = at
	}
	i := last
	for i > 0 && at.Before(s.list[i].start) {
		i--
	}
	if i == 0 && at.Before(s.now.Add(-s.horizon-s.span)) {
		return 0, false
	}
	return s.oldest.Load() + uint32(i), true
}

// over reports whether the last epoch has ended at the given time. Epochs that
// end for their share of the budget are bounded in number, as text that is sent
// again and again moves on through them without taking room.
func (s *epochs) over(last int, at time.Time) bool {
	e := &s.list[last]
	full := e.prints >= s.share && !at.Before(s.now) && len(s.list) < s.most
	return full || !at.Before(e.start.Add(s.span))
}

// count adds to the prints of an epoch.
func (s *epochs) count(number uint32, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := int(number) - int(s.oldest.Load()); i >= 0 && i < len(s.list) {
		s.list[i].prints += n
	}
}

// advance drops the epochs that ended before the horizon, and reports whether
// there were any. An epoch ends where the next one starts; the last one has
// not ended.
func (s *epochs) advance(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.After(s.now) {
		s.now = now
	}
	limit := s.now.Add(-s.horizon)
	n := 0
	for n < len(s.list) && !s.ends(n).After(limit) {
		s.expired.Add(uint64(s.list[n].prints))
		n++
	}
	s.forget(n)
	return n > 0
}

func (s *epochs) ends(i int) time.Time {
	end := s.list[i].start.Add(s.span)
	if i+1 < len(s.list) && s.list[i+1].start.Before(end) {
		return s.list[i+1].start
	}
	return end
}

// evict drops the oldest epoch for want of room, unless it is the given one.
func (s *epochs) evict(but uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || s.oldest.Load() >= but {
		return false
	}
	s.early.Add(uint64(s.list[0].prints))
	s.forget(1)
	return true
}

func (s *epochs) forget(n int) {
	if n == 0 {
		return
	}
	s.list = append(s.list[:0:0], s.list[n:]...)
	s.oldest.Add(uint32(n))
	s.pending = shardCount
}

// sweep names the next shard to be compacted after an expiry.
func (s *epochs) sweep() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == 0 {
		return 0, false
	}
	s.pending--
	return s.pending, true
}

// live returns the number of live prints, and the time that they reach back.
func (s *epochs) live() (prints int, reach time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.list {
		prints += int(e.prints)
	}
	if len(s.list) > 0 {
		reach = s.now.Sub(s.list[0].start)
	}
	return prints, reach
}

// save returns the newest event, the number of the oldest epoch and the start of
// each.
func (s *epochs) save() (now time.Time, oldest uint32, starts []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.list {
		starts = append(starts, e.start)
	}
	return s.now, s.oldest.Load(), starts
}
