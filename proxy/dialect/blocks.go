package dialect

// blocks numbers the blocks of a response in the order in which they appear,
// for APIs that name them by more than one number.
type blocks map[blockKey]int

// blockKey names a block inside one choice.
type blockKey struct {
	choice, item int
	kind         string // of the field that holds the text
	part         int
}

// of returns the number of a block.
func (b blocks) of(k blockKey) int {
	n, ok := b[k]
	switch {
	case ok:
	case len(b) < maxSaid:
		n = len(b)
		b[k] = n
	default:
		n = maxSaid // all further ones share one
	}
	return n
}
