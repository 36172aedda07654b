package gpukv

import "fmt"

// The decode node: DecodePreallocQueue, DecodeTransferQueue, waiting queue,
// prebuilt batch, running.
//
// A request waits in the prealloc queue until the pool can hold its prompt and
// its answer; then pages for the whole prompt are reserved, as long as the node
// itself takes it to be, and their indices go to the prefill node. In the
// transfer queue it waits for the pages to be written. After that the node
// commits to its own length: it compares the room and nothing else, takes over
// the first token, and runs.
//
// A step of a running request writes its last token into the next slot and
// attends to every position of its page table. If fewer pages came than were
// reserved, those that were not written hold what their last owners left, and
// are attended to like all others. The places where [LengthCheck],
// [LengthCheckFailOpen] and [KVChecksum] stop that are in verify.
//
// Unlike the prefill node, this one calls updateFinishState: a request that is
// too long for it too is ended with 400 when its batch is prebuilt.
type decode struct {
	*core
	role
	pool     *pool
	limit    int // maxReqInputLen
	prealloc []*exchange
	transfer []*exchange
	waiting  []*exchange
	batch    []*exchange // running
	held     []*exchange // dropped, with writes in flight
}

// accept is the scheduler's intake.
func (n *decode) accept(x *exchange) {
	r := &x.d
	if len(r.input) >= n.limit {
		r.setFinishWithAbort(overPool(len(r.input), n.limit))
		if !n.faulty[StalePages] {
			r.updateFinishState()
			n.reject(x, r.finishedReason)
			return
		}
	}
	r.maxNew = min(r.maxNew, maxReqLen(n.window, n.pool.capacity())-len(r.input)-1)
	n.prealloc = append(n.prealloc, x)
}

// step does one iteration, from the last queue to the first, so that a request
// advances by one stage at most.
func (n *decode) step() {
	n.held = sweep(n.held, n.holds)
	n.forward()
	n.prebuild()
	n.pollTransfer()
	n.preallocate()
}

// preallocate reserves pages, in order of arrival: who doesn't fit holds up
// those behind.
func (n *decode) preallocate() {
	full := false
	n.prealloc = sweep(n.prealloc, func(x *exchange) bool {
		r := &x.d
		if r.finished() || x.room.failed() {
			n.drop(x)
			return false
		}
		need := n.pool.pages(len(r.input) + r.maxNew)
		if full || !n.pool.promise(need) {
			full = true
			return true
		}
		r.owed = need
		n.grow(r, n.pool.pages(len(r.input)))
		n.link.reserve(x.room, r.pages)
		n.transfer = append(n.transfer, x)
		return false
	})
}

// grow takes k more pages of those promised.
func (n *decode) grow(r *req, k int) {
	r.pages = n.pool.take(r.pages, k)
	r.owed -= k
}

func (n *decode) pollTransfer() {
	n.transfer = sweep(n.transfer, func(x *exchange) bool {
		switch poll := x.room.receiver.poll(); {
		case x.d.finished(), x.answered:
			n.drop(x)
		case poll == pollFailed:
			n.reject(x, x.recorded(internalError(fmt.Sprintf("Decode transfer failed for request %d.", x.id))))
		case poll < pollSuccess:
			return true
		default:
			if f := n.verify(x); f != nil {
				n.reject(x, x.recorded(f))
			} else {
				n.waiting = append(n.waiting, x)
			}
		}
		return false
	})
}

// verify looks at what arrived. Without a fix it compares the room alone.
func (n *decode) verify(x *exchange) *finish {
	meta, want := &x.room.meta, len(x.d.input)
	if meta.room != x.room.id {
		return internalError(fmt.Sprintf("Metadata of room %d arrived in room %d.", meta.room, x.room.id))
	}
	if strict := n.fixed[LengthCheck]; strict || n.fixed[LengthCheckFailOpen] {
		if got := meta.committed; got != want && (strict || got != 0) {
			return internalError(fmt.Sprintf("Prefill committed %d tokens of request %d, decode expects %d.", got, x.id, want))
		}
	}
	if n.fixed[KVChecksum] && meta.checksum != n.pool.checksum(x.d.pages, want) {
		return internalError(fmt.Sprintf("KV checksum of request %d differs.", x.id))
	}
	return nil
}

// prebuild moves requests into the running batch and yields the first token of
// each.
func (n *decode) prebuild() {
	n.waiting = sweep(n.waiting, func(x *exchange) bool {
		if x.d.finished() {
			n.drop(x)
			return false
		}
		return true
	})
	for len(n.batch) < n.maxRunning && len(n.waiting) > 0 {
		x := n.waiting[0]
		n.waiting = pop(n.waiting)
		x.d.updateFinishState()
		if x.d.finished() {
			n.reject(x, x.d.finishedReason)
			continue
		}
		n.batch = append(n.batch, x)
		n.emit(x, x.room.meta.first)
	}
	n.batch = sweep(n.batch, n.runs)
}

// forward generates one token for each running request.
func (n *decode) forward() {
	for _, x := range n.batch {
		if r := &x.d; !r.finished() {
			pos := len(r.input) + len(r.output) - 1
			if pos == len(r.pages)*n.pool.size {
				n.grow(r, 1)
			}
			n.pool.write(r.pages, pos, r.output[len(r.output)-1:], x.who)
			x.context.bind(n.pool, r.pages, pos+1, len(r.input))
			tok := n.next(x, len(r.output))
			n.generated++
			n.emit(x, tok)
		}
	}
	n.batch = sweep(n.batch, n.runs)
}

// emit adds a token to the answer and yields it, unless it ends the answer.
func (n *decode) emit(x *exchange, tok Token) {
	r := &x.d
	r.output = append(r.output, tok)
	if r.stop == 0 || tok != r.stop {
		n.events = append(n.events, Event{Request: x.id, Kind: Generated, Token: tok})
	}
	r.updateFinishState()
}

// runs says whether a request of the batch goes on, and ends it if not.
func (n *decode) runs(x *exchange) bool {
	r := &x.d
	if !r.finished() {
		return true
	}
	if !x.answered {
		n.finished++
		n.prompts += uint64(len(r.input))
		n.answer(x, Finished, r.finishedReason, len(r.input), len(r.output))
	}
	n.drop(x)
	return false
}

// reject ends a request here, for a reason of this node or of the other.
func (n *decode) reject(x *exchange, f *finish) {
	n.refused++
	n.link.fail(x.room)
	n.answer(x, Refused, f, 0, 0)
	n.drop(x)
}

// drop lets go of a request.
func (n *decode) drop(x *exchange) {
	if n.holds(x) {
		n.held = append(n.held, x)
	}
}

// holds frees the pages of a request and returns false, unless a write to them
// is in flight.
func (n *decode) holds(x *exchange) bool {
	if len(x.room.writes) > 0 {
		return true
	}
	n.free(x)
	return false
}

func (n *decode) free(x *exchange) {
	x.d.release(n.pool)
	n.leave(x)
}
