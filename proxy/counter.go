package proxy

import (
	"context"
	"sync"
)

// counter counts what runs, up to a limit, and lets one wait for none. Its
// zero value counts zero; it is safe for concurrent use.
type counter struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed at zero; nil while nobody waits
}

// add counts one more unless limit are counted already.
func (c *counter) add(limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n >= limit {
		return false
	}
	c.n++
	return true
}

func (c *counter) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// wait returns when nothing is counted or ctx has ended, and says how many are
// left.
func (c *counter) wait(ctx context.Context) (left int) {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return 0
	}
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.mu.Unlock()
	select {
	case <-none:
		return 0
	case <-ctx.Done():
		return c.count()
	}
}
