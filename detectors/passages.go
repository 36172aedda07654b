package detectors

import (
	"maps"
	"slices"
	"time"

	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/store"
)

// Passages finds runs of another tenant's prompt in a response.
//
// Every passage of the response is looked up. A hit is a passage that another
// tenant's prompt introduced, that the recipient does not hold, and that fewer
// tenants hold than make it common; see store.Match. Hits of one prompt that
// lie on one diagonal (the same distance between the place in the response and
// the place in the prompt, give or take three words, so that small edits do
// not cut a run) form a chain, and so do overlapping hits of several prompts of
// one tenant; see chain.
//
// One hit alone happens by chance, in about one of a thousand innocent answers.
// Two that nearly coincide still do: on 12,000 real answers by as many tenants
// there were seven such pairs, of 12 to 15 words, mostly of code. So a chain is
// a leak if it has two hits and they cover 16 words, or if the run that it
// belongs to may have 30, as far as its neighbours tell. Any shared run of 30
// words holds two passages, so every such run is found.
//
// One chain is probable: a public text that only one tenant happens to have
// sent looks the same. Two chains of one donor that do not overlap, neither in
// the response nor in the prompts, are confirmed.
//
// There is one finding for each donor and block of a channel. It names the
// exchange that most of the passages came from. Hits that are no leak are a
// suspect, which is told at the end: one shared run of 20 words shows as one
// hit, and so does chance.
type Passages struct{}

// Sizes of the passage detector, in words.
const (
	diagonalSlack = 3  // how far two hits of a chain may lie from one diagonal
	maxGap        = 64 // words between two hits of a chain
	minHits       = 2  // hits of a leak
	minWords      = 16 // words that they cover, where the run may be short
	recentChains  = 16 // chains of a donor that a hit may join
	maxPairs      = 64 // chains compared for independence
)

// Name returns "passages".
func (Passages) Name() string { return "passages" }

// Scan starts a scan of one choice.
func (p Passages) Scan(x *Exchange, choice int) Scan {
	return &passageScan{x: x, choice: choice, said: map[string]Finding{}, hit: (*store.Match).Foreign}
}

// passageScan is the state for one choice. It keeps every print of the
// response, 40 bytes for each 5.5 words, to look all of them up again at the
// end: a donor may arrive after its text was seen, and text may become common
// meanwhile.
type passageScan struct {
	x       *Exchange
	choice  int
	hit     func(*store.Match) bool // whether a match counts
	streams []*stream
	matches []store.Match
	said    map[string]Finding // what Append reported last, by id
}

// stream is one block of one channel.
type stream struct {
	channel string
	block   int
	words   int // completed
	ended   bool
	prints  []fingerprint.Print
	chains  chains
}

func (s *passageScan) stream(channel string, block int) *stream {
	for _, t := range s.streams {
		if t.channel == channel && t.block == block {
			return t
		}
	}
	t := &stream{channel: channel, block: block}
	s.streams = append(s.streams, t)
	return t
}

// Append implements [Scan].
func (s *passageScan) Append(dst []Finding, d Delta) []Finding {
	t := s.stream(d.Channel, d.Block)
	t.words = d.Words
	t.prints = append(t.prints, d.Prints...)
	if len(d.Prints) == 0 {
		return dst
	}
	s.match(t, len(t.prints)-len(d.Prints), time.Time{})
	for _, donor := range t.chains.order {
		f, ok := s.finding(t, donor)
		if !ok {
			continue
		}
		if last, ok := s.said[f.ID]; ok && last.Confidence == f.Confidence {
			continue
		}
		f.State = Open
		s.said[f.ID] = f
		dst = append(dst, f)
	}
	return dst
}

