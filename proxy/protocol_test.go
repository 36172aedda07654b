package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"net/http/httptrace"

	"github.com/google/go-cmp/cmp"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// TestTargetKept sends request targets that parsing would change, and looks at
// the request line that arrives.
func TestTargetKept(t *testing.T) {
	lines := make(chan string, 1)
	upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			line, err := textproto.NewReader(r).ReadLine()
			if err != nil {
				return
			}
			for {
				h, err := textproto.NewReader(r).ReadLine()
				if err != nil {
					return
				}
				if h == "" {
					break
				}
			}
			lines <- line
			io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	for _, tt := range []struct{ base, target, want string }{
		{"", "/", "/"},
		{"", "/?", "/?"},
		{"", "/a?b=1;c=2&d", "/a?b=1;c=2&d"},
		{"", "/a?b=%zz&c=%", "/a?b=%zz&c=%"},
		{"", "/a?q=a+b%20c&q=&&", "/a?q=a+b%20c&q=&&"},
		{"", "/a%2Fb/c%2fd", "/a%2Fb/c%2fd"},
		{"", "/%7Euser/~user/%41", "/%7Euser/~user/%41"},
		{"", "/v1/{id}/\"x\"|y", "/v1/{id}/\"x\"|y"},
		{"", "/caf\xc3\xa9/\xff", "/caf\xc3\xa9/\xff"},
		{"", "/a/../b/./c//d/", "/a/../b/./c//d/"},
		{"", "/run/@cf/zai-org/glm-5.3", "/run/@cf/zai-org/glm-5.3"},
		{"", "//double/x?y", "//double/x?y"},
		{"", "//evil.example/%2f", "//evil.example/%2f"},
		{"", "http://other.example/abs?x=;", "/abs?x=;"},
		{"/base/", "/a%2Fb?c=;", "/base/a%2Fb?c=;"},
		{"/b%2Fc", "/x", "/b%2Fc/x"},
	} {
		t.Run(tt.base+tt.target, func(t *testing.T) {
			g := newRig(t, upstream+tt.base, setup{})
			c, r := g.dial()
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", tt.target)
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != 204 {
				t.Fatalf("got %v, %v", res, err)
			}
			if got, want := <-lines, "GET "+tt.want+" HTTP/1.1"; got != want {
				t.Errorf("request line: got %q, want %q", got, want)
			}
			path, _, _ := strings.Cut(tt.want, "?")
			if rec := g.record(); !strings.HasSuffix(path, rec.Path) {
				t.Errorf("audit saw path %q, want %q", rec.Path, path)
			}
		})
	}
}

func TestOptionsStar(t *testing.T) {
	g := newRig(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Uri", r.RequestURI)
	}), setup{options: Options{}})
	c, r := g.dial()
	fmt.Fprintf(c, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("got %v, %v", res, err)
	}
}

// TestRewrittenRequest is a handler before the proxy that changes the path.
func TestRewrittenRequest(t *testing.T) {
	uri := make(chan string, 1)
	g := newRig(t, serve(t, func(w http.ResponseWriter, r *http.Request) { uri <- r.RequestURI }), setup{})
	outer := httptest.NewServer(http.StripPrefix("/llm", g.proxy))
	defer outer.Close()
	res, err := outer.Client().Get(outer.URL + "/llm/v1/models?x=1")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got := <-uri; got != "/v1/models?x=1" {
		t.Errorf("upstream saw %q", got)
	}
}

