package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/auditproxy/auditproxy/proxy/audit"
)

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// TestBytesUntouched sends bodies of every kind both ways, with the audit on,
// and compares the bytes and the headers with those of the direct way.
func TestBytesUntouched(t *testing.T) {
	rnd := seeded(t)
	const chat = `{"model":"m","messages":[{"role":"user","content":"hello there"}]}`
	bodies := map[string][]byte{
		"empty":         nil,
		"one byte":      {0},
		"json":          []byte(chat),
		"broken json":   []byte(chat[:31]),
		"wrong types":   []byte(`{"messages":7,"model":[],"stream":"yes"}`),
		"invalid utf-8": []byte("{\"prompt\":\"\xff\xfe\xc3\x28\"}"),
		"gzip":          gzipped([]byte(chat)),
		"binary 100 KB": randomBytes(rnd, 100<<10),
		"binary 5 MB":   randomBytes(rnd, 5<<20),
		"sse":           []byte("data: {\"choices\":[]}\n\n:\n\ndata: [DONE]\n\n"),
	}
	paths := []string{
		"/v1/chat/completions", "/v1/completions", "/client/v4/accounts/a1/ai/run/@cf/m", "/no/such/path", "/",
	}
	types := []string{"application/json", "text/event-stream", "", "application/octet-stream"}

	type arrived struct {
		Method, URI, Sum string
		Length           int64
		Header           http.Header
	}
	seen := make(chan arrived, 1)
	var answer []byte
	var declare bool
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sum := sha256.Sum256(b)
		seen <- arrived{r.Method, r.RequestURI, hex.EncodeToString(sum[:]), r.ContentLength, r.Header}
		h := w.Header()
		h["Content-Type"] = nil
		if v := r.Header.Get("X-Want-Type"); v != "" {
			h.Set("Content-Type", v)
		}
		h["Date"] = nil
		h.Add("Set-Cookie", "a=1")
		h.Add("Set-Cookie", "b=2")
		h.Set("X-Upstream", "yes")
		if declare {
			h.Set("Content-Length", strconv.Itoa(len(answer)))
		} else {
			w.WriteHeader(http.StatusTeapot)
			w.(http.Flusher).Flush()
		}
		w.Write(answer)
	})
	g := newRig(t, upstream, setup{})
	direct := &http.Transport{DisableCompression: true}
	defer direct.CloseIdleConnections()

	send := func(rt http.RoundTripper, base, path, kind string, body []byte) (*http.Response, []byte) {
		t.Helper()
		req, err := http.NewRequest("POST", base+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Want-Type", kind)
		req.Header.Set("Authorization", "Bearer k")
		req.Header.Add("X-Many", "1")
		req.Header.Add("X-Many", "2")
		req.Header["User-Agent"] = []string{""} // none is sent
		res, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, got
	}
	n := 0
	for name, body := range bodies {
		for _, path := range paths {
			n++
			kind := types[n%len(types)]
			declare = n%2 == 0
			answer = body
			t.Run(fmt.Sprintf("%s at %s as %q", name, path, kind), func(t *testing.T) {
				plain, want := send(direct, upstream, path, kind, body)
				wantSeen := <-seen
				res, got := send(g.client.Transport, g.server.URL, path, kind, body)
				gotSeen := <-seen

				if !bytes.Equal(got, want) {
					t.Errorf("response: got %d bytes, want %d, and they differ", len(got), len(want))
				}
				if res.StatusCode != plain.StatusCode || res.ContentLength != plain.ContentLength {
					t.Errorf("got status %d length %d, want %d and %d", res.StatusCode, res.ContentLength, plain.StatusCode, plain.ContentLength)
				}
				if d := cmp.Diff(plain.Header, res.Header); d != "" {
					t.Errorf("response header (-direct +proxied):\n%s", d)
				}
				wantSeen.Header.Set("X-Forwarded-For", "127.0.0.1")
				wantSeen.Header.Set("X-Forwarded-Proto", "http")
				wantSeen.Header.Set("X-Forwarded-Host", g.server.Listener.Addr().String())
				if d := cmp.Diff(wantSeen, gotSeen); d != "" {
					t.Errorf("request at the upstream (-direct +proxied):\n%s", d)
				}
				rec := g.record()
				if !bytes.Equal(rec.RequestBody, body) || !bytes.Equal(rec.ResponseBody, body) {
					t.Errorf("audit saw %d bytes of the request and %d of the response, want %d of both",
						len(rec.RequestBody), len(rec.ResponseBody), len(body))
				}
				if rec.RequestCut != "" || rec.ResponseCut != "" {
					t.Errorf("cuts %q and %q of a whole exchange", rec.RequestCut, rec.ResponseCut)
				}
			})
		}
	}
}

