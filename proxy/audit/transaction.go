package audit

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/proxy/dialect"
	"github.com/auditproxy/auditproxy/store"
)

// Transaction is the audit of one exchange. Its methods are called from one
// goroutine at a time, in the order Request, Response, Append and Finish;
// Response and Append only if a response came, Finish always, once. What
// panics inside is contained: the exchange counts as not audited.
//
// Arrived and Ended may be called from another goroutine, before Request and
// Finish, at the moment at which the events happen: the audit may lag behind
// the traffic, and the order of events must not. From then on the events of
// all other exchanges that come after wait for this one's.
type Transaction struct {
	engine  *Engine
	sinks   []Sink
	x       Exchange
	dialect dialect.Dialect // nil: none speaks on the path
	prompt  dialect.Prompt  // without its parts
	model   string
	start   time.Time

	arrival, end *turn // nil until the event has happened
	arrived      bool  // the arrival's turn was taken

	unread  bool    // a part of the prompt could not be read
	reasons reasons // what the audit did not see
	dead    bool    // a panic ended the audit
	over    bool    // the response has ended: there is no early news any more

	prints  int                    // of the prompt
	control []detectors.Confidence // of its matches by the reverse-time control
	own     []uint64               // sorted places of prints that the request rightly holds

	status   int
	decoder  dialect.Decoder // nil: no response, or none that is read
	coding   string          // content coding of the response
	coded    []byte          // its body so far, to be decoded at the end
	deltas   []dialect.Delta
	choices  []*choice
	found    []detectors.Finding
	seen     map[string]detectors.Confidence // by finding id
	words    int
	leaks    int // final ones
	finished bool
}

// Arrived says that the request has arrived: all of its body has come, or no
// more will.
func (t *Transaction) Arrived(at time.Time) {
	if t.arrival == nil {
		t.arrival = t.engine.turn(at)
	}
}

// Ended says that the exchange has ended.
func (t *Transaction) Ended(at time.Time) {
	if t.end == nil {
		t.end = t.engine.turn(at)
	}
}

// Request takes the request's body; cut says why it is not whole. It keeps no
// reference to body, and returns the event time of the arrival, which is at
// unless Arrived was called before.
func (t *Transaction) Request(body []byte, at time.Time, cut dialect.Reason) time.Time {
	t.Arrived(at)
	var own [][]fingerprint.Print
	var history []fingerprint.Print
	t.contain(func() { own, history = t.read(body, cut) })
	t.arrived = true
	t.engine.take(t.arrival, func(at time.Time) {
		t.contain(func() { t.arrive(own, history, at) })
	})
	t.start = t.arrival.at
	return t.start
}

// read fingerprints the prompt: what the tenant brought, part by part, and
// what it sends back as the assistant's.
func (t *Transaction) read(body []byte, cut dialect.Reason) (own [][]fingerprint.Print, history []fingerprint.Print) {
	if t.dialect == nil {
		return nil, nil
	}
	if cut != "" {
		t.unread = true
		t.reasons.add(cut)
	}
	body, coding := inflate(t.x.Header.Get("Content-Encoding"), body, t.engine.maxBody)
	p, err := t.dialect.Prompt(body, t.x.Path, t.x.Header)
	switch {
	case coding != nil: // what the dialect says follows from it
		t.unread = true
		t.reasons.add(ReasonEncoding)
	case err != nil:
		t.unread = true
		t.reasons.add(reasonOf(err))
	}
	for _, r := range p.Unseen {
		t.unread = t.unread || r != dialect.ReasonMedia
		t.reasons.add(r)
	}
	t.model = p.Model
	defer func() { p.Parts = nil; t.prompt = p }()
	sh := t.engine.scheme.Shingler()
	for _, part := range p.Parts {
		if part.Role == dialect.Assistant {
			history = sh.Finish(sh.Append(history, part.Text))
			continue
		}
		if prints := sh.Finish(sh.Append(nil, part.Text)); len(prints) > 0 {
			own = append(own, prints)
			t.prints += len(prints)
		}
	}
	t.prints += len(history)
	return own, history
}

// arrive enters the prompt into the index. What the tenant brings is its own
// unless it once leaked to it; what it sends back as the assistant's is its
// own unless it is known as somebody else's.
func (t *Transaction) arrive(own [][]fingerprint.Print, history []fingerprint.Print, at time.Time) {
	ix, tenant := t.engine.index, t.x.Tenant
	t.control = detectors.Control(t.exchange(), own)
	places := make([]uint64, 0, t.prints)
	for _, text := range own {
		for _, p := range text {
			if !ix.Tainted(tenant, p) {
				places = append(places, p.Hi)
			}
		}
	}
	for _, p := range t.engine.accounted(tenant, history) {
		if !ix.Tainted(tenant, p) {
			places = append(places, p.Hi)
		}
	}
	places = append(places, t.engine.queue.get(tenant, t.prompt.Poll)...)
	slices.Sort(places)
	t.own = slices.Compact(places)
	o := store.Owner{Tenant: tenant, Exchange: t.x.ID, At: at}
	for _, text := range own {
		ix.Add(o, text)
	}
	o.Kind = store.History
	ix.Add(o, history)
}

// exchange is what detectors know of the transaction.
func (t *Transaction) exchange() *detectors.Exchange {
	return &detectors.Exchange{ID: t.x.ID, Tenant: t.x.Tenant, Index: t.engine.index, Own: t.holds}
}