// TestRequestHeaders looks at what of a request's header arrives upstream.
func TestRequestHeaders(t *testing.T) {
	got := make(chan http.Header, 1)
	hosts := make(chan string, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { got <- r.Header; hosts <- r.Host })
	upstreamHost := strings.TrimPrefix(upstream, "http://")
	const own = "X-Forwarded-For: 127.0.0.1\nX-Forwarded-Host: a.example\nX-Forwarded-Proto: http\n"
	for _, tt := range []struct {
		name, head, want string
		preserve         bool
	}{
		{"nothing", "", own, false},
		{"host kept", "", own, true},
		{"user agent and encodings stay", "User-Agent: curl/8\r\nAccept-Encoding: zstd, br;q=0.5\r\n",
			"Accept-Encoding: zstd, br;q=0.5\nUser-Agent: curl/8\n" + own, false},
		{"hop by hop", "Connection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: Basic eA==\r\nTE: trailers, deflate\r\nProxy-Connection: close\r\n",
			"Te: trailers\n" + own, false},
		{"h2c upgrade", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", own, false},
		{"h2c upgrade, settings unnamed", "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", own, false},
		{"websocket or h2c", "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", own, false},
		{"other upgrade", "Connection: upgrade\r\nUpgrade: TLS/1.0\r\n", own, false},
		{"forwarded by a hop", "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b.example\r\nForwarded: for=10.0.0.1\r\n",
			"Forwarded: for=10.0.0.1\nX-Forwarded-For: 10.0.0.1, 10.0.0.2, 127.0.0.1\nX-Forwarded-Host: b.example\nX-Forwarded-Proto: https\n", false},
		{"forwarded named in Connection", "Connection: X-Forwarded-For, X-Forwarded-Proto\r\nX-Forwarded-For: 10.0.0.1\r\n",
			"X-Forwarded-For: 10.0.0.1, 127.0.0.1\nX-Forwarded-Host: a.example\nX-Forwarded-Proto: http\n", false},
		{"credentials stay", "Authorization: Bearer k\r\nCookie: a=b\r\nX-Api-Key: z\r\n",
			"Authorization: Bearer k\nCookie: a=b\nX-Api-Key: z\n" + own, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, upstream, setup{options: Options{PreserveHost: tt.preserve}})
			c, r := g.dial()
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a.example\r\n%s\r\n", tt.head)
			if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 200 {
				t.Fatalf("got %v, %v", res, err)
			}
			var b bytes.Buffer
			h := <-got
			if err := h.Write(&b); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, strings.ReplaceAll(b.String(), "\r\n", "\n")); d != "" {
				t.Errorf("header at the upstream (-want +got):\n%s", d)
			}
			want := upstreamHost
			if tt.preserve {
				want = "a.example"
			}
			if host := <-hosts; host != want {
				t.Errorf("Host: got %q, want %q", host, want)
			}
		})
	}
}

// TestResponseHopByHop keeps the upstream's connection headers from the client.
func TestResponseHopByHop(t *testing.T) {
	upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: X-Secret\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c\r\nX-Kept: 1\r\nContent-Length: 2\r\n\r\nok")
	})
	g := newRig(t, upstream, setup{})
	res, got := g.must("GET", "/", nil)
	want := http.Header{"X-Kept": {"1"}, "Content-Length": {"2"}}
	if d := cmp.Diff(want, res.Header); d != "" || string(got) != "ok" {
		t.Errorf("body %q, header (-want +got):\n%s", got, d)
	}
}

// TestTrailers passes trailers both ways, announced and not.
func TestTrailers(t *testing.T) {
	for _, clientH2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2 client %t", clientH2), func(t *testing.T) {
			trailers := make(chan http.Header, 1)
			upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				trailers <- r.Trailer
				w.Header().Set("Trailer", "X-Announced")
				io.WriteString(w, "body")
				w.Header().Set("X-Announced", "a")
				w.Header().Set(http.TrailerPrefix+"X-Sudden", "b")
			})
			g := newRig(t, upstream, setup{tls: clientH2})
			req, err := http.NewRequest("POST", g.server.URL, struct{ io.Reader }{strings.NewReader("x")})
			if err != nil {
				t.Fatal(err)
			}
			req.Trailer = http.Header{"X-Checksum": {"c"}}
			res, err := g.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if b, err := io.ReadAll(res.Body); string(b) != "body" || err != nil {
				t.Errorf("body %q, %v", b, err)
			}
			if d := cmp.Diff(http.Header{"X-Announced": {"a"}, "X-Sudden": {"b"}}, res.Trailer); d != "" {
				t.Errorf("response trailer (-want +got):\n%s", d)
			}
			if d := cmp.Diff(http.Header{"X-Checksum": {"c"}}, <-trailers); d != "" {
				t.Errorf("request trailer (-want +got):\n%s", d)
			}
		})
	}
}

