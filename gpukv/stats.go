package gpukv

// Stats are the gauges of a cluster. In the incident every one of them looks
// healthy, except for two that have to be compared: Window and
// Prefill.MaxTotalTokens.
type Stats struct {
	PageSize  int
	Window    int // advertised context window in tokens
	Prefill   RoleStats
	Decode    RoleStats
	Finished  uint64 // requests answered with 200
	Refused   uint64 // requests answered with an error
	Cancelled uint64 // requests whose client went away
}

// RoleStats are the gauges of one node.
type RoleStats struct {
	MaxTotalTokens  int    // tokens that the pool holds
	MaxReqInputLen  int    // prompts of this length and longer are refused
	Pages           int    // pages of the pool
	UsedPages       int    // pages that requests own
	Running         int    // prefill: requests of the last forward; decode: requests being decoded
	Queued          int    // requests in the other queues
	Wraps           uint64 // times the allocator has gone round and begun to reuse pages
	BytesZeroed     uint64 // KV bytes cleared by ZeroOnAlloc
	PromptTokens    uint64 // prompt tokens of finished requests, as this node counts them
	GeneratedTokens uint64 // tokens generated here
	Finished        uint64 // requests finished here
	Refused         uint64 // requests retired or rejected here
}

// role counts what a node has done.
type role struct {
	running   int // of the last forward
	slotBytes uint64
	prompts   uint64
	generated uint64
	finished  uint64
	refused   uint64
}

// Stats returns the gauges.
func (c *Cluster) Stats() Stats {
	p, d := &c.prefill, &c.decode
	queued := len(p.bootstrap) + len(p.waiting) + len(p.inflight)
	s := Stats{
		PageSize:  p.pool.size,
		Window:    c.window,
		Prefill:   p.stats(p.pool, p.limit, p.running, queued),
		Decode:    d.stats(d.pool, d.limit, len(d.batch), len(d.prealloc)+len(d.transfer)+len(d.waiting)),
		Finished:  c.served,
		Refused:   c.refusals,
		Cancelled: c.cancelled,
	}
	return s
}

func (r *role) stats(p *pool, limit, running, queued int) RoleStats {
	return RoleStats{
		MaxTotalTokens:  p.capacity(),
		MaxReqInputLen:  limit,
		Pages:           p.capacity() / p.size,
		UsedPages:       p.used(),
		Running:         running,
		Queued:          queued,
		Wraps:           p.wraps,
		BytesZeroed:     p.zeroedSlots * r.slotBytes,
		PromptTokens:    r.prompts,
		GeneratedTokens: r.generated,
		Finished:        r.finished,
		Refused:         r.refused,
	}
}
