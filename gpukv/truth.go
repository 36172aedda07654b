package gpukv

// Ground truth is who wrote what a request read. Every slot has a shadow record:
// the writer and the position of the token in the writer's sequence. It is kept
// beside the pool and follows every write, copy and clearing of the slot. The
// path that makes text never looks at it; it is read once a token has been
// chosen and the position that it was copied from is known.
//
// A writer is an entry of a ledger that both pools share, because pages travel
// between them with what they hold. An entry lives as long as its request or any
// slot that it wrote: it counts the slots and is reused when none is left, so
// the ledger never grows beyond the requests that left a trace in a pool.

// Read is one token of ground truth: a generated token that was copied from a
// slot that a request of another tenant wrote.
type Read struct {
	Step     int    // index of the generated token in the victim's answer
	Donor    uint64 // request that wrote the slot
	Tenant   uint32 // its tenant
	Position int    // of the copied token in the donor's sequence, prompt then answer
	Answer   bool   // the slot held a token of the donor's answer, not of its prompt
}

// nobody is the writer of slots that were never written.
const nobody = 0

type writer struct {
	id     uint64
	tenant uint32
	prompt int // tokens of its prompt; later positions are its answer
	holds  int // slots that it wrote, plus one while the request lives
}

type ledger struct {
	writers []writer
	unused  []uint32
}

func newLedger() *ledger { return &ledger{writers: make([]writer, 1)} }

// open enters a request and returns its number.
func (l *ledger) open(id uint64, tenant uint32, prompt int) uint32 {
	w := writer{id: id, tenant: tenant, prompt: prompt, holds: 1}
	if n := len(l.unused); n > 0 {
		who := l.unused[n-1]
		l.unused = l.unused[:n-1]
		l.writers[who] = w
		return who
	}
	l.writers = append(l.writers, w)
	return uint32(len(l.writers) - 1)
}

func (l *ledger) hold(who uint32, n int) {
	if who != nobody {
		l.writers[who].holds += n
	}
}

func (l *ledger) drop(who uint32, n int) {
	if who == nobody {
		return
	}
	w := &l.writers[who]
	if w.holds -= n; w.holds == 0 {
		*w = writer{}
		l.unused = append(l.unused, who)
	}
}

// shadow holds the records of one pool.
type shadow struct {
	writer   []uint32
	position []uint32
}

func newShadow(slots int) shadow {
	return shadow{writer: make([]uint32, slots), position: make([]uint32, slots)}
}

// set notes that who wrote n slots from at on, with positions from pos on.
func (s *shadow) set(l *ledger, at, n int, who uint32, pos int) {
	l.hold(who, n)
	s.runs(at, n, l.drop)
	for i := range n {
		s.writer[at+i], s.position[at+i] = who, uint32(pos+i)
	}
}

// copy takes over n records of another pool.
func (s *shadow) copy(l *ledger, at int, src *shadow, from, n int) {
	src.runs(from, n, l.hold)
	s.runs(at, n, l.drop)
	copy(s.writer[at:at+n], src.writer[from:from+n])
	copy(s.position[at:at+n], src.position[from:from+n])
}

// runs calls f for each stretch of n slots that has one writer.
func (s *shadow) runs(at, n int, f func(who uint32, n int)) {
	w := s.writer[at : at+n]
	for i := 0; i < len(w); {
		j := i + 1
		for j < len(w) && w[j] == w[i] {
			j++
		}
		f(w[i], j-i)
		i = j
	}
}

// truth collects the foreign reads of each request until it is forgotten.
type truth struct {
	ledger *ledger
	reads  map[uint64][]Read
}

// observe notes that a request of a tenant copied its answer's token number
// step from a slot of a pool.
func (t *truth) observe(id uint64, tenant uint32, step int, p *pool, slot int) {
	who := p.shadow.writer[slot]
	w := &t.ledger.writers[who]
	if who == nobody || w.tenant == tenant {
		return
	}
	pos := int(p.shadow.position[slot])
	t.reads[id] = append(t.reads[id], Read{
		Step:     step,
		Donor:    w.id,
		Tenant:   w.tenant,
		Position: pos,
		Answer:   pos >= w.prompt,
	})
}