// TestInterimResponses passes 1xx responses on, without what is not theirs.
func TestInterimResponses(t *testing.T) {
	upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: x\r\n\r\n"+
			"HTTP/1.1 102 Processing\r\n\r\n"+
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	})
	g := newRig(t, upstream, setup{})
	type interim struct {
		Code   int
		Header http.Header
	}
	var got []interim
	req, err := http.NewRequest("GET", g.server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			got = append(got, interim{code, http.Header(h)})
			return nil
		},
	}))
	res, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	want := []interim{{103, http.Header{"Link": {"</a>"}}}, {102, http.Header{}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("interim responses (-want +got):\n%s", d)
	}
	if _, ok := res.Header["Link"]; ok {
		t.Error("the hint's header is in the final response")
	}
}

// TestExpectContinue has the client wait for leave to send its body.
func TestExpectContinue(t *testing.T) {
	t.Run("given", func(t *testing.T) {
		g := newRig(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			w.Write(b)
		}), setup{})
		c, r := g.dial()
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n")
		if line, _ := textproto.NewReader(r).ReadLine(); line != "HTTP/1.1 100 Continue" {
			t.Fatalf("got %q, want a 100", line)
		}
		if line, _ := textproto.NewReader(r).ReadLine(); line != "" {
			t.Fatalf("got %q, want the end of the 100", line)
		}
		io.WriteString(c, "prompt")
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("got %v, %v", res, err)
		}
		if b, _ := io.ReadAll(res.Body); string(b) != "prompt" {
			t.Errorf("got %q", b)
		}
		if rec := g.record(); string(rec.RequestBody) != "prompt" || rec.RequestCut != "" {
			t.Errorf("audit saw %q, cut %q", rec.RequestBody, rec.RequestCut)
		}
	})
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused, upstream connection kept %t", keep), func(t *testing.T) {
			body := make(chan error, 1)
			upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				connection := "close"
				if keep {
					connection = "keep-alive"
				}
				fmt.Fprintf(c, "HTTP/1.1 401 Unauthorized\r\nConnection: %s\r\nContent-Length: 4\r\n\r\nno!\n", connection)
				_, err = req.Body.Read(make([]byte, 1))
				body <- err
			})
			g := newRig(t, upstream, setup{})
			c, r := g.dial()
			fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n")
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != 401 {
				t.Fatalf("got %v, %v, want the 401 and no 100 before it", res, err)
			}
			if b, err := io.ReadAll(res.Body); string(b) != "no!\n" || err != nil {
				t.Errorf("got %q, %v", b, err)
			}
			if err := await(t, "end of the request at the upstream", body); err == nil {
				t.Error("the upstream got a body")
			}
			c.Close()
			rec := g.record()
			if rec.Status != 401 || rec.ResponseCut != "" || rec.RequestCut == "" || len(rec.RequestBody) != 0 {
				t.Errorf("audit saw %s", brief(rec))
			}
		})
	}
	t.Run("upstream is dead", func(t *testing.T) {
		g := newRig(t, nowhere, setup{})
		c, r := g.dial()
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 502 {
			t.Fatalf("got %v, %v, want the 502 and no 100 before it", res, err)
		}
	})
}

