package proxy

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// exchange is where the forwarding of one request and its audit meet. The
// forwarding side calls arrived, respond, deliver and end, each of which only
// notes what there is and returns. The audit goroutine takes whatever has
// piled up meanwhile in one piece: how a response is cut changes no finding,
// so an audit that lags catches up in larger steps.
//
// Nothing here is pooled. What is delivered lies in blocks made for this
// response, which the audit reads where they are, without a copy, while the
// forwarding goroutine fills what lies behind.
type exchange struct {
	p      *Proxy
	info   audit.Exchange
	tx     *audit.Transaction // nil while unaudited
	upload *upload            // nil if the request has no body

	// unaudited is set where too many audits ran when the exchange began.
	unaudited bool

	mu   sync.Mutex
	news sync.Cond // something below has changed

	hasRequest bool
	request    []byte
	requestAt  time.Time
	requestCut dialect.Reason

	status  int // 0 until a response comes
	header  http.Header
	pieces  [][]byte  // delivered and not yet taken
	waiting int       // bytes in pieces
	pieceAt time.Time // of the newest piece
	dropped bool      // the backlog was full, and what followed is not audited

	ended bool
	endAt time.Time
	cut   dialect.Reason
}

// begin starts the exchange of r, and its audit unless too many are running.
func (p *Proxy) begin(r *http.Request) *exchange {
	tenant, known := p.tenants.of(r)
	if !known {
		p.metrics.unknown.Inc()
	}
	x := &exchange{
		p: p,
		info: audit.Exchange{
			ID:       p.exchangeID(r),
			Tenant:   tenant,
			Instance: p.o.Instance,
			Method:   r.Method,
			Path:     rawPath(r),
			Header:   r.Header,
		},
		unaudited: !p.audits.add(p.o.MaxAudits),
	}
	x.news.L = &x.mu
	limit := p.o.MaxRequestCopy
	if x.unaudited {
		limit = 0
	} else {
		x.tx = p.o.Engine.Begin(x.info)
	}
	if hasBody(r) {
		x.upload = newUpload(r, limit, x.arrived)
	} else {
		x.arrived(nil, "")
	}
	if !x.unaudited {
		go x.audit(&p.audits)
	}
	return x
}

// exchangeID returns the id that a trusted hop gave r, or a new one.
func (p *Proxy) exchangeID(r *http.Request) string {
	if p.o.IDHeader != "" {
		if v := r.Header[p.o.IDHeader]; len(v) == 1 && sane(v[0]) {
			return v[0]
		}
	}
	var id ulid.ULID
	_ = id.SetTime(ulid.Now()) // fails after the year 10889
	hi, lo := rand.Uint64(), rand.Uint32()
	for i := range 8 {
		id[6+i] = byte(hi >> (8 * i))
	}
	id[14], id[15] = byte(lo), byte(lo>>8)
	return id.String()
}

// arrived takes the copy of the request's body, when it will grow no more.
func (x *exchange) arrived(body []byte, cut dialect.Reason) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hasRequest = true
	x.request, x.requestAt, x.requestCut = body, time.Now(), cut
	if x.tx != nil {
		x.tx.Arrived(x.requestAt)
	}
	x.news.Signal()
}

// respond says that response headers came. The header must not change any
// more.
func (x *exchange) respond(status int, h http.Header) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status, x.header = status, h
	x.news.Signal()
}

// deliver hands over a piece of the response that was written to the client,
// at the given time. It reports whether the piece now belongs to the audit; if
// not, its memory is free for the next one.
func (x *exchange) deliver(piece []byte, at time.Time) bool {
	if x.unaudited {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if room := x.p.o.MaxBacklog - x.waiting; x.dropped || len(piece) > room {
		if x.dropped {
			room = 0
		}
		x.dropped = true
		x.p.metrics.dropped.Add(float64(len(piece) - room))
		piece = piece[:room]
	}
	if len(piece) == 0 {
		return false
	}
	if last := len(x.pieces) - 1; last >= 0 && adjoins(x.pieces[last], piece) {
		x.pieces[last] = x.pieces[last][:len(x.pieces[last])+len(piece)]
	} else {
		x.pieces = append(x.pieces, piece)
	}
	x.waiting += len(piece)
	x.pieceAt = at
	x.news.Signal()
	return true
}

// adjoins says whether b lies right behind a in the same block.
func adjoins(a, b []byte) bool {
	return cap(a) > len(a) && len(b) > 0 && &a[:len(a)+1][len(a)] == &b[0]
}

// end ends the exchange; cut says why the response isn't whole. Only the first
// call counts.
func (x *exchange) end(cut dialect.Reason) {
	if x.upload != nil {
		// The upstream answered, or broke, without having taken all of it.
		requestCut := audit.ReasonUpstreamBroken
		if cut == audit.ReasonClientGone {
			requestCut = cut
		}
		x.upload.end(requestCut)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	x.ended, x.endAt, x.cut = true, time.Now(), cut
	if x.tx != nil {
		x.tx.Ended(x.endAt)
	}
	if x.dropped {
		x.cut = audit.ReasonOverload
	}
	x.news.Signal()
	if !x.unaudited {
		return
	}
	// There must be an end to those too that only want to be counted.
	if !x.p.tallies.add(x.p.maxTallies) {
		x.p.metrics.uncounted.Inc()
		return
	}
	x.tx = x.p.o.Engine.Begin(x.info)
	x.request, x.requestCut, x.cut = nil, audit.ReasonOverload, audit.ReasonOverload
	go x.audit(&x.p.tallies)
}

// audit runs beside the forwarding, from the exchange's beginning to the end of
// its audit, and is counted in running.
func (x *exchange) audit(running *counter) {
	defer running.done()
	tx := x.tx
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		// What was panicked with may hold text, so only its type is told.
		x.p.metrics.panics.Inc()
		x.p.o.Logger.Error("audit of an exchange failed",
			slog.String("exchange", x.info.ID), slog.String("panic", fmt.Sprintf("%T", v)))
		defer func() { _ = recover() }()
		tx.Finish(time.Now(), audit.ReasonPanic) // ignored if it is the second
	}()

	x.mu.Lock()
	for !x.hasRequest {
		x.news.Wait()
	}
	body, at, cut := x.request, x.requestAt, x.requestCut
	x.request = nil
	x.mu.Unlock()

	rec := newRecording(x)
	start := tx.Request(body, at, cut)
	rec.request(body, cut, start)
	body = nil // it can be large, and the response can take long

	var pieces, spare [][]byte
	for responded, ended := false, false; !ended; {
		x.mu.Lock()
		for !x.ended && len(x.pieces) == 0 && (responded || x.status == 0) {
			x.news.Wait()
		}
		pieces, x.pieces = x.pieces, spare[:0]
		x.waiting = 0
		status, header, at := x.status, x.header, x.pieceAt
		ended = x.ended
		x.mu.Unlock()

		if status != 0 && !responded {
			responded = true
			tx.Response(status, header)
			rec.response(status, header)
		}
		for _, b := range pieces {
			tx.Append(b, at)
			rec.append(b)
		}
		clear(pieces)
		spare = pieces
	}
	rec.end(tx.Finish(x.endAt, x.cut), x.cut)
}
