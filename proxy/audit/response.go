package audit

import (
	"time"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/proxy/dialect"
	"github.com/auditproxy/auditproxy/store"
)

// choice is one of the answers in a response.
type choice struct {
	index   int
	scans   []detectors.Scan
	streams []*stream
}

// stream is the text of one block of one channel of a choice.
type stream struct {
	channel  dialect.Channel
	block    int
	offset   int // bytes so far
	shingler *fingerprint.Shingler
	prints   []fingerprint.Print // all of them, to be entered at the end
}

// maxStreams bounds the choices, channels and blocks of one response. The API
// with the most has a few dozen; beyond the bound text is not audited.
const maxStreams = 1024

// stream finds or makes the stream that d belongs to; nil beyond the bound.
func (t *Transaction) stream(d dialect.Delta) (*choice, *stream) {
	n := 0
	var c *choice
	for _, k := range t.choices {
		n += len(k.streams)
		if k.index == d.Choice {
			c = k
		}
	}
	if c != nil {
		for _, s := range c.streams {
			if s.channel == d.Channel && s.block == d.Block {
				return c, s
			}
		}
	}
	if n >= maxStreams {
		return nil, nil
	}
	if c == nil {
		c = &choice{index: d.Choice}
		x := t.exchange()
		for _, det := range t.engine.detectors {
			c.scans = append(c.scans, det.Scan(x, d.Choice))
		}
		t.choices = append(t.choices, c)
	}
	s := &stream{channel: d.Channel, block: d.Block, shingler: t.engine.scheme.Shingler()}
	c.streams = append(c.streams, s)
	return c, s
}

// scan feeds the decoded deltas to the detectors and reports what they say.
func (t *Transaction) scan(at time.Time) {
	for _, d := range t.deltas {
		c, s := t.stream(d)
		if s == nil {
			t.reasons.add(dialect.ReasonTooLong)
			continue
		}
		from := len(s.prints)
		s.prints = s.shingler.Append(s.prints, d.Text)
		t.feed(c, s, d.Text, from)
	}
	t.report(at)
}

// feed hands a piece of text and the prints from the given one on to every
// scan of the choice.
func (t *Transaction) feed(c *choice, s *stream, text string, from int) {
	d := detectors.Delta{
		Channel: string(s.channel), Block: s.block,
		Offset: s.offset, Text: text, Prints: s.prints[from:], Words: s.shingler.Words(),
	}
	s.offset += len(text)
	for _, scan := range c.scans {
		t.found = scan.Append(t.found, d)
	}
}

// conclude is the event at the response's end: the last words are read, every
// scan gives its verdict, what leaked is kept from becoming the recipient's
// own, and the rest of the answer enters the index as given to it. What the
// answer shares with another tenant's prompt does not, be it too short for a
// leak: it may be a piece of one, and would make the text the recipient's own.
func (t *Transaction) conclude(at time.Time) {
	for _, c := range t.choices {
		for _, s := range c.streams {
			from := len(s.prints)
			s.prints = s.shingler.Finish(s.prints)
			t.words += s.shingler.Words()
			t.feed(c, s, "", from)
		}
	}
	t.found = t.found[:0] // the verdict comes now
	for _, c := range t.choices {
		for _, scan := range c.scans {
			t.found = scan.Finish(t.found, at)
		}
	}
	ix, tenant := t.engine.index, t.x.Tenant
	for i := range t.found {
		if f := &t.found[i]; f.State == detectors.Final && f.Leak() {
			ix.Taint(tenant, f.Prints, at)
		}
	}
	o := store.Owner{Tenant: tenant, Exchange: t.x.ID, Kind: store.Response, At: at}
	for _, c := range t.choices {
		for _, s := range c.streams {
			ix.Add(o, t.engine.accounted(tenant, s.prints))
		}
	}
}