func (t *Transaction) holds(p fingerprint.Print) bool {
	_, ok := slices.BinarySearch(t.own, p.Hi)
	return ok
}

// Response says that a response has begun.
func (t *Transaction) Response(status int, h dialect.Header) {
	t.status = status
	if t.dialect == nil || status == 101 {
		return
	}
	t.contain(func() {
		t.decoder = t.dialect.Decoder(t.prompt, h)
		t.coding = h.Get("Content-Encoding")
	})
}

// Append takes the next bytes of the response's body, as they were delivered.
// It keeps no reference to b.
func (t *Transaction) Append(b []byte, at time.Time) {
	if t.decoder == nil || t.dead {
		return
	}
	t.contain(func() {
		if encoded(t.coding) {
			if len(t.coded)+len(b) > t.engine.maxBody {
				t.reasons.add(ReasonTooLarge)
				return
			}
			t.coded = append(t.coded, b...)
			return
		}
		t.deltas = t.decoder.Append(t.deltas[:0], b)
		t.scan(at)
	})
}

// Finish ends the exchange; cut says why the response is not whole. It
// returns the event time of the end, which is at unless Ended was called
// before.
func (t *Transaction) Finish(at time.Time, cut dialect.Reason) time.Time {
	if t.finished {
		return at
	}
	t.finished, t.over = true, true
	if t.arrival != nil && !t.arrived { // nobody else may wait for it
		t.engine.take(t.arrival, func(time.Time) {})
	}
	t.Ended(at)
	var info dialect.Info
	t.contain(func() {
		if t.decoder == nil {
			return
		}
		t.deltas = t.deltas[:0]
		var coding, err error
		if encoded(t.coding) {
			var body []byte
			body, coding = inflate(t.coding, t.coded, t.engine.maxBody)
			t.deltas = t.decoder.Append(t.deltas, body)
		}
		t.deltas, err = t.decoder.Finish(t.deltas)
		info = t.decoder.Info()
		if cut == ReasonClientGone && info.Complete {
			// Some clients leave at a stream's end marker, without waiting for
			// the end of the response. There was nothing left to miss.
			cut = ""
			if errors.Is(coding, io.ErrUnexpectedEOF) {
				coding = nil
			}
		}
		switch {
		case coding != nil: // what the decoder says follows from it
			t.reasons.add(ReasonEncoding)
		case err != nil:
			t.reasons.add(reasonOf(err))
		}
		t.scan(at)
		t.reasons.add(info.Unseen...)
		if t.model == "" {
			t.model = info.Model
		}
	})
	if t.status != 0 {
		t.reasons.add(cut)
	}
	t.engine.take(t.end, func(at time.Time) {
		t.contain(func() {
			t.conclude(at)
			t.engine.queue.put(t.x.Tenant, info.Queued, t.own)
		})
	})
	end := t.end.at
	t.report(end)
	t.summarise(end)
	return end
}

// contain runs do and turns a panic into a reason.
func (t *Transaction) contain(do func()) {
	if t.dead {
		return
	}
	defer func() {
		if recover() != nil { // its value may hold text, so it goes no further
			t.dead = true
			t.reasons.add(ReasonPanic)
		}
	}()
	do()
}

// report hands findings to the sinks.
func (t *Transaction) report(at time.Time) {
	for i := range t.found {
		f := &t.found[i]
		if f.State == detectors.Open && t.over {
			continue
		}
		f.Time = at
		f.Model = t.model
		f.Instance = t.x.Instance
		f.Recipient.User = t.x.User
		if t.unread && f.Leak() {
			f.Evidence.PromptUnseen = true
			f.SetConfidence(detectors.Probable)
		}
		last, known := t.seen[f.ID]
		switch f.State {
		case detectors.Open:
			if known && last == f.Confidence {
				continue // grew surer, but for a prompt that was not read
			}
		case detectors.Withdrawn:
			if !known {
				continue // seen in the last words, and never told
			}
		}
		if t.seen == nil {
			t.seen = map[string]detectors.Confidence{}
		}
		t.seen[f.ID] = f.Confidence
		news := f.State != detectors.Withdrawn && (!known || last != f.Confidence)
		if f.State == detectors.Final && f.Leak() {
			t.leaks++
		}
		for _, s := range t.sinks {
			s.Finding(*f, news)
		}
	}
	t.found = t.found[:0]
}

func (t *Transaction) summarise(end time.Time) {
	s := Summary{
		ID: t.x.ID, Tenant: t.x.Tenant, Model: t.model, Start: t.start, End: end,
		Status: t.status, Reasons: t.reasons, PromptPrints: t.prints, Words: t.words, Leaks: t.leaks, Control: t.control,
	}
	if t.dialect != nil {
		s.Dialect = t.dialect.Name()
	}
	switch {
	case t.status == 0:
	case t.dialect == nil:
		if !slices.Contains(t.reasons, ReasonUpgrade) {
			t.reasons.add(dialect.ReasonNoDialect)
		}
		s.Reasons, s.Coverage = t.reasons, None
	case t.dead:
		s.Coverage = None
	case len(t.reasons) == 0:
		s.Coverage = Whole
	case t.words == 0:
		s.Coverage = None
	default:
		s.Coverage = Part
	}
	for _, sink := range t.sinks {
		sink.Exchange(s)
	}
}

// reasonOf reads a dialect's error.
func reasonOf(err error) dialect.Reason {
	var e *dialect.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return dialect.ReasonShape
}
