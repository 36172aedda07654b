package gpukv

// The prefill node: PrefillBootstrapQueue, waiting queue, forward, inflight
// queue.
//
// A request waits in the bootstrap queue until the decode node has reserved its
// pages, and in the waiting queue until the pool can hold its prompt. A forward
// computes at most a chunk of tokens, over as many requests as share it; a long
// prompt goes through several forwards, and each sends the pages that it
// completes. The last one yields the first token of the answer from what the
// node's own pages hold. In the inflight queue a request waits for its pages to
// be written; then they are given back.
//
// An aborted request passes all of it as a prompt of one token: the capacity
// check of the bootstrap queue sees length 1, the forward computes one slot, one
// page is sent (whole, with what else stands in it), and the request ends as
// "length" with no token and one prompt token, which is a success in every
// gauge. The places where [DoorCheck] and [RetireAfterForward] stop it are
// admit and result.
type prefill struct {
	*core
	role
	pool      *pool
	limit     int // maxReqInputLen
	bootstrap []*exchange
	waiting   []*exchange
	chunked   *exchange // its prompt is computed in part
	inflight  []*exchange
	held      []*exchange // dropped, with writes in flight
}

// accept is the scheduler's intake.
func (n *prefill) accept(x *exchange) {
	if len(x.p.input) >= n.limit {
		x.p.setFinishWithAbort(overPool(len(x.p.input), n.limit))
		if !n.faulty[StalePages] {
			n.retire(x)
			return
		}
	}
	n.admit(x)
}

// admit is the door of the bootstrap queue. Its capacity check is the engine's
// own and would hold back what the pool can't; but the prompts it is meant for
// come as a placeholder.
func (n *prefill) admit(x *exchange) {
	if len(x.p.input) > n.pool.capacity() {
		x.p.setFinishWithAbort(overPool(len(x.p.input), n.limit))
		n.retire(x)
		return
	}
	if n.fixed[DoorCheck] && x.p.aborted() {
		n.retire(x)
		return
	}
	n.bootstrap = append(n.bootstrap, x)
}

// step does one iteration, from the last queue to the first, so that a request
// advances by one stage at most.
func (n *prefill) step() {
	n.held = sweep(n.held, n.holds)
	n.pollInflight()
	n.forward()
	n.popBootstrapped()
}

func (n *prefill) popBootstrapped() {
	n.bootstrap = sweep(n.bootstrap, func(x *exchange) bool {
		switch {
		case ended(x):
			n.drop(x)
		case x.room.sender.poll() >= pollWaitingForInput:
			n.waiting = append(n.waiting, x)
		default:
			return true
		}
		return false
	})
}

// forward computes one chunk of tokens.
func (n *prefill) forward() {
	n.waiting = sweep(n.waiting, func(x *exchange) bool {
		if ended(x) {
			n.drop(x)
			return false
		}
		return true
	})
	if n.chunked != nil && ended(n.chunked) {
		n.drop(n.chunked)
		n.chunked = nil
	}
	n.running = 0
	budget := n.chunk
	for n.chunked != nil || n.start(budget) {
		x := n.chunked
		left := len(x.p.input) - x.p.filled
		k := min(left, budget)
		if k < left {
			k -= k % n.pool.size
		}
		if k == 0 {
			return
		}
		budget -= k
		n.running++
		n.compute(x, k)
		if k < left {
			n.send(x, metadata{}, false)
			continue
		}
		n.chunked = nil
		n.result(x)
	}
}

// start takes up the next waiting request, if the budget does for a page of it
// and the pool for all of it.
func (n *prefill) start(budget int) bool {
	if len(n.waiting) == 0 {
		return false
	}
	x := n.waiting[0]
	need := n.pool.pages(len(x.p.input))
	if budget < min(n.pool.size, len(x.p.input)) || !n.pool.promise(need) {
		return false
	}
	x.p.owed = need
	n.waiting = pop(n.waiting)
	n.chunked = x
	return true
}

// compute fills the slots of the next k tokens of the prompt.
func (n *prefill) compute(x *exchange, k int) {
	r := &x.p
	take := n.pool.pages(r.filled+k) - len(r.pages)
	r.pages = n.pool.take(r.pages, take)
	r.owed -= take
	n.pool.write(r.pages, r.filled, r.input[r.filled:r.filled+k], x.who)
	r.filled += k
}

// result handles what the last forward of a prompt yields. It does not call
// updateFinishState, and that is the defect.
func (n *prefill) result(x *exchange) {
	r := &x.p
	x.context.bind(n.pool, r.pages, len(r.input), len(r.input))
	first := n.next(x, 0)
	r.output = append(r.output, first)
	n.generated++
	if n.fixed[RetireAfterForward] && r.aborted() {
		n.retire(x)
		return
	}
	meta := metadata{room: x.room.id, committed: len(r.input), first: first}
	if n.old {
		meta.committed = 0
	}
	if n.fixed[KVChecksum] {
		meta.checksum = n.pool.checksum(r.pages, len(r.input))
	}
	n.send(x, meta, true)
	n.inflight = append(n.inflight, x)
}

// send writes the pages that the node has filled and not sent.
func (n *prefill) send(x *exchange, meta metadata, last bool) {
	n.link.send(x.room, x.p.pages[x.room.sent:n.pool.pages(x.p.filled)], last, meta)
}

func (n *prefill) pollInflight() {
	n.inflight = sweep(n.inflight, func(x *exchange) bool {
		switch {
		case ended(x):
			n.drop(x)
		case x.room.sender.poll() == pollSuccess:
			x.p.finishedReason = finishLength
			n.finished++
			n.prompts += uint64(len(x.p.input))
			n.free(x)
		default:
			return true
		}
		return false
	})
}

// retire ends an aborted request here and answers it.
func (n *prefill) retire(x *exchange) {
	x.p.updateFinishState()
	n.refused++
	n.link.fail(x.room)
	n.answer(x, Refused, x.p.finishedReason, 0, 0)
	n.drop(x)
}

// drop lets go of a request that has not ended well.
func (n *prefill) drop(x *exchange) {
	if n.holds(x) {
		n.held = append(n.held, x)
	}
}

// holds frees the pages of a request and returns false, unless a write from
// them is in flight.
func (n *prefill) holds(x *exchange) bool {
	if len(x.room.writes) > 0 {
		return true
	}
	n.free(x)
	return false
}

func (n *prefill) free(x *exchange) {
	x.p.release(n.pool)
	n.leave(x)
}
