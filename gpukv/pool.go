package gpukv

import "slices"

// A pool is the KV memory of one node: slots in pages of equal size, allocated
// once and zeroed once.
//
// Nothing clears a page afterwards, neither when it is given back nor when it is
// handed out again, unless [ZeroOnAlloc] says so. What a page holds is what its
// last owners wrote, and only the length that a request commits to keeps its
// attention away from the rest. Everything that goes wrong in this package goes
// wrong through that.
//
// Pages are handed out in ascending order from the front of a free list. Pages
// given back collect in a release list; it is sorted and merged into the free
// list only when the free list runs short. So a page is not reused before the
// allocator has gone round once, and afterwards the lowest free pages go first:
// a large request gets long stretches of neighbouring pages, in the order in
// which their last owners wrote them.
//
// Admission is by promise: a request is let in when the pages it may ever need
// can be set aside, and takes them one by one. Requests then wait in a queue and
// never in the middle of their work. Real engines promise less and retract
// running requests when they are wrong; that is not modelled.
//
// A slot is a token and a position (8 bytes) with a shadow record (8 bytes) that
// lies in arrays of its own: 16 bytes a slot, 44 MB for the two pools of the
// incident. Tokens lie in one plain array, so that attention over pages that are
// neighbours is a scan of contiguous memory.
type pool struct {
	size      int // slots in a page
	tokens    []Token
	positions []uint32
	shadow    shadow
	ledger    *ledger

	free     []uint32 // ascending
	spare    []uint32 // memory for the next merge
	released []uint32 // in the order in which they came back
	promised int      // pages set aside and not yet taken

	zero        bool // clear pages when they are taken
	wraps       uint64
	zeroedSlots uint64
}

func newPool(size, pages int, zero bool, l *ledger) *pool {
	p := &pool{
		size:      size,
		tokens:    make([]Token, size*pages),
		positions: make([]uint32, size*pages),
		shadow:    newShadow(size * pages),
		ledger:    l,
		free:      make([]uint32, pages),
		zero:      zero,
	}
	for i := range p.free {
		p.free[i] = uint32(i)
	}
	return p
}

// capacity returns the slots of the pool.
func (p *pool) capacity() int { return len(p.tokens) }

// pages returns how many pages n tokens take.
func (p *pool) pages(n int) int { return (n + p.size - 1) / p.size }

// used returns how many pages are owned by requests.
func (p *pool) used() int {
	return len(p.tokens)/p.size - len(p.free) - len(p.released)
}

// promise sets n pages aside, or reports that there aren't as many.
func (p *pool) promise(n int) bool {
	if len(p.free)+len(p.released)-p.promised < n {
		return false
	}
	p.promised += n
	return true
}

// forgo gives back a promise of n pages.
func (p *pool) forgo(n int) { p.promised -= n }

// take appends n promised pages to dst.
func (p *pool) take(dst []uint32, n int) []uint32 {
	if len(p.free) < n {
		p.merge()
	}
	got := p.free[:n]
	p.free = p.free[n:]
	p.promised -= n
	if p.zero {
		for _, page := range got {
			p.clear(page)
		}
	}
	return append(dst, got...)
}

// give takes pages back.
func (p *pool) give(pages []uint32) { p.released = append(p.released, pages...) }

// merge sorts the release list into the free list, which is sorted already.
func (p *pool) merge() {
	slices.Sort(p.released)
	out := p.spare[:0]
	a, b := p.free, p.released
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	out = append(append(out, a...), b...)
	p.spare, p.free, p.released = p.free[:0], out, p.released[:0]
	p.wraps++
}

func (p *pool) clear(page uint32) {
	lo := int(page) * p.size
	hi := lo + p.size
	clear(p.tokens[lo:hi])
	clear(p.positions[lo:hi])
	p.shadow.set(p.ledger, lo, p.size, nobody, 0)
	p.zeroedSlots += uint64(p.size)
}

// write stores tokens at the positions from pos on, in the slots that the page
// table names, and notes who wrote them.
func (p *pool) write(table []uint32, pos int, tokens []Token, who uint32) {
	for len(tokens) > 0 {
		at := int(table[pos/p.size])*p.size + pos%p.size
		n := min(p.size-pos%p.size, len(tokens))
		copy(p.tokens[at:at+n], tokens)
		for i := range n {
			p.positions[at+i] = uint32(pos + i)
		}
		p.shadow.set(p.ledger, at, n, who, pos)
		tokens, pos = tokens[n:], pos+n
	}
}

// copyPage copies a whole page of another pool, as a remote write does: with
// whatever stands behind the tokens that were meant.
func (p *pool) copyPage(to uint32, src *pool, from uint32) {
	d, s := int(to)*p.size, int(from)*p.size
	copy(p.tokens[d:d+p.size], src.tokens[s:s+p.size])
	copy(p.positions[d:d+p.size], src.positions[s:s+p.size])
	p.shadow.copy(p.ledger, d, &src.shadow, s, p.size)
}

// checksum folds the first n positions of a page table.
func (p *pool) checksum(table []uint32, n int) uint64 {
	const prime = 1099511628211 // of FNV-1a, over whole slots instead of bytes
	sum := uint64(14695981039346656037)
	for i := 0; i < n; i += p.size {
		at := int(table[i/p.size]) * p.size
		for j := at; j < at+min(p.size, n-i); j++ {
			sum = (sum ^ (uint64(p.tokens[j])<<32 | uint64(p.positions[j]))) * prime
		}
	}
	return sum
}
