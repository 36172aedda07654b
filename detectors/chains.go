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
	wide               int // sum of the hits' single-code-point words
	prints             []fingerprint.Print

	cur              uint32 // first word of the run that the last hit belongs to
	curStart         uint32 // and its first byte
	run              int    // words of the longest run
	runStart, runEnd uint32 // and its bytes
}

// add files a hit, which comes in the order of the response, and returns its
// donor.
func (c *chains) add(p fingerprint.Print, m store.Match) *donor {
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
		k.extend(p, m.Word)
		return d
	}
	d.chains = append(d.chains, begin(p, m.Word))
	return d
}

func begin(p fingerprint.Print, donorWord uint32) chain {
	return chain{
		from: p.Word, to: p.Word + fingerprint.PassageWords,
		donorFrom: donorWord, donorTo: donorWord + fingerprint.PassageWords,
		diagonal: int64(p.Word) - int64(donorWord), last: p.Word, lastDonor: donorWord,
		covered: fingerprint.PassageWords, wide: int(p.Wide),
		prints: []fingerprint.Print{p},
		cur:    p.Word, curStart: p.Start,
		run: fingerprint.PassageWords, runStart: p.Start, runEnd: p.End,
	}
}

func (k *chain) extend(p fingerprint.Print, donorWord uint32) {
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
	k.wide += int(p.Wide)
	k.prints = append(k.prints, p)
}

// leak says whether the chain is more than chance.
func (k *chain) leak() bool {
	if len(k.prints) < minHits {
		return false
	}
	mostlyWide := 2*k.wide > len(k.prints)*fingerprint.PassageWords
	return !mostlyWide || k.covered >= minWideWords
}
