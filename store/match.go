package store

// Foreign reports whether only another tenant's prompt accounts for the text:
// it is not the asking tenant's own, not common, and not known to be said.
func (m *Match) Foreign() bool {
	return m.Owner.Kind == Prompt && !m.Own && !m.Common && !m.Said
}

// Foretold reports whether only an answer to another tenant accounts for the
// text: it is not the asking tenant's own, not common, and no other answer is
// known to hold it.
func (m *Match) Foretold() bool {
	return m.Owner.Kind == Response && !m.Own && !m.Common && !m.Said
}
