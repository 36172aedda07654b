package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// This file forwards a request and passes its response back. It does what
// httputil.ReverseProxy does, on the same http.Transport, and is not built on
// it for these reasons:
//
//   - ReverseProxy copies a response through one buffer that is used again,
//     so the audit would need a copy of every piece. Here the response is
//     read into blocks that the audit then owns, and a response whose length
//     is known takes a block of that length, not of 32 KB.
//   - It flushes by timer and lock, and so headers before and apart from the
//     body. Here a piece is written, flushed and only then handed over, in one
//     place; headers go ahead of the body where the body may take long.
//   - It starts to answer without full duplex, and then net/http's server reads
//     away what is left of an HTTP/1 request body under the eyes of the
//     transport that is still sending it.
//   - It removes Forwarded headers, re-encodes odd queries, passes hop-by-hop
//     headers of 1xx responses on, and tells a client that left from an
//     upstream that broke only in the text of an error.
//
// What a response that breaks looks like is part of the response: the client
// must see it break, so forward says so and ServeHTTP aborts the connection.

// leg is the way of one exchange through the proxy. It belongs to the
// goroutine that serves the request.
type leg struct {
	p       *Proxy
	x       *exchange
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	upload  *upload // nil if the request has no body

	received time.Time // when the request's headers were read
	sent     time.Time // when the request was given to the transport
	answered time.Time // when the response's headers were read

	conn      *conn // of the newest attempt; nil if new, or for HTTP/2
	interim   sync.Mutex
	final     bool      // no interim response may be written any more
	extended  time.Time // when the write deadline was last set
	block     []byte    // what the response is read into; its length is used up
	nextBlock int       // size of the next block
}

// forward forwards the request. cut says why the response isn't whole, and
// broken whether the client must see that.
func (l *leg) forward() (cut dialect.Reason, broken bool) {
	webSocket := wantsWebSocket(l.r)
	res, err := l.roundTrip(l.outgoing(webSocket))
	l.answered = time.Now()
	if err != nil {
		return l.fail(err)
	}
	defer func() { _ = res.Body.Close() }() // ends the upstream's part if it isn't over
	if l.upload != nil {
		l.upload.settle()
	}
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		if !webSocket || !isWebSocket(res.Header) {
			return l.refuse(failProtocol, errors.New("upstream switched to a protocol that was not asked for"))
		}
		return l.tunnel(res)
	case res.StatusCode < 200:
		return l.refuse(failProtocol, errors.New("upstream sent a status code below 100"))
	}
	return l.respond(res)
}

// outgoing returns the request that goes upstream.
func (l *leg) outgoing(webSocket bool) *http.Request {
	r := l.r
	out := &http.Request{
		Method:     r.Method,
		URL:        l.p.target(r, l.x.info.Path),
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     outgoingHeader(r, webSocket),
	}
	if l.p.o.PreserveHost {
		out.Host = r.Host
	}
	if l.upload != nil {
		out.ContentLength = r.ContentLength
		if r.ContentLength < 0 {
			// Said outright, lest the transport hold back a GET's or DELETE's
			// body to see whether there is one.
			out.TransferEncoding = []string{"chunked"}
			out.Trailer = r.Trailer // the server fills it in at the body's end
		}
	}
	trace := &httptrace.ClientTrace{
		Got1xxResponse: l.gotInterim,
		GotConn:        l.gotConn,
	}
	if l.upload != nil && l.upload.expect != nil {
		e := l.upload.expect
		trace.GotFirstResponseByte = func() { e.answered.Store(true) }
		trace.Got100Continue = func() { e.continued.Store(true) }
	}
	return out.WithContext(httptrace.WithClientTrace(r.Context(), trace))
}

// maxAttempts bounds how many idle connections that turn out dead a request
// tries.
const maxAttempts = 8