// TestAnswerBeforeBody has the upstream answer while the client is sending.
func TestAnswerBeforeBody(t *testing.T) {
	t.Run("both go on", func(t *testing.T) {
		upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
				t.Error(err)
			}
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			b := make([]byte, 100)
			for {
				n, err := r.Body.Read(b)
				w.Write(bytes.ToUpper(b[:n]))
				w.(http.Flusher).Flush()
				if err != nil {
					return
				}
			}
		})
		g := newRig(t, upstream, setup{})
		c, r := g.dial()
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("got %v, %v", res, err)
		}
		for i := range 20 {
			word := fmt.Sprintf("word%02d", i)
			fmt.Fprintf(c, "6\r\n%s\r\n", word)
			got := make([]byte, 6)
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != strings.ToUpper(word) {
				t.Fatalf("got %q, %v, want %q", got, err, strings.ToUpper(word))
			}
		}
		fmt.Fprintf(c, "0\r\n\r\n")
		if rest, err := io.ReadAll(res.Body); len(rest) > 0 || err != nil {
			t.Errorf("rest %q, %v", rest, err)
		}
		if rec := g.record(); len(rec.RequestBody) != 120 || len(rec.ResponseBody) != 120 || rec.RequestCut != "" || rec.ResponseCut != "" {
			t.Errorf("audit saw %s", brief(rec))
		}
	})
	for _, size := range []int{20_000, 3_000_000} {
		t.Run(fmt.Sprintf("refused, %d bytes to come", size), func(t *testing.T) {
			upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				io.ReadFull(req.Body, make([]byte, 4))
				io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
				io.Copy(io.Discard, r)
			})
			g := newRig(t, upstream, setup{})
			c, r := g.dial()
			fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nsome", size)
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != 413 {
				t.Fatalf("got %v, %v", res, err)
			}
			if b, err := io.ReadAll(res.Body); string(b) != "big" || err != nil {
				t.Errorf("got %q, %v", b, err)
			}
			if !res.Close {
				t.Error("the client isn't told that the connection ends")
			}
			if rec := g.record(); rec.Status != 413 || string(rec.RequestBody) != "some" || rec.RequestCut != audit.ReasonUpstreamBroken || rec.ResponseCut != "" {
				t.Errorf("audit saw %s", brief(rec))
			}
			// What is still to come must not be read as a request.
			io.WriteString(c, strings.Repeat("GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", size/34))
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				t.Errorf("the rest of the body is answered with %q", rest)
			}
		})
	}
}

// TestNoBodyResponses are those whose end the header tells.
func TestNoBodyResponses(t *testing.T) {
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(304)
		case "/206":
			w.Header().Set("Content-Range", "bytes 2-4/9")
			w.Header().Set("Content-Length", "3")
			w.WriteHeader(206)
			io.WriteString(w, "cde")
		default:
			w.Header().Set("Content-Length", "1234")
			if r.Method != "HEAD" {
				w.Write(make([]byte, 1234))
			}
		}
	})
	g := newRig(t, upstream, setup{})
	for _, tt := range []struct {
		method, path string
		status       int
		length       int64
		body         int
	}{
		{"HEAD", "/", 200, 1234, 0},
		{"GET", "/", 200, 1234, 1234},
		{"GET", "/204", 204, 0, 0},
		{"GET", "/304", 304, 0, 0},
		{"GET", "/206", 206, 3, 3},
		{"DELETE", "/204", 204, 0, 0},
	} {
		res, got := g.must(tt.method, tt.path, nil, "Range", "bytes=2-4")
		if res.StatusCode != tt.status || res.ContentLength != tt.length || len(got) != tt.body {
			t.Errorf("%s %s: got %d, length %d, %d bytes; want %d, %d, %d", tt.method, tt.path,
				res.StatusCode, res.ContentLength, len(got), tt.status, tt.length, tt.body)
		}
		if rec := g.record(); rec.Status != tt.status || len(rec.ResponseBody) != tt.body || rec.ResponseCut != "" || rec.RequestCut != "" {
			t.Errorf("%s %s: audit saw %s", tt.method, tt.path, brief(rec))
		}
	}
}