// TestLargePrompt forwards 50 MB, declared and chunked, of which the audit
// copies what it may.
func TestLargePrompt(t *testing.T) {
	const size = 50 << 20
	body := bytes.Repeat([]byte("The quick brown fox. "), size/21+1)[:size]
	want := sha256.Sum256(body)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, _ := io.Copy(h, r.Body)
		fmt.Fprintf(w, "%d %x", n, h.Sum(nil))
	})
	for _, tt := range []struct {
		name    string
		limit   int
		declare bool
		seen    int
		cut     string
	}{
		{"whole, declared", 0, true, size, ""},
		{"capped, chunked", 1 << 20, false, 1 << 20, "too_large"},
		{"capped, declared", 1000, true, 1000, "too_large"},
		{"cap is its size", size, false, size, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, upstream, setup{options: Options{MaxRequestCopy: tt.limit}})
			var src io.Reader = bytes.NewReader(body)
			if !tt.declare {
				src = struct{ io.Reader }{src}
			}
			_, got := g.must("POST", "/upload", src)
			if want := fmt.Sprintf("%d %x", size, want); string(got) != want {
				t.Errorf("upstream got %s, want %s", got, want)
			}
			rec := g.record()
			if len(rec.RequestBody) != tt.seen || !bytes.HasPrefix(body, rec.RequestBody) {
				t.Errorf("audit saw %d bytes, want the first %d", len(rec.RequestBody), tt.seen)
			}
			if string(rec.RequestCut) != tt.cut {
				t.Errorf("cut %q, want %q", rec.RequestCut, tt.cut)
			}
		})
	}
}

// TestChunksComeAtOnce has the upstream send each piece only when the client
// has seen the one before.
func TestChunksComeAtOnce(t *testing.T) {
	rnd := seeded(t)
	whole := []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"caf\u00e9 \U0001F600 one two three\"}}]}\n\ndata: [DONE]\n\n")
	var pieces [][]byte
	for rest := whole; len(rest) > 0; {
		n := min(1+rnd.IntN(9), len(rest))
		pieces = append(pieces, rest[:n])
		rest = rest[n:]
	}
	for _, tt := range []struct {
		name    string
		kind    string
		declare bool
		h2      bool
	}{
		{"sse", "text/event-stream", false, false},
		{"sse declared", "text/event-stream; charset=utf-8", true, false},
		{"json chunked", "application/json", false, false},
		{"json declared", "application/json", true, false},
		{"sse h2", "text/event-stream", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			confirmed := make(chan struct{})
			upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				if tt.declare {
					w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
				}
				w.WriteHeader(200)
				if slowHeaders := !tt.declare || strings.HasPrefix(tt.kind, "text/event-stream"); slowHeaders {
					w.(http.Flusher).Flush()
					await(t, "headers at the client", confirmed)
				}
				for _, b := range pieces {
					w.Write(b)
					w.(http.Flusher).Flush()
					await(t, "piece at the client", confirmed)
				}
			})
			g := newRig(t, upstream, setup{tls: tt.h2})
			res, err := g.client.Post(g.server.URL+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if want := map[bool]int{false: 1, true: 2}[tt.h2]; res.ProtoMajor != want {
				t.Fatalf("client speaks HTTP/%d, want %d", res.ProtoMajor, want)
			}
			if !tt.declare || strings.HasPrefix(tt.kind, "text/event-stream") {
				confirmed <- struct{}{}
			}
			for i, want := range pieces {
				got := make([]byte, len(want))
				if _, err := io.ReadFull(res.Body, got); err != nil {
					t.Fatalf("piece %d: %v", i, err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("piece %d: got %q, want %q", i, got, want)
				}
				confirmed <- struct{}{}
			}
			if rest, err := io.ReadAll(res.Body); len(rest) > 0 || err != nil {
				t.Errorf("after the last piece: %q, %v", rest, err)
			}
			if rec := g.record(); !bytes.Equal(rec.ResponseBody, whole) {
				t.Errorf("audit saw %q, want %q", rec.ResponseBody, whole)
			}
		})
	}
}

