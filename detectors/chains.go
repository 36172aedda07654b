package detectors

import (
	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/store"
)

// chains gathers the hits of one stream by donor exchange and diagonal.
type chains struct {
	donors map[string]*donor // by exchange
	order  []*donor          // as first hit
}

// donor is one exchange whose prompt was hit.
type donor struct {
	tenant, exchange string
	chains           []chain // as begun
}

// chain is a sequence of hits on one diagonal. Its words are those of the
// response, its donor words those of the prompt; both are half open.
type chain struct {
	from, to           uint32
	donorFrom, donorTo uint32
	diagonal           int64 // response word minus donor word, of the last hit
	last               uint32
	lastDonor          uint32
	covered            int // words in any hit
	prints             []fingerprint.Print
	firstAt, lastAt    int // of the first and the last hit among the stream's prints

	cur              uint32 // first word of the run that the last hit belongs to
	curStart         uint32 // and its first byte
	run              int    // words of the longest run
	runStart, runEnd uint32 // and its bytes
}

// add files a hit, which is the stream's print number at. Hits come in the
// order of the response.
func (c *chains) add(p fingerprint.Print, at int, m store.Match) {
	d := c.donors[m.Owner.Exchange]
	if d == nil {
		d = &donor{tenant: m.Owner.Tenant, exchange: m.Owner.Exchange}
		if c.donors == nil {
			c.donors = map[string]*donor{}
		}
		c.donors[d.exchange] = d
		c.order = append(c.order, d)
	}
	diagonal := int64(p.Word) - int64(m.Word)
	for i := len(d.chains) - 1; i >= max(0, len(d.chains)-recentChains); i-- {
		k := &d.chains[i]
		off := diagonal - k.diagonal
		if off < -diagonalSlack || off > diagonalSlack || p.Word-k.last > maxGap || m.Word <= k.lastDonor {
			continue
		}
		k.extend(p, at, m.Word)
		return
	}
	d.chains = append(d.chains, begin(p, at, m.Word))
}

func begin(p fingerprint.Print, at int, donorWord uint32) chain {
	return chain{
		from: p.Word, to: p.Word + fingerprint.PassageWords,
		donorFrom: donorWord, donorTo: donorWord + fingerprint.PassageWords,
		diagonal: int64(p.Word) - int64(donorWord), last: p.Word, lastDonor: donorWord,
		covered: fingerprint.PassageWords,
		prints:  []fingerprint.Print{p},
		firstAt: at, lastAt: at,
		cur: p.Word, curStart: p.Start,
		run: fingerprint.PassageWords, runStart: p.Start, runEnd: p.End,
	}
}

func (k *chain) extend(p fingerprint.Print, at int, donorWord uint32) {
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
	k.to, k.donorTo = to, donorWord+fingerprint.PassageWords
	k.diagonal, k.last, k.lastDonor = int64(p.Word)-int64(donorWord), p.Word, donorWord
	k.lastAt = at
	k.prints = append(k.prints, p)
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