// roundTrip sends the request. It sends it again only where a kept connection
// proved unfit before a byte of it was written.
func (l *leg) roundTrip(out *http.Request) (*http.Response, error) {
	defer func() {
		l.interim.Lock()
		l.final = true
		l.interim.Unlock()
	}()
	l.sent = time.Now()
	if l.upload != nil {
		out.Body = l.upload.begin()
	}
	for n := 1; ; n++ {
		l.conn = nil
		res, err := l.p.transport.RoundTrip(out)
		if err == nil || n == maxAttempts || out.Context().Err() != nil || l.conn == nil || !l.conn.unsent() {
			return res, err
		}
		if l.upload == nil {
			continue
		}
		if _, broken := l.upload.ended(); broken {
			return nil, err
		}
		body := l.upload.begin()
		if body == nil {
			return nil, err
		}
		out.Body = body
	}
}

// gotConn proves a kept connection drained before the request is written to it.
func (l *leg) gotConn(info httptrace.GotConnInfo) {
	l.conn = nil
	if !info.Reused {
		return
	}
	if l.conn = connOf(info.Conn); l.conn != nil {
		l.conn.reuse()
	}
}

// gotInterim passes a 1xx response on. The transport calls it from another
// goroutine, but never after the final response.
func (l *leg) gotInterim(code int, header textproto.MIMEHeader) error {
	l.interim.Lock()
	defer l.interim.Unlock()
	// The server sends a 100 of its own when the transport begins to read the
	// body, which it does now.
	if l.final || code == http.StatusContinue || !l.r.ProtoAtLeast(1, 1) {
		return nil
	}
	own := l.w.Header().Clone()
	h := l.w.Header()
	interim := http.Header(header)
	stripHopByHop(interim)
	for k, v := range interim {
		h[k] = v
	}
	l.w.WriteHeader(code)
	for k := range interim {
		delete(h, k)
	}
	for k, v := range own {
		h[k] = v
	}
	return nil
}

// fail ends an exchange to which no response came.
func (l *leg) fail(err error) (cut dialect.Reason, broken bool) {
	if l.r.Context().Err() != nil {
		// A client that has only closed its sending half could take an empty
		// 200 for an answer.
		return audit.ReasonClientGone, true
	}
	if l.upload != nil {
		if _, broken := l.upload.ended(); broken {
			l.closeAfter()
			l.p.errors.write(l.w, http.StatusBadRequest)
			return audit.ReasonClientGone, false
		}
	}
	return l.refuse(failureOf(err), err)
}

// refuse answers in the upstream's place that it can't.
func (l *leg) refuse(f failure, err error) (cut dialect.Reason, broken bool) {
	l.upstreamFailed(f, err)
	l.linger()
	l.closeAfter()
	l.p.errors.write(l.w, http.StatusBadGateway)
	return audit.ReasonUpstreamBroken, false
}

func (l *leg) upstreamFailed(f failure, err error) {
	l.p.metrics.failures[f].Inc()
	attrs := []slog.Attr{slog.String("exchange", l.x.info.ID), slog.String("reason", string(f))}
	if f != failProtocol { // such an error quotes what came
		attrs = append(attrs, slog.Any("error", err))
	}
	l.p.o.Logger.LogAttrs(context.Background(), slog.LevelWarn, "upstream failed", attrs...)
}

// lingerTime bounds how long a client may take to send the rest of a request
// that failed.
const lingerTime = 5 * time.Second

// linger reads the rest of a request that failed, since a prompt counts from
// its arrival, whatever becomes of it. Most clients look for an answer only
// when they have sent all.
func (l *leg) linger() {
	u := l.upload
	if u == nil || l.x.unaudited || u.untouched() {
		return
	}
	rest := u.begin()
	if rest == nil {
		return
	}
	if err := l.control.SetReadDeadline(time.Now().Add(lingerTime)); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(rest, int64(l.p.o.MaxRequestCopy)))
}

// closeAfter has the server close the client's connection after the response, if
// the request's body was not read to its end: what is left of it would
// otherwise be waited for, or read as the next request. It also keeps the
// server from reading that rest away while the transport is still sending it
// on.
func (l *leg) closeAfter() {
	if l.upload == nil || l.r.ProtoMajor != 1 {
		return
	}
	if ended, _ := l.upload.ended(); ended {
		return
	}
	l.w.Header()["Connection"] = []string{"close"}
	_ = l.control.EnableFullDuplex() // where it can't be, the server is not net/http's
}