// TestBodyOfOddMethods sends chunked bodies where few expect one, and one of
// no bytes.
func TestBodyOfOddMethods(t *testing.T) {
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %v", b, r.ContentLength, r.TransferEncoding)
	})
	g := newRig(t, upstream, setup{})
	for _, method := range []string{"GET", "DELETE", "PUT", "PATCH", "REPORT"} {
		for _, body := range []string{"", "abc"} {
			c, r := g.dial()
			fmt.Fprintf(c, "%s / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", method)
			if body != "" {
				fmt.Fprintf(c, "%x\r\n%s\r\n", len(body), body)
			}
			fmt.Fprintf(c, "0\r\n\r\n")
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(res.Body)
			if want := body + " -1 [chunked]"; string(got) != want {
				t.Errorf("%s: got %q, want %q", method, got, want)
			}
			c.Close()
		}
	}
}

// TestBadChunks has the client break its own framing.
func TestBadChunks(t *testing.T) {
	got := make(chan error, 1)
	g := newRig(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		got <- err
	}), setup{})
	c, r := g.dial()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 400 || !res.Close {
		t.Errorf("got %v, %v, want a 400 that closes", res, err)
	}
	if err := await(t, "request", got); err == nil {
		t.Error("the upstream took the body for whole")
	}
	if rec := g.record(); rec.RequestCut != audit.ReasonClientGone || string(rec.RequestBody) != "hello" {
		t.Errorf("audit saw %s", brief(rec))
	}
}

// TestAmbiguousFraming is refused, or made unambiguous before it goes on.
func TestAmbiguousFraming(t *testing.T) {
	got := make(chan string, 10)
	g := newRig(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- string(b)
	}), setup{})
	for _, head := range []string{
		"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
		"Content-Length: +3\r\n\r\nabc",
		"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"Content-Length : 3\r\n\r\nabc",
	} {
		c, r := g.dial()
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\n%s", head)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode < 400 {
			t.Errorf("%q: got %v, %v, want it refused", head, res, err)
		}
		c.Close()
	}
	select {
	case b := <-got:
		t.Errorf("upstream got %q", b)
	default:
	}
}

// TestWebSocket passes an upgraded connection through.
func TestWebSocket(t *testing.T) {
	upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Accept: x\r\n\r\nhello:", req.Header.Get("Upgrade"))
		io.Copy(c, r) // an echo, until the client ends
		io.WriteString(c, "bye")
	})
	const handshake = "GET /realtime HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n"
	t.Run("echo", func(t *testing.T) {
		g := newRig(t, upstream, setup{})
		c, r := g.dial()
		io.WriteString(c, handshake+"early") // before the 101
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 101 || res.Header.Get("Upgrade") != "WebSocket" || res.Header.Get("Sec-Websocket-Accept") != "x" {
			t.Fatalf("got %v, %v", res, err)
		}
		// The exchange has ended with the upgrade, while the connection lives.
		rec := g.record()
		if rec.Status != 101 || rec.ResponseCut != audit.ReasonUpgrade || len(rec.ResponseBody) != 0 {
			t.Errorf("audit saw %s", brief(rec))
		}
		s := g.summary()
		if s.Status != 101 || s.Coverage != audit.None || !slices.Equal([]dialect.Reason(s.Reasons), []dialect.Reason{audit.ReasonUpgrade}) {
			t.Errorf("counted as %+v", s)
		}
		for _, b := range []string{"ping", "\x00\xff\x80", "last"} {
			io.WriteString(c, b)
		}
		c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(r); string(got) != "hello:earlyping\x00\xff\x80lastbye" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("shutdown", func(t *testing.T) {
		g := newRig(t, upstream, setup{})
		c, r := g.dial()
		io.WriteString(c, handshake)
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
			t.Fatalf("got %v, %v", res, err)
		}
		if err := g.proxy.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the connection is still open: %v", err)
		}
	})
	t.Run("upstream breaks", func(t *testing.T) {
		g := newRig(t, serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			c.(*net.TCPConn).SetLinger(0)
		}), setup{})
		c, r := g.dial()
		io.WriteString(c, handshake)
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
			t.Fatalf("got %v, %v", res, err)
		}
		io.Copy(io.Discard, r) // ends
	})
}

