package detectors

import (
	"slices"

	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/store"
)

// chains gathers the hits of one stream by donor.
type chains struct {
	donors map[string]*donor // by tenant
	order  []*donor          // as first hit
}

// donor is one tenant whose prompts were hit.
type donor struct {
	tenant string
	chains []chain // as begun
}

// chain is a sequence of hits that continue each other: they lie on one
// diagonal of one prompt, or they come from different prompts of the tenant
// and overlap. The latter is one text too: of a text that is sent again with
// more, each passage belongs to the prompt that brought it first.
type chain struct {
	from, to        uint32 // words of the response
	diagonal        int64  // response word minus donor word, of the last hit
	last, lastDonor uint32 // first words of the last hit
	covered         int    // words in any hit
	prints          []fingerprint.Print
	exchanges       []string // that introduced them
	firstAt, lastAt int      // of the first and the last hit among the stream's prints

	cur              uint32 // first word of the run that the last hit belongs to
	curStart         uint32 // and its first byte
	run              int    // words of the longest run
	runStart, runEnd uint32 // and its bytes
}

// add files a hit, which is the stream's print number at. Hits come in the
// order of the response.
func (c *chains) add(p fingerprint.Print, at int, m *store.Match) {
	d := c.donors[m.Owner.Tenant]
	if d == nil {
		d = &donor{tenant: m.Owner.Tenant}
		if c.donors == nil {
			c.donors = map[string]*donor{}
		}
		c.donors[d.tenant] = d
		c.order = append(c.order, d)
	}
	for i := len(d.chains) - 1; i >= max(0, len(d.chains)-recentChains); i-- {
		if k := &d.chains[i]; k.continues(p, m) {
			k.extend(p, at, m)
			return
		}
	}
	d.chains = append(d.chains, chain{
		from: p.Word, to: p.Word + fingerprint.PassageWords,
		covered: fingerprint.PassageWords,
		firstAt: at,
		cur:     p.Word, curStart: p.Start,
		run: fingerprint.PassageWords, runStart: p.Start, runEnd: p.End,
	})
	d.chains[len(d.chains)-1].append(p, at, m)
}

// continues reports whether a hit belongs to the chain.
func (k *chain) continues(p fingerprint.Print, m *store.Match) bool {
	if k.exchanges[len(k.exchanges)-1] != m.Owner.Exchange {
		return p.Word < k.to
	}
	off := int64(p.Word) - int64(m.Word) - k.diagonal
	return -diagonalSlack <= off && off <= diagonalSlack && p.Word-k.last <= maxGap && m.Word > k.lastDonor
}

func (k *chain) append(p fingerprint.Print, at int, m *store.Match) {
	k.diagonal, k.last, k.lastDonor = int64(p.Word)-int64(m.Word), p.Word, m.Word
	k.lastAt = at
	k.prints = append(k.prints, p)
	k.exchanges = append(k.exchanges, m.Owner.Exchange)
}

func (k *chain) extend(p fingerprint.Print, at int, m *store.Match) {
	to := p.Word + fingerprint.PassageWords
	if p.Word > k.to { // words between the two hits did not match
		k.cur, k.curStart = p.Word, p.Start
		k.covered += fingerprint.PassageWords
	} else {
		k.covered += int(to - k.to)
	}
	if n := int(to - k.cur); n > k.run {
		k.run, k.runStart, k.runEnd = n, k.curStart, p.End
	}
	k.to = to
	k.append(p, at, m)
}

// shares reports whether the two chains have a passage of the donor in common.
func (k *chain) shares(other *chain) bool {
	have := map[uint64]bool{}
	for _, p := range k.prints {
		have[p.Hi] = true
	}
	return slices.ContainsFunc(other.prints, func(p fingerprint.Print) bool { return have[p.Hi] })
}

// leak says whether the chain is more than chance. The hits cover words that
// are shared for sure; the prints to both sides of them, which are not shared,
// bound how long the shared run can be.
func (k *chain) leak(t *stream) bool {
	if len(k.prints) < minHits {
		return false
	}
	return k.covered >= minWords || k.bound(t) >= fingerprint.TwoIn
}

// bound returns the most words that the chain's run can have: it begins after
// the first word of the print before, and ends before the last word of the
// print after. While the text streams and that print has not come, it is 0.
func (k *chain) bound(t *stream) int {
	from, to := 0, t.words
	if k.firstAt > 0 {
		from = int(t.prints[k.firstAt-1].Word) + 1
	}
	if next := k.lastAt + 1; next < len(t.prints) {
		to = int(t.prints[next].Word) + fingerprint.PassageWords - 1
	} else if !t.ended {
		return 0
	}
	return to - from
}
