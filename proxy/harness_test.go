package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/auditproxy/auditproxy/detectors"
	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
	"github.com/auditproxy/auditproxy/store"
)

func TestMain(m *testing.M) {
	// net/http logs the beginning of what an upstream sends too much.
	log.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

// patience bounds what a test waits for. Nothing here takes long unless it
// hangs.
const patience = 10 * time.Second

// nowhere is an upstream that nobody serves: a reserved port, so that no test's
// server is given it.
const nowhere = "http://127.0.0.1:1"

// rig is a proxy with an audit, between a test's upstream and a real client.
type rig struct {
	t      testing.TB
	proxy  *Proxy
	server *httptest.Server
	client *http.Client
	engine *audit.Engine
	sink   *sink
}

// setup changes what a rig is made with.
type setup struct {
	options Options
	engine  audit.Options
	server  func(*http.Server) // before it starts
	tls     bool               // between client and proxy, with h2

	unrecorded bool // neither captured nor told to the sink
}

// newRig starts a proxy in front of upstream.
func newRig(t testing.TB, upstream string, s setup) *rig {
	t.Helper()
	index, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := newSink()
	if !s.unrecorded {
		s.engine.Sinks = append(s.engine.Sinks, k)
	}
	engine, err := audit.New(fingerprint.NewScheme(fingerprint.Key{7}), index, s.engine)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	s.options.Upstream = u
	s.options.Engine = engine
	if record := s.options.Record; !s.unrecorded {
		s.options.Record = func(r *audit.Record) {
			if record != nil {
				record(r)
			}
			k.record(r)
		}
	}
	p, err := New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(p)
	if s.server != nil {
		s.server(server.Config)
	}
	if s.tls {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	client := server.Client()
	transport := client.Transport.(*http.Transport)
	transport.DisableCompression = true
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return &rig{t: t, proxy: p, server: server, client: client, engine: engine, sink: k}
}

// serve starts an upstream.
func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// serveRaw starts an upstream that speaks bytes: handle gets each connection,
// and its number, and closes it by returning.
func serveRaw(t testing.TB, handle func(n int, c net.Conn, r *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				handle(n, c, bufio.NewReader(c))
				c.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// dial opens a connection to the rig's proxy.
func (g *rig) dial() (net.Conn, *bufio.Reader) {
	g.t.Helper()
	c, err := net.Dial("tcp", g.server.Listener.Addr().String())
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		g.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// do sends a request through the proxy and reads the whole response.
func (g *rig) do(method, path string, body io.Reader, header ...string) (*http.Response, []byte, error) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.(*testing.T).Context(), method, g.server.URL+path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := g.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res, got, err
}

// must is do for a request that works.
func (g *rig) must(method, path string, body io.Reader, header ...string) (*http.Response, []byte) {
	g.t.Helper()
	res, got, err := g.do(method, path, body, header...)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res, got
}

// sink keeps what the audit and the capture say of each exchange.
type sink struct {
	summaries chan audit.Summary
	records   chan *audit.Record
	findings  chan detectors.Finding
}

func newSink() *sink {
	return &sink{
		summaries: make(chan audit.Summary, 10000),
		records:   make(chan *audit.Record, 10000),
		findings:  make(chan detectors.Finding, 10000),
	}
}

func (k *sink) Finding(f detectors.Finding, _ bool) { k.findings <- f }
func (k *sink) Exchange(s audit.Summary)            { k.summaries <- s }
func (k *sink) record(r *audit.Record)              { k.records <- r }

func await[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing came in %v", what, patience)
		panic("unreachable")
	}
}

// summary returns what the audit says of the next exchange to end.
func (g *rig) summary() audit.Summary {
	g.t.Helper()
	return await(g.t, "summary", g.sink.summaries)
}

// record returns the next exchange to end, as captured.
func (g *rig) record() *audit.Record {
	g.t.Helper()
	return await(g.t, "record", g.sink.records)
}

// brief says of a record what failures are told by.
func brief(r *audit.Record) string {
	return fmt.Sprintf("%s %s, status %d, aborted %t, request %d bytes %.40q cut %q, response %d bytes %.40q cut %q", r.Method, r.Path, r.Status, r.Aborted,
		len(r.RequestBody), r.RequestBody, r.RequestCut, len(r.ResponseBody), r.ResponseBody, r.ResponseCut)
}

func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// stuck is a dialect whose decoder stops at its first bytes until released.
type stuck struct {
	entered chan struct{} // gets a value for each decoder that stopped
	release chan struct{} // closed to let all go on
}

func newStuck() *stuck {
	return &stuck{entered: make(chan struct{}, 10000), release: make(chan struct{})}
}

func (*stuck) Name() string              { return "stuck" }
func (*stuck) Match(_, path string) bool { return path == "/stuck" }
func (s *stuck) Decoder(dialect.Prompt, dialect.Header) dialect.Decoder {
	return &stuckDecoder{s: s}
}

func (*stuck) Prompt([]byte, string, dialect.Header) (dialect.Prompt, error) {
	return dialect.Prompt{}, nil
}

type stuckDecoder struct {
	s    *stuck
	text bytes.Buffer
}

func (d *stuckDecoder) Append(dst []dialect.Delta, b []byte) []dialect.Delta {
	if d.text.Len() == 0 {
		d.s.entered <- struct{}{}
		<-d.s.release
	}
	d.text.Write(b)
	return append(dst, dialect.Delta{Channel: dialect.Content, Text: string(b)})
}

func (d *stuckDecoder) Finish(dst []dialect.Delta) ([]dialect.Delta, error) { return dst, nil }
func (d *stuckDecoder) Info() dialect.Info                                  { return dialect.Info{} }