// TestBrokenUpstreamShows kills the upstream inside a response.
func TestBrokenUpstreamShows(t *testing.T) {
	for _, tt := range []struct {
		name     string
		declare  bool
		clientH2 bool
		serverH2 bool
	}{
		{"chunked", false, false, false},
		{"declared", true, false, false},
		{"h2 client", false, true, false},
		{"h2 both", false, true, true},
		{"h2 upstream", true, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := make(chan struct{})
			u := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.declare {
					w.Header().Set("Content-Length", "1000")
				}
				w.Write([]byte("data: half\n"))
				w.(http.Flusher).Flush()
				await(t, "half at the client", seen)
				panic(http.ErrAbortHandler)
			}))
			o := Options{HTTP2: tt.serverH2}
			if tt.serverH2 {
				u.EnableHTTP2 = true
				u.StartTLS()
				o.TLS = u.Client().Transport.(*http.Transport).TLSClientConfig
			} else {
				u.Start()
			}
			t.Cleanup(u.Close)
			g := newRig(t, u.URL, setup{options: o, tls: tt.clientH2})
			res, err := g.client.Post(g.server.URL+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			half := make([]byte, 11)
			if _, err := io.ReadFull(res.Body, half); err != nil {
				t.Fatal(err)
			}
			close(seen)
			rest, err := io.ReadAll(res.Body)
			if err == nil {
				t.Errorf("the stream ends as if it were whole, after %q", rest)
			}
			rec := g.record()
			if rec.ResponseCut != audit.ReasonUpstreamBroken || !rec.Aborted || string(rec.ResponseBody) != "data: half\n" {
				t.Errorf("audit saw cut %q, aborted %t, body %q", rec.ResponseCut, rec.Aborted, rec.ResponseBody)
			}
		})
	}
}

// TestChunkedEndIsMissing looks at the bytes of a broken response.
func TestChunkedEndIsMissing(t *testing.T) {
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("half"))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	g := newRig(t, upstream, setup{})
	c, r := g.dial()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(all, []byte("\r\n4\r\nhalf\r\n")) {
		t.Errorf("response ends with %q, want the half chunk and nothing behind", all[max(0, len(all)-30):])
	}
}

// TestClientLeaves has the client leave inside a response: the upstream is told,
// and the audit reads what came.
func TestClientLeaves(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2 %t", h2), func(t *testing.T) {
			cancelled := make(chan struct{})
			upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Write([]byte("partial"))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(cancelled)
			})
			g := newRig(t, upstream, setup{tls: h2})
			res, err := g.client.Post(g.server.URL+"/x", "text/plain", strings.NewReader("prompt"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, make([]byte, 7)); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			await(t, "cancellation at the upstream", cancelled)
			rec := g.record()
			if rec.ResponseCut != audit.ReasonClientGone || !rec.Aborted || string(rec.ResponseBody) != "partial" || string(rec.RequestBody) != "prompt" {
				t.Errorf("audit saw cut %q, aborted %t, request %q, response %q", rec.ResponseCut, rec.Aborted, rec.RequestBody, rec.ResponseBody)
			}
		})
	}
}

// TestClientLeavesBeforeAnswer has the client leave while the upstream thinks.
func TestClientLeavesBeforeAnswer(t *testing.T) {
	asked, cancelled := make(chan struct{}), make(chan struct{})
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
		close(cancelled)
	})
	g := newRig(t, upstream, setup{})
	c, _ := g.dial()
	fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nprompt")
	await(t, "request", asked)
	c.Close()
	await(t, "cancellation at the upstream", cancelled)
	rec := g.record()
	if rec.Status != 0 || !rec.Aborted || rec.ResponseCut != audit.ReasonClientGone || rec.RequestCut != "" || string(rec.RequestBody) != "prompt" {
		t.Errorf("audit saw %s", brief(rec))
	}
}