// respond passes the response on.
func (l *leg) respond(res *http.Response) (cut dialect.Reason, broken bool) {
	stripHopByHop(res.Header)
	l.x.respond(res.StatusCode, res.Header)
	h := l.w.Header()
	for k, v := range res.Header {
		h[k] = v
	}
	// The server adds these of its own unless they are there, if only in name.
	for _, k := range [...]string{"Date", "Content-Type"} {
		if _, ok := res.Header[k]; !ok {
			h[k] = nil
		}
	}
	announced := slices.Collect(maps.Keys(res.Trailer))
	if len(announced) > 0 {
		h["Trailer"] = []string{strings.Join(announced, ", ")}
	}
	l.closeAfter()
	l.w.WriteHeader(res.StatusCode)
	if slow(res) {
		if err := l.flush(l.answered); err != nil {
			return audit.ReasonClientGone, true
		}
	}
	l.p.metrics.added(l.sent.Sub(l.received) + time.Since(l.answered))

	if cut := l.copyBody(res); cut != "" {
		return cut, true
	}
	for k, v := range res.Trailer { // complete since the body's end
		if !slices.Contains(announced, k) {
			k = http.TrailerPrefix + k
		}
		h[k] = v
	}
	return "", false
}

// slow says whether the body may take long to come, so that the headers
// should go ahead.
func slow(res *http.Response) bool {
	if res.ContentLength < 0 {
		return true
	}
	t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return t == "text/event-stream"
}

// The sizes of blocks, in bytes. A stream begins with a small one, as most are
// short and many may be open; bulk moves in large ones. A block with less room
// than the smallest read is left.
const (
	firstBlock   = 4 << 10
	largestBlock = 32 << 10
	smallestRead = 1 << 10
)

// copyBody passes the body on: each piece as it comes, flushed to the client
// and then handed to the audit.
func (l *leg) copyBody(res *http.Response) (cut dialect.Reason) {
	if res.Body == http.NoBody {
		return ""
	}
	l.nextBlock = firstBlock
	if n := res.ContentLength; n >= 0 {
		l.nextBlock = int(min(n, largestBlock))
	}
	for {
		if room := cap(l.block) - len(l.block); room == 0 || room < smallestRead && len(l.block) > 0 {
			l.block = make([]byte, 0, max(l.nextBlock, smallestRead))
			l.nextBlock = min(2*l.nextBlock, largestBlock)
		}
		from := len(l.block)
		n, err := res.Body.Read(l.block[from:cap(l.block)])
		if n > 0 {
			now := time.Now()
			piece := l.block[from : from+n]
			werr := l.deliver(piece, now)
			// A piece that failed may have arrived in part, so it counts.
			if l.x.deliver(piece, now) {
				l.block = l.block[:from+n]
			}
			if werr != nil {
				return audit.ReasonClientGone
			}
		}
		if err == io.EOF {
			return ""
		}
		if err != nil {
			return l.bodyFailed(err)
		}
	}
}

// bodyFailed tells why a response's body ended early.
func (l *leg) bodyFailed(err error) dialect.Reason {
	if l.r.Context().Err() != nil {
		return audit.ReasonClientGone
	}
	if l.upload != nil {
		if _, broken := l.upload.ended(); broken {
			return audit.ReasonClientGone
		}
	}
	l.upstreamFailed(failBody, err)
	return audit.ReasonUpstreamBroken
}

// deliver writes a piece to the client and flushes it.
func (l *leg) deliver(piece []byte, now time.Time) error {
	l.extend(now)
	if _, err := l.w.Write(piece); err != nil {
		return err
	}
	return l.flush(now)
}

func (l *leg) flush(now time.Time) error {
	l.extend(now)
	if err := l.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// extend moves the write deadline on, at times.
func (l *leg) extend(now time.Time) {
	d := l.p.o.StallTimeout
	if d < 0 || now.Sub(l.extended) < d/16 {
		return
	}
	l.extended = now
	_ = l.control.SetWriteDeadline(now.Add(d)) // where there is none, the server sees to it
}
