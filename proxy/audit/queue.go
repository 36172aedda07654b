package audit

// queue remembers which prompts belong to answers that will be fetched later,
// by another request that names an id: batch APIs answer a request with an id
// at first. It is bounded; what it has forgotten is audited like the answer to
// a prompt that was not read. It changes in events alone, under the engine's
// lock.
type queue struct {
	own    map[queued][]uint64 // what the request rightly holds
	order  []queued            // as put
	prints int                 // in all of own
}

type queued struct{ tenant, id string }

// The bounds of the queue: answers waited for, and their prompts' prints.
const (
	maxQueued       = 4096
	maxQueuedPrints = 4 << 20
)

// put remembers what the request holds that was promised an answer under id.
func (q *queue) put(tenant, id string, own []uint64) {
	if id == "" {
		return
	}
	if q.own == nil {
		q.own = map[queued][]uint64{}
	}
	k := queued{tenant, id}
	if old, ok := q.own[k]; ok {
		q.prints -= len(old)
	} else {
		q.order = append(q.order, k)
	}
	q.own[k] = own
	q.prints += len(own)
	for len(q.order) > maxQueued || q.prints > maxQueuedPrints {
		q.prints -= len(q.own[q.order[0]])
		delete(q.own, q.order[0])
		q.order = q.order[1:]
	}
}

// get returns what the request holds whose answer is fetched under id. It may
// be fetched again, so it stays.
func (q *queue) get(tenant, id string) []uint64 {
	return q.own[queued{tenant, id}]
}