// Finish implements [Scan].
func (s *passageScan) Finish(dst []Finding, end time.Time) []Finding {
	for _, t := range s.streams {
		t.ended, t.chains = true, chains{}
		s.match(t, 0, end)
	}
	for _, t := range s.streams {
		for _, donor := range t.chains.order {
			f, ok := s.finding(t, donor)
			if !ok {
				f = s.suspect(t, donor)
			}
			delete(s.said, f.ID)
			f.State = Final
			dst = append(dst, f)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.said)) {
		f := s.said[id]
		f.State = Withdrawn
		dst = append(dst, f)
	}
	return dst
}

// match looks up the prints of t from the given one on, and adds the hits to
// its chains. An end that isn't zero leaves out donors that arrived after it.
func (s *passageScan) match(t *stream, from int, end time.Time) {
	s.matches = s.x.Index.Lookup(s.matches[:0], s.x.Tenant, t.prints[from:])
	for _, m := range s.matches {
		at := from + m.Print
		switch {
		case !s.hit(&m), m.Owner.Tenant == s.x.Tenant:
			continue
		case !end.IsZero() && m.Owner.At.After(end):
			continue
		case s.x.Own(t.prints[at]):
			continue
		}
		t.chains.add(t.prints[at], at, &m)
	}
}

// finding sums up what t holds of a donor; ok is false while that is no leak.
func (s *passageScan) finding(t *stream, d *donor) (f Finding, ok bool) {
	f = s.sum(t, d, PromptLeak, func(c *chain) bool { return c.leak(t) })
	if f.Evidence.Passages == 0 {
		return f, false
	}
	f.SetConfidence(Probable)
	if s.independent(d) {
		f.SetConfidence(Confirmed)
	}
	f.setID()
	return f, true
}

// suspect sums up what t holds of a donor, none of which is a leak.
func (s *passageScan) suspect(t *stream, d *donor) Finding {
	f := s.sum(t, d, Suspect, func(*chain) bool { return true })
	f.Reason = ShortRun
	f.SetConfidence(Possible)
	f.setID()
	return f
}

// sum adds up the donor's chains in t that count.
func (s *passageScan) sum(t *stream, d *donor, kind Kind, counts func(*chain) bool) Finding {
	f := Finding{
		Kind:     kind,
		Detector: Passages{}.Name(),
		Recipient: Recipient{
			Tenant: s.x.Tenant, Exchange: s.x.ID, Choice: s.choice,
			Channel: t.channel, Block: t.block,
		},
		Donor: Donor{Tenant: d.tenant, Part: "prompt"},
	}
	passages := map[string]int{} // by exchange
	for i := range d.chains {
		c := &d.chains[i]
		if !counts(c) {
			continue
		}
		f.Evidence.CoveredWords += c.covered
		f.Evidence.Passages += len(c.prints)
		f.Prints = append(f.Prints, c.prints...)
		for _, x := range c.exchanges {
			if passages[x]++; passages[x] > passages[f.Donor.Exchange] {
				f.Donor.Exchange = x
			}
		}
		if c.run > f.Evidence.RunWords {
			f.Evidence.RunWords = c.run
			f.Recipient.Offset = int(c.runStart)
			f.Recipient.Length = int(c.runEnd - c.runStart)
		}
	}
	return f
}

// independent says whether two chains of the donor, in whatever channels of
// the choice, overlap neither in the response nor in the prompts.
func (s *passageScan) independent(of *donor) bool {
	type placed struct {
		stream *stream
		*chain
	}
	var leaks []placed
	for _, t := range s.streams {
		d := t.chains.donors[of.tenant]
		if d == nil {
			continue
		}
		for i := range d.chains {
			if d.chains[i].leak(t) && len(leaks) < maxPairs {
				leaks = append(leaks, placed{t, &d.chains[i]})
			}
		}
	}
	for i, a := range leaks {
		for _, b := range leaks[:i] {
			apart := a.stream != b.stream || a.from >= b.to || b.from >= a.to
			if apart && !a.shares(b.chain) {
				return true
			}
		}
	}
	return false
}