// TestClientLeavesUploading has the client leave inside its request.
func TestClientLeavesUploading(t *testing.T) {
	got := make(chan string, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- string(b)
	})
	g := newRig(t, upstream, setup{})
	c, _ := g.dial()
	fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\npart of a prompt")
	c.Close()
	if s := await(t, "request", got); s != "part of a prompt" {
		t.Errorf("upstream got %q", s)
	}
	rec := g.record()
	if rec.Status != 0 || rec.RequestCut != audit.ReasonClientGone || rec.ResponseCut != audit.ReasonClientGone || string(rec.RequestBody) != "part of a prompt" {
		t.Errorf("audit saw %s", brief(rec))
	}
}

// TestUpstreamUnreachable answers in our own name, and has the prompt audited.
func TestUpstreamUnreachable(t *testing.T) {
	g := newRig(t, nowhere, setup{})
	for _, body := range []io.Reader{
		strings.NewReader("a prompt"),
		struct{ io.Reader }{strings.NewReader("a prompt")},
	} {
		res, got := g.must("POST", "/v1/chat/completions?key=secret", body)
		if res.StatusCode != 502 || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
		}
		const want = `{"error":{"type":"upstream_error","message":"the upstream gave no answer"}}`
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if res.Close {
			t.Error("the client's connection is closed, though its request was read to the end")
		}
		rec := g.record()
		if rec.Status != 0 || rec.RequestCut != "" || string(rec.RequestBody) != "a prompt" || rec.ResponseCut != audit.ReasonUpstreamBroken {
			t.Errorf("audit saw %s", brief(rec))
		}
	}
}

// TestFailedPromptIsIndexed is law 6: what a tenant sent counts, whatever
// became of it.
func TestFailedPromptIsIndexed(t *testing.T) {
	g := newRig(t, nowhere, setup{})
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "word%d thing%d ", i, i*7)
	}
	g.must("POST", "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"`+text.String()+`"}]}`))
	if s := g.summary(); s.PromptPrints == 0 || g.engine.Index().Stats().Prints == 0 {
		t.Errorf("index holds %d prints after a prompt of %d", g.engine.Index().Stats().Prints, s.PromptPrints)
	}
}

// TestUpstreamNonsense has the upstream send what is no response.
func TestUpstreamNonsense(t *testing.T) {
	for name, answer := range map[string]string{
		"no HTTP":          "hello\r\n\r\n",
		"nothing":          "",
		"half a header":    "HTTP/1.1 200 OK\r\nContent-Le",
		"status 099":       "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n",
		"unasked upgrade":  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"two lengths":      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
		"unknown encoding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: cbor\r\n\r\nabc",
	} {
		t.Run(name, func(t *testing.T) {
			upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if req, err := http.ReadRequest(r); err == nil {
					io.Copy(io.Discard, req.Body)
					io.WriteString(c, answer)
				}
			})
			g := newRig(t, upstream, setup{})
			res, _ := g.must("POST", "/x", strings.NewReader("prompt"))
			if res.StatusCode != 502 {
				t.Errorf("got %d, want 502", res.StatusCode)
			}
			if rec := g.record(); rec.Status != 0 || rec.ResponseCut != audit.ReasonUpstreamBroken || string(rec.RequestBody) != "prompt" {
				t.Errorf("audit saw %s", brief(rec))
			}
		})
	}
}

func TestConnectRefused(t *testing.T) {
	g := newRig(t, nowhere, setup{})
	c, r := g.dial()
	fmt.Fprintf(c, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 405 {
		t.Errorf("got %d, want 405", res.StatusCode)
	}
}

// TestStalledClient has a client take nothing of a large response.
func TestStalledClient(t *testing.T) {
	cancelled := make(chan struct{})
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(b); err != nil {
				break
			}
		}
		close(cancelled)
	})
	g := newRig(t, upstream, setup{options: Options{StallTimeout: 100 * time.Millisecond}})
	c, _ := g.dial()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	await(t, "end at the upstream", cancelled)
	if rec := g.record(); rec.ResponseCut != audit.ReasonClientGone && rec.ResponseCut != audit.ReasonOverload {
		t.Errorf("cut %q, want client_gone", rec.ResponseCut)
	}
}
