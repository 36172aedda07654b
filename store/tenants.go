package store

import "sync"

// tenants numbers the names of tenants, from 1. Names are few and stay.
type tenants struct {
	space *space
	max   int

	mu    sync.RWMutex
	ids   map[string]uint32
	names []string
}

// tenantBytes is what a tenant takes beside its name.
const tenantBytes = 80

func (s *tenants) init(limit int, sp *space) {
	s.max, s.space, s.ids = limit, sp, map[string]uint32{}
}

// intern returns the number of a name, and false when there is no room for a
// new one.
func (s *tenants) intern(name string) (uint32, bool) {
	if id := s.find(name); id != 0 {
		return id, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.ids[name]; id != 0 {
		return id, true
	}
	if len(s.names) >= s.max || !s.space.take(tenantBytes+int64(len(name))) {
		return 0, false
	}
	s.names = append(s.names, name)
	id := uint32(len(s.names))
	s.ids[name] = id
	return id, true
}

// find returns the number of a name, or 0.
func (s *tenants) find(name string) uint32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ids[name]
}

// name returns the name of a number.
func (s *tenants) name(id uint32) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names[id-1]
}

func (s *tenants) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.names)
}

// from returns the names after the first n.
func (s *tenants) from(n int) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names[n:len(s.names):len(s.names)]
}
