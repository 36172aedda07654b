package store

import "time"

// Ownership
//
// Each print that is known has one entry, and the entry says who introduced
// the text (the owner), which tenants brought it in prompts (the bringers),
// and whether a model says it by itself.
//
//   - The owner is the first arrival by event time, whatever the order of the
//     calls. Only an owner of kind Prompt can be a donor.
//   - A tenant that brings text that another introduced becomes a bringer: the
//     text is its own too. Once Options.CommonTenants tenants have brought it,
//     it is common, and nobody's evidence.
//   - An answer that gives text to a tenant that had not brought it marks the
//     text as said: the model knows it by itself. Text that leaked must not
//     be added as an answer; see Index.Taint. A bringer's own answer changes
//     nothing, since answers quote their prompts.
//   - Assistant turns that a client sends back introduce text that nobody knew,
//     and change nothing otherwise: they neither count as bringing nor make
//     foreign text own.
//   - What leaked to a tenant is not taken from that tenant at all. A leak can
//     not launder itself into anybody's own text, and does not make it common.
//
// An entry has room for two bringers: the owner and one more. With a third the
// text is common, and it no longer matters who they are. Text that was said or
// that an answer or a history introduced is nobody's evidence either; if its
// bringers do not fit, it becomes common.
//
// The functions here are pure. Where entries live is told in table.go.

// entry is one print. It holds no pointers; 32 bytes.
type entry struct {
	hi     uint64 // with lo, 96 of the 128 bits that identify the print
	lo     uint32
	word   uint32 // of the passage in the owner's text
	owner  uint32 // reference to the owner's record; 0: the slot is free
	second uint32 // tenant that also brought the text; 0: none
	epoch  uint32 // in which the text was last seen
	flags  flags
}

type flags uint8

const (
	common flags = 1 << iota // bringers have reached the rules' number
	said                     // an answer gave it to one who had not brought it
)

// record is an owner as the entries see it.
type record struct {
	tenant   uint32
	kind     Kind
	at       time.Time
	exchange string
}

// rules are the options that ownership depends on.
type rules struct {
	common int // bringers that make text common: 2 or 3
}

// brought reports whether the tenant is one of the bringers that e names.
func (e *entry) brought(first *record, tenant uint32) bool {
	return e.second == tenant || first.kind == Prompt && first.tenant == tenant
}

// bringers counts the bringers that e names.
func (e *entry) bringers(first *record) int {
	n := 0
	if first.kind == Prompt {
		n++
	}
	if e.second != 0 {
		n++
	}
	return n
}

// bring makes the tenant a bringer.
func (r rules) bring(e *entry, first *record, tenant uint32) {
	switch {
	case e.brought(first, tenant):
		return
	case e.second == 0:
		e.second = tenant
	default:
		e.flags |= common
	}
	if e.bringers(first) >= r.common {
		e.flags |= common
	}
}

// arrive applies an arrival of a known text to its entry. It reports whether
// the arrival becomes the owner, which the caller then makes it, and whether
// the text counts as seen again.
func (r rules) arrive(e *entry, first, next *record) (owner, seen bool) {
	if next.at.Before(first.at) {
		r.displace(e, first, next)
		return true, true
	}
	switch next.kind {
	case Prompt:
		r.bring(e, first, next.tenant)
		return false, true
	case Response:
		if !e.brought(first, next.tenant) && first.tenant != next.tenant {
			e.flags |= said
		}
		return false, true
	default:
		return false, e.brought(first, next.tenant) || first.tenant == next.tenant
	}
}

// displace makes room for an owner that came before the one that was known.
func (r rules) displace(e *entry, first, next *record) {
	if next.kind == Prompt && e.second == next.tenant {
		e.second = 0 // it is the owner now
	}
	if first.tenant == next.tenant && next.kind == Prompt {
		return
	}
	switch first.kind {
	case Prompt:
		r.bring(e, next, first.tenant)
	case Response:
		if !e.brought(next, first.tenant) && first.tenant != next.tenant {
			e.flags |= said
		}
	}
}

// match tells the tenant what it is to the text of e.
func (r rules) match(e *entry, first *record, asking uint32, print int, owner string) Match {
	m := Match{
		Print:   print,
		Owner:   Owner{Tenant: owner, Exchange: first.exchange, Kind: first.kind, At: first.at},
		Word:    e.word,
		Tenants: e.bringers(first),
		Own:     asking != 0 && (e.brought(first, asking) || first.tenant == asking),
		Common:  e.flags&common != 0,
		Said:    e.flags&said != 0,
	}
	if m.Common {
		m.Tenants = r.common
	}
	return m
}
