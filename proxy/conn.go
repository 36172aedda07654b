package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Upstream connections carry the exchanges of all tenants, one after another.
// If an upstream writes more than an answer's framing says, the surplus must
// never be taken for the next answer: that would be the very leak this program
// exists to catch, made by itself. http.Transport notices a surplus on an idle
// connection, but only in its read loop: for a moment after an answer has
// ended the connection can be given to the next request while the surplus sits
// in the buffer (golang/go#68653).
//
// So a connection is proven drained before it is used again. The proof needs
// no second parser: Transport reads a connection through one buffer, and asks
// for more only when that buffer is empty. If no exchange runs and a Read is
// waiting for bytes, there is no surplus. If there is one, the read loop sees
// it, since it can't be between answers without looking, and closes the
// connection. reuse waits for one or the other, for the moment that the read
// loop takes to come round. Bytes that have reached this machine but no Read
// yet are looked for with MSG_PEEK, where the system has it; that also finds
// connections that the upstream has just closed. What is still on the way
// when the next request is written nobody can tell from an answer to it.
//
// A connection that is not clean refuses to write, so that nothing of the
// request has left and it can be sent again on another one, even a POST.

// errNotDrained says that an upstream connection held bytes, or its end, where
// it should have been idle.
var errNotDrained = errors.New("upstream connection was not idle when it should have been")

// conn is an upstream connection that knows whether it is drained.
type conn struct {
	net.Conn

	mu      sync.Mutex
	moved   sync.Cond // reading or closed has changed
	reading bool      // a Read waits for bytes
	closed  bool
	refused bool // not clean when it was to be used again
	sent    bool // bytes were written since reuse
}

func newConn(c net.Conn) *conn {
	g := &conn{Conn: c}
	g.moved.L = &g.mu
	return g
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.reading = true
	c.moved.Broadcast()
	c.mu.Unlock()

	n, err := c.Conn.Read(p)

	c.mu.Lock()
	c.reading = false
	c.closed = c.closed || err != nil
	c.moved.Broadcast()
	c.mu.Unlock()
	return n, err
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	refused := c.refused
	c.sent = c.sent || !refused
	c.mu.Unlock()
	if refused {
		return 0, errNotDrained
	}
	return c.Conn.Write(p)
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.moved.Broadcast()
	c.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends one direction, as an upgraded connection may need.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// reuse is called before an exchange begins on a connection that has carried
// others. If it is not proven drained, nothing can be written any more.
func (c *conn) reuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = false
	for !c.reading && !c.closed {
		c.moved.Wait()
	}
	c.refused = c.closed || pending(c.Conn)
}

// unsent says whether nothing was written since reuse.
func (c *conn) unsent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.sent
}

// connOf returns the conn below an HTTP/1 connection of the transport, or nil
// for HTTP/2, whose frames leave no doubt about what belongs where.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		c = t.NetConn()
	}
	g, _ := c.(*conn)
	return g
}

// newTransport returns the transport to the upstream.
func newTransport(o Options) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return newConn(c), nil
		},
		TLSClientConfig:     o.TLS,
		TLSHandshakeTimeout: 10 * time.Second,
		// Encodings are the client's choice, and its answer is passed as it is.
		DisableCompression: true,
		// All requests go to one host. Two idle connections, the standard,
		// would have most requests dial.
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     o.IdleTimeout,
		// As long as curl waits for an upstream that ignores the expectation.
		ExpectContinueTimeout: time.Second,
		Protocols:             new(http.Protocols),
	}
	switch {
	case !o.HTTP2:
		t.Protocols.SetHTTP1(true)
	case o.Upstream.Scheme == "http":
		t.DialContext = dialer.DialContext
		t.Protocols.SetUnencryptedHTTP2(true)
	default:
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(true)
	}
	return t
}
