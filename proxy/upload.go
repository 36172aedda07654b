package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// errUploadOver is what a transport reads that goes on reading a request's
// body when the exchange has ended.
var errUploadOver = errors.New("the exchange has ended")

// upload is the body of one request on its way: forwarded as it comes, while a
// copy is kept for the audit. The copy also serves to send the request again
// if nothing of it has left on a connection that turned out to be dead.
//
// The transport reads the body on a goroutine of its own, which may still be
// at it when the exchange ends, and must find nothing to read from then on.
type upload struct {
	src     io.Reader
	arrived func(body []byte, cut dialect.Reason) // called once, when the copy will grow no more
	expect  *expectation                          // nil unless the client waits for a 100 Continue

	turn     sync.Mutex // held while src is read
	mu       sync.Mutex
	kept     []byte // the copy
	limit    int    // of kept; 0 keeps none
	declared int64  // bytes that the request says it has; below 0 if it doesn't
	read     int64  // bytes read from src
	whole    bool   // src was read to its end
	err      error  // that reading src failed with
	running  *attempt
	last     bool // no attempt will follow the running one
	handed   bool // arrived was called
	over     bool // the exchange has ended
}

func newUpload(r *http.Request, limit int, arrived func([]byte, dialect.Reason)) *upload {
	u := &upload{src: r.Body, limit: limit, declared: r.ContentLength, arrived: arrived}
	if hasToken(r.Header["Expect"], "100-continue") {
		u.expect = &expectation{over: make(chan struct{})}
	}
	return u
}

// expectation keeps a request's body unread while the upstream has answered an
// Expect: 100-continue with something else. Reading it would make the server
// send the 100 itself, behind the upstream's back. After such an answer the
// transport reads the body in order to keep its connection, so the first read
// has to wait until the answer has been passed on whole.
type expectation struct {
	answered, continued atomic.Bool
	over                chan struct{} // closed when the exchange ends
}

// attempt is one reading of the body, from its beginning.
type attempt struct {
	u       *upload
	at      int64 // bytes that it has read; guarded by u.mu
	started bool
}

// Read implements [io.Reader] for the transport.
func (a *attempt) Read(p []byte) (int, error) {
	if e := a.u.expect; e != nil && !a.started && e.answered.Load() && !e.continued.Load() {
		<-e.over
	}
	a.started = true
	return a.u.advance(a, p)
}

// Close implements [io.Closer]. The body belongs to the server, which closes
// it after the exchange.
func (a *attempt) Close() error { return nil }

// begin returns the body from its beginning, or nil if not all of what was
// read is still here.
func (u *upload) begin() *attempt {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over || u.last || u.read > int64(len(u.kept)) {
		return nil
	}
	u.running = &attempt{u: u}
	return u.running
}

// advance reads from the copy what was read before, and goes on from there.
func (u *upload) advance(a *attempt, p []byte) (int, error) {
	u.turn.Lock() // an attempt that was given up may still be reading
	defer u.turn.Unlock()
	u.mu.Lock()
	switch {
	case u.over || u.running != a:
		u.mu.Unlock()
		return 0, errUploadOver
	case a.at < u.read:
		n := copy(p, u.kept[a.at:])
		a.at += int64(n)
		u.release()
		u.mu.Unlock()
		return n, nil
	case u.whole:
		u.mu.Unlock()
		return 0, io.EOF
	case u.err != nil:
		defer u.mu.Unlock()
		return 0, u.err
	}
	u.mu.Unlock()

	n, err := u.src.Read(p)

	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return 0, errUploadOver
	}
	u.read += int64(n)
	if u.whole = err == io.EOF; !u.whole {
		u.err = err
	}
	a.at = u.read
	if !u.handed {
		u.keep(p[:n])
	}
	if u.running != a {
		return 0, errUploadOver
	}
	return n, err
}

// keep adds to the copy, and hands it over when it has come to its end.
func (u *upload) keep(b []byte) {
	if room := u.limit - len(u.kept); len(b) > room {
		u.grow(room)
		u.kept = append(u.kept, b[:room]...)
		u.hand(audit.ReasonTooLarge)
		return
	}
	u.grow(len(b))
	u.kept = append(u.kept, b...)
	if u.whole {
		u.hand("")
	} else if u.err != nil {
		u.hand(audit.ReasonClientGone)
	}
}

// grow makes room for n more bytes. A declared length is believed only as far
// as bytes have come: at most three times as many again are set aside.
func (u *upload) grow(n int) {
	if cap(u.kept)-len(u.kept) >= n {
		return
	}
	need := len(u.kept) + n
	size := max(2*cap(u.kept), need, 4<<10)
	if u.declared >= int64(need) {
		size = int(min(int64(max(4*cap(u.kept), need, 4<<10)), u.declared))
	}
	grown := make([]byte, len(u.kept), min(size, u.limit))
	copy(grown, u.kept)
	u.kept = grown
}

func (u *upload) hand(cut dialect.Reason) {
	u.handed = true
	u.arrived(u.kept, cut)
	u.release()
}

// settle says that no attempt will follow the running one.
func (u *upload) settle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = true
	u.release()
}

// release lets go of the copy, which can be large, once nobody reads it here.
// A response may take minutes, and the audit has long been done with it.
func (u *upload) release() {
	if u.handed && (u.over || u.last && u.running.at >= u.read) {
		u.kept = nil
	}
}

// ended says whether the body was read to its end, and broken whether reading
// it failed.
func (u *upload) ended() (ended, broken bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.whole, u.err != nil
}

// untouched says whether the client still waits to be asked for the body.
func (u *upload) untouched() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.expect != nil && u.read == 0 && !u.whole && u.err == nil
}

// end ends the upload, whatever came of it. cut says why, if the body isn't
// whole.
func (u *upload) end(cut dialect.Reason) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return
	}
	u.over = true
	if u.expect != nil {
		close(u.expect.over)
	}
	if !u.handed {
		u.hand(cut)
	}
	u.release()
}
