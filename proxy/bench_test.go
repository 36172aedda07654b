package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// The benchmarks compare three ways to one upstream over loopback, client and
// upstream in the same process: direct, by a tuned httputil.ReverseProxy that
// looks at nothing, and by this proxy with its whole audit.
//
//	go test -run '^$' -bench . -benchmem ./proxy

func benchmark(b *testing.B, kind string, body []byte, pieces int) {
	prompt := []byte(`{"model":"m","messages":[{"role":"user","content":"Which of these two words is the longer one?"}]}`)
	upstream := serve(b, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		if pieces == 1 {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Write(body)
			return
		}
		for range pieces {
			w.Write(body)
			w.(http.Flusher).Flush()
		}
	})
	target, err := url.Parse(upstream)
	if err != nil {
		b.Fatal(err)
	}
	plain := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1024},
	})
	b.Cleanup(plain.Close)
	g := newRig(b, upstream, setup{unrecorded: true})
	for _, way := range []struct{ name, url string }{
		{"direct", upstream}, {"plain", plain.URL}, {"audited", g.server.URL},
	} {
		b.Run(way.name, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1024}}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			b.SetBytes(int64(len(body) * pieces))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					res, err := client.Post(way.url+"/v1/chat/completions", "application/json", bytes.NewReader(prompt))
					if err != nil {
						b.Error(err)
						return
					}
					n, err := io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if err != nil || n != int64(len(body)*pieces) {
						b.Errorf("got %d bytes, %v", n, err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkJSON answers with 2 KB at once.
func BenchmarkJSON(b *testing.B) {
	text := bytes.Repeat([]byte("some words of an answer "), 80)
	benchmark(b, "application/json", fmt.Appendf(nil, `{"choices":[{"index":0,"message":{"role":"assistant","content":%q}}]}`, text), 1)
}

// BenchmarkStream answers with an SSE stream of 200 events.
func BenchmarkStream(b *testing.B) {
	event := []byte(`data: {"id":"c-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":" word"}}]}` + "\n\n")
	benchmark(b, "text/event-stream", event, 200)
}
