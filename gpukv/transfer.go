package gpukv

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// The transfer moves the KV pages of a request from the prefill to the decode
// node. The two sides meet in a room. The decode node opens it by sending the
// indices of all pages that it has reserved; the prefill node writes its pages
// into them, chunk by chunk, and marks the last chunk by its own count; with the
// last chunk goes the metadata, which holds the first token.
//
// Each rank of a node moves its own share of every page and keeps its own state;
// the state of a side is the smallest of its ranks, so that a side has advanced
// when all ranks have, and has failed when one has. Ranks other than the first
// may lag by a few steps. Pages are stored once here, not once a rank: a write
// lands whole, and only the states lag.
//
// What is not checked is as true to the engine as what is. A write is refused
// only if it has more pages than were reserved for it. That it has fewer, or
// that the receiver expected another length, is nobody's business without
// [LengthCheck].
//
// A write is in flight from the step that sends it to the end of the next. A room
// that fails drops its writes; with [DeferredRelease] they land, and both nodes
// hold their pages until they have.

// kvPoll is the state of one rank, or of one side, of a transfer.
type kvPoll uint8

const (
	pollFailed kvPoll = iota
	pollBootstrapping
	pollWaitingForInput
	pollTransferring
	pollSuccess
)

// updateStatus returns the later of two states; failure wins.
func updateStatus(now, to kvPoll) kvPoll {
	if now == pollFailed || to == pollFailed {
		return pollFailed
	}
	return max(now, to)
}

// side is one end of a room.
type side struct {
	ranks  []kvPoll
	target kvPoll // what all ranks will come to
}

func newSide(ranks []kvPoll) side {
	for i := range ranks {
		ranks[i] = pollBootstrapping
	}
	return side{ranks: ranks, target: pollBootstrapping}
}

// poll returns the state that all ranks have reached.
func (s *side) poll() kvPoll { return slices.MinFunc(s.ranks, cmp.Compare) }

// update moves the first rank at once; the others follow.
func (s *side) update(to kvPoll) {
	s.target = updateStatus(s.target, to)
	s.ranks[0] = updateStatus(s.ranks[0], to)
}

// advance lets the ranks that lag catch up, each with a chance of three in
// four, and reports whether all have.
func (s *side) advance(rnd *rand.Rand) bool {
	settled := true
	for i, r := range s.ranks {
		if r == s.target {
			continue
		}
		if rnd.IntN(4) == 0 {
			settled = false
			continue
		}
		s.ranks[i] = updateStatus(r, s.target)
	}
	return settled
}

// metadata is what the last chunk brings.
type metadata struct {
	room      uint64
	committed int    // tokens that the prefill node has computed; 0 from an old one
	checksum  uint64 // of those tokens' slots; 0 without KVChecksum
	first     Token
}

// write is one chunk in flight.
type write struct {
	sent     uint64   // turn of the link in which it was sent
	src, dst []uint32 // pages, of equal number
	last     bool
	meta     metadata // with the last
}

// room is where the two halves of one request meet.
type room struct {
	id               uint64
	sender, receiver side
	reserved         []uint32 // pages of the decode node, once they are known
	sent             int      // pages written so far
	writes           []write  // in flight
	meta             metadata // valid once the receiver has succeeded
	keep             bool     // writes of a failed room land
	listed           bool     // the link has it on its list
}

func (r *room) failed() bool { return r.sender.target == pollFailed }

// link is the wire between the nodes.
type link struct {
	from, to *pool
	ranks    int
	keep     bool // of new rooms
	rnd      *rand.Rand
	rooms    []*room // with writes in flight or ranks that lag
	opened   uint64
	turn     uint64 // steps so far
}

func (l *link) room() *room {
	l.opened++
	ranks := make([]kvPoll, 2*l.ranks)
	return &room{
		id:       l.opened,
		sender:   newSide(ranks[:l.ranks:l.ranks]),
		receiver: newSide(ranks[l.ranks:]),
		keep:     l.keep,
	}
}

func (l *link) list(r *room) {
	if !r.listed {
		r.listed = true
		l.rooms = append(l.rooms, r)
	}
}

// reserve tells the sender which pages it may write.
func (l *link) reserve(r *room, pages []uint32) {
	r.reserved = pages
	l.update(r, pollWaitingForInput)
}

// send puts pages in flight. It fails the room if they are more than reserved.
func (l *link) send(r *room, pages []uint32, last bool, meta metadata) {
	dst := r.reserved[r.sent:]
	if len(dst) < len(pages) {
		l.fail(r)
		return
	}
	r.writes = append(r.writes, write{sent: l.turn, src: pages, dst: dst[:len(pages)], last: last, meta: meta})
	r.sent += len(pages)
	r.sender.update(pollTransferring)
	l.list(r)
}

// fail ends the transfer for both sides.
func (l *link) fail(r *room) {
	l.update(r, pollFailed)
	if !r.keep {
		r.writes = nil
	}
}

func (l *link) update(r *room, to kvPoll) {
	r.sender.update(to)
	r.receiver.update(to)
	l.list(r)
}

// step lands what is in flight and lets lagging ranks catch up.
func (l *link) step() {
	busy := l.rooms[:0]
	for _, r := range l.rooms {
		for len(r.writes) > 0 && r.writes[0].sent < l.turn {
			l.land(r, r.writes[0])
			r.writes = pop(r.writes)
		}
		a, b := r.sender.advance(l.rnd), r.receiver.advance(l.rnd)
		if r.listed = !a || !b || len(r.writes) > 0; r.listed {
			busy = append(busy, r)
		}
	}
	clear(l.rooms[len(busy):])
	l.rooms = busy
	l.turn++
}

func (l *link) land(r *room, w write) {
	for i, page := range w.dst {
		l.to.copyPage(page, l.from, w.src[i])
	}
	to := pollTransferring
	if w.last {
		to, r.meta = pollSuccess, w.meta
	}
	r.sender.update(to)
	r.receiver.update(to)
}