// TestUpgradeIsNoDisguise asks for an upgrade that the upstream doesn't make:
// the answer is audited like any other.
func TestUpgradeIsNoDisguise(t *testing.T) {
	upgrades := make(chan string, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		upgrades <- r.Header.Get("Upgrade")
		fmt.Fprintf(w, "answer to %s", b)
	})
	g := newRig(t, upstream, setup{})
	for _, tt := range []struct{ head, body, upgrade string }{
		{"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", "", "websocket"},
		{"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n", "abc", ""},
		{"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n", "abc", ""},
	} {
		c, r := g.dial()
		fmt.Fprintf(c, "%sHost: x\r\n\r\n%s", tt.head, tt.body)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("got %v, %v", res, err)
		}
		if got := <-upgrades; got != tt.upgrade {
			t.Errorf("%q: upstream was asked for %q, want %q", tt.head, got, tt.upgrade)
		}
		rec := g.record()
		if string(rec.RequestBody) != tt.body || string(rec.ResponseBody) != "answer to "+tt.body || rec.ResponseCut != "" {
			t.Errorf("%q: audit saw %s", tt.head, brief(rec))
		}
		c.Close()
	}
}

// TestEncodingIsTheClients leaves the coding of bodies alone.
func TestEncodingIsTheClients(t *testing.T) {
	packed := gzipped([]byte(`{"choices":[{"message":{"content":"hello"}}]}`))
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Accept", strings.Join(r.Header["Accept-Encoding"], "|"))
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed)
	})
	g := newRig(t, upstream, setup{})
	for _, accept := range []string{"gzip", "br", ""} {
		var header []string
		if accept != "" {
			header = []string{"Accept-Encoding", accept}
		}
		res, got := g.must("POST", "/v1/chat/completions", strings.NewReader("{}"), header...)
		if !bytes.Equal(got, packed) || res.Header.Get("Content-Encoding") != "gzip" || res.Header.Get("X-Accept") != accept {
			t.Errorf("accept %q: got %q coded %q, asked for %q", accept, got, res.Header.Get("Content-Encoding"), res.Header.Get("X-Accept"))
		}
	}
}

// TestHTTP2 speaks h2 on both sides and over both transports.
func TestHTTP2(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Proto, r.RequestURI, b)
	})
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := httptest.NewUnstartedServer(handler)
	plain.Config.Protocols = new(http.Protocols)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Config.Protocols.SetHTTP1(true)
	plain.Start()
	t.Cleanup(plain.Close)
	for _, tt := range []struct {
		name, url string
		http2     bool
		want      string
	}{
		{"TLS", secure.URL, true, "HTTP/2.0"},
		{"TLS, not asked for", secure.URL, false, "HTTP/1.1"},
		{"plain", plain.URL, true, "HTTP/2.0"},
		{"plain, not asked for", plain.URL, false, "HTTP/1.1"},
	} {
		for _, clientH2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, client h2 %t", tt.name, clientH2), func(t *testing.T) {
				g := newRig(t, tt.url, setup{
					options: Options{HTTP2: tt.http2, TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()},
					tls:     clientH2,
				})
				for range 3 { // the second and third on a kept connection
					res, got := g.must("POST", "/a%2Fb?c=;", strings.NewReader("prompt"))
					if want := tt.want + " /a%2Fb?c=; prompt"; string(got) != want || res.StatusCode != 200 {
						t.Errorf("got %d %q, want %q", res.StatusCode, got, want)
					}
					if rec := g.record(); string(rec.RequestBody) != "prompt" || rec.Path != "/a%2Fb" {
						t.Errorf("audit saw %s", brief(rec))
					}
				}
			})
		}
	}
}

// TestUntrustedUpstream is a certificate that nothing vouches for.
func TestUntrustedUpstream(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = discardLog()
	t.Cleanup(secure.Close)
	g := newRig(t, secure.URL, setup{})
	if res, _ := g.must("GET", "/", nil); res.StatusCode != 502 {
		t.Errorf("got %d, want 502", res.StatusCode)
	}
	if got := value(t, g.proxy.metrics.failures[failTLS]); got != 1 {
		t.Errorf("%v failures by tls, want 1", got)
	}
}
