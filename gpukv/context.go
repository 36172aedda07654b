package gpukv

import "math/rand/v2"

// Context is what attention sees when the next token of one request is chosen:
// the slots that the page table names, whoever wrote them, and what the model
// has done before. Slots can be read and not written. A Context is valid during
// the call of [Model.Next] that it is passed to.
type Context struct {
	pool   *pool
	table  []uint32
	n      int
	prompt int
	copied int
	run    int
	gap    int
	tail   [8]Token
	rnd    *rand.Rand
}

// Len returns the number of attended positions: the prompt and the tokens
// generated so far.
func (c *Context) Len() int { return c.n }

// Prompt returns how many of the positions the node takes for the prompt.
func (c *Context) Prompt() int { return c.prompt }

// At returns the token at position i, which must be below Len.
func (c *Context) At(i int) Token { return c.pool.tokens[c.slot(i)] }

// Block returns the tokens from position i on that lie side by side in memory:
// at least one, at most up to Len. i must be below Len; the caller must not
// change the tokens.
func (c *Context) Block(i int) []Token {
	size := c.pool.size
	page := i / size
	end := page + 1
	for end < len(c.table) && c.table[end] == c.table[end-1]+1 {
		end++
	}
	at := c.slot(i)
	return c.pool.tokens[at : at+min(end*size, c.n)-i]
}

// Tail returns the last attended tokens, oldest first: eight, or fewer when the
// context is shorter. They are valid until the next call of Tail.
func (c *Context) Tail() []Token {
	k := min(len(c.tail), c.n)
	for i := range k {
		c.tail[i] = c.At(c.n - k + i)
	}
	return c.tail[:k]
}

// Copied returns the position that the last token was copied from, or -1.
func (c *Context) Copied() int { return c.copied }

// Run returns how many tokens in a row, up to the last, were copied from
// positions in a row.
func (c *Context) Run() int { return c.run }

// Gap returns how many tokens were generated since one was last copied, or since
// the answer began.
func (c *Context) Gap() int { return c.gap }

// Rand returns the request's own random numbers.
func (c *Context) Rand() *rand.Rand { return c.rnd }

func (c *Context) slot(i int) int {
	page := i / c.pool.size
	return int(c.table[page])*c.pool.size + i - page*c.pool.size
}

func (c *Context) bind(p *pool, table []uint32, n, prompt int) {
	c.pool, c.table, c.n, c.prompt = p, table, n, prompt
}

// note records what the last token was copied from, or -1.
func (c *Context) note(from int) {
	switch {
	case from < 0:
		c.run = 0
		c.gap++
	case c.copied >= 0 && from == c.copied+1:
		c.run++
	default:
		c.run, c.gap = 1, 0
	}
	c.copied = from
}
