package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSurplusIsNobodysAnswer has the upstream write more than its answer says:
// a whole further response, which must reach nobody. All tenants' exchanges
// press on few connections, so that one is wanted the moment it is free.
func TestSurplusIsNobodysAnswer(t *testing.T) {
	for _, tt := range []struct{ name, answer string }{
		{"declared", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine"},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmine\r\n0\r\n\r\n"},
		{"bodiless", "HTTP/1.1 204 No Content\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const surplus = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nanother"
			upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				for n := 0; ; n++ {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					answer := tt.answer
					if n%8 == 7 {
						answer += surplus
					}
					if _, err := io.WriteString(c, answer); err != nil {
						return
					}
				}
			})
			g := newRig(t, upstream, setup{})
			g.proxy.transport.MaxConnsPerHost = 2
			var wg sync.WaitGroup
			var wrong, failed atomic.Int32
			for range 16 {
				wg.Go(func() {
					for range 60 {
						res, got, err := g.do("POST", "/x", strings.NewReader("prompt"))
						switch {
						case err != nil || res.StatusCode == 502:
							failed.Add(1)
						case strings.Contains(string(got), "another"):
							wrong.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if n := wrong.Load(); n > 0 {
				t.Errorf("%d of 960 clients got the surplus of somebody else's answer", n)
			}
			if n := failed.Load(); n > 0 {
				t.Errorf("%d of 960 requests failed, though each could have been sent on another connection", n)
			}
		})
	}
}

// TestStaleConnectionsLoseNothing has the upstream close each connection after
// one answer, without having said so. A POST can't be sent twice, but one of
// which nothing has left can be sent elsewhere.
func TestStaleConnectionsLoseNothing(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		t.Run(fmt.Sprintf("chunked %t", chunked), func(t *testing.T) {
			closed := make(chan struct{}, 1)
			upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				b, _ := io.ReadAll(req.Body)
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
				c.Close()
				closed <- struct{}{}
			})
			g := newRig(t, upstream, setup{})
			for i := range 200 {
				want := fmt.Sprintf("prompt %d", i)
				var body io.Reader = strings.NewReader(want)
				if chunked {
					body = struct{ io.Reader }{body}
				}
				res, got := g.must("POST", "/x", body)
				if res.StatusCode != 200 || string(got) != want {
					t.Fatalf("request %d: got %d %q", i, res.StatusCode, got)
				}
				await(t, "close at the upstream", closed)
				if rec := g.record(); string(rec.RequestBody) != want || rec.RequestCut != "" {
					t.Fatalf("request %d: audit saw %q, cut %q", i, rec.RequestBody, rec.RequestCut)
				}
			}
		})
	}
}

// unscheduled is a connection whose reader doesn't come to see what has
// arrived after the first answer, as on a busy machine.
type unscheduled struct {
	*net.TCPConn
	reads  atomic.Int32
	closed chan struct{}
	once   sync.Once
}

func (c *unscheduled) Read(p []byte) (int, error) {
	if c.reads.Add(1) > 1 {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.TCPConn.Read(p)
}

func (c *unscheduled) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.TCPConn.Close()
}

// TestPostIsSentAgain has a kept connection end unnoticed. The request for which
// it is taken must go to another one, once and whole.
func TestPostIsSentAgain(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		t.Run(fmt.Sprintf("chunked %t", chunked), func(t *testing.T) {
			arrived := make(chan string, 10)
			end := make(chan struct{})
			upstream := serveRaw(t, func(n int, c net.Conn, r *bufio.Reader) {
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					b, _ := io.ReadAll(req.Body)
					arrived <- fmt.Sprintf("%d: %s", n, b)
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					if n == 0 {
						<-end
						return
					}
				}
			})
			g := newRig(t, upstream, setup{})
			first := make(chan *unscheduled, 1)
			g.proxy.transport.DialContext = func(_ context.Context, network, addr string) (net.Conn, error) {
				c, err := net.Dial(network, addr)
				if err != nil {
					return nil, err
				}
				u := &unscheduled{TCPConn: c.(*net.TCPConn), closed: make(chan struct{})}
				select {
				case first <- u:
					return newConn(u), nil
				default:
					return newConn(c), nil
				}
			}
			for i, want := range []string{"0: prompt 0", "1: prompt 1", "1: prompt 2"} {
				var body io.Reader = strings.NewReader(fmt.Sprintf("prompt %d", i))
				if chunked {
					body = struct{ io.Reader }{body}
				}
				if res, got := g.must("POST", "/x", body); res.StatusCode != 200 || string(got) != "ok" {
					t.Fatalf("request %d: got %d %q", i, res.StatusCode, got)
				}
				if got := await(t, "request", arrived); got != want {
					t.Errorf("request %d arrives as %q, want %q", i, got, want)
				}
				if i == 0 {
					close(end)
					for u := <-first; !pending(u); {
						time.Sleep(time.Millisecond) // the kernel's part
					}
					first <- nil // no more of them
				}
				if rec := g.record(); string(rec.RequestBody) != fmt.Sprintf("prompt %d", i) || rec.RequestCut != "" {
					t.Errorf("request %d: audit saw %s", i, brief(rec))
				}
			}
			if len(arrived) > 0 {
				t.Errorf("%q arrived besides", <-arrived)
			}
		})
	}
}

// TestConnectionsAreKept proves that the proof of drainage passes where all is
// well.
func TestConnectionsAreKept(t *testing.T) {
	var conns atomic.Int32
	upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		conns.Add(1)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
		}
	})
	g := newRig(t, upstream, setup{})
	for range 300 {
		g.must("POST", "/x", strings.NewReader("prompt"))
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("300 requests, one after another, took %d connections, want 1", n)
	}
}

func TestConnReuse(t *testing.T) {
	pair := func(t *testing.T) (*conn, net.Conn) {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		a, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close(); b.Close() })
		return newConn(a), b
	}
	t.Run("drained", func(t *testing.T) {
		c, far := pair(t)
		read := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 10))
			read <- err
		}()
		c.reuse()
		if !c.unsent() {
			t.Error("something counts as written")
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("write: %v", err)
		}
		if c.unsent() {
			t.Error("nothing counts as written")
		}
		far.Close()
		await(t, "read", read)
	})
	t.Run("closed", func(t *testing.T) {
		c, _ := pair(t)
		c.Close()
		c.reuse()
		if _, err := c.Write([]byte("x")); !errors.Is(err, errNotDrained) {
			t.Errorf("write: got %v, want errNotDrained", err)
		}
	})
	t.Run("waits for the reader", func(t *testing.T) {
		c, _ := pair(t)
		reused := make(chan struct{})
		go func() { c.reuse(); close(reused) }()
		select {
		case <-reused:
			t.Fatal("proven drained while nobody has looked")
		case <-time.After(20 * time.Millisecond):
		}
		c.Close() // the reader found something
		await(t, "reuse", reused)
		if _, err := c.Write([]byte("x")); !errors.Is(err, errNotDrained) {
			t.Errorf("write: got %v, want errNotDrained", err)
		}
	})
	t.Run("bytes lie ready", func(t *testing.T) {
		c, far := pair(t)
		if _, err := far.Write([]byte("surplus")); err != nil {
			t.Fatal(err)
		}
		for !pending(c.Conn) {
			time.Sleep(time.Millisecond) // the kernel's part
		}
		// A reader that asked for more, and wasn't yet given it.
		c.reading = true
		c.reuse()
		if _, err := c.Write([]byte("x")); !errors.Is(err, errNotDrained) {
			t.Errorf("write: got %v, want errNotDrained", err)
		}
	})
}
