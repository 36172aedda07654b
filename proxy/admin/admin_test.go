package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask(t *testing.T, s *httptest.Server, method, path string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func serve(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(New(o))
	t.Cleanup(s.Close)
	return s
}

func TestRoutes(t *testing.T) {
	var notReady error
	reg := prometheus.NewPedanticRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "auditproxy_test_total", Help: "Of the test."})
	reg.MustRegister(c)
	c.Add(7)
	s := serve(t, Options{Gatherer: reg, Ready: func() error { return notReady }})
	starting := errors.New("index is being loaded")
	for _, tt := range []struct {
		method, path string
		ready        error
		code         int
		want         string
	}{
		{"GET", "/healthz", nil, 200, `{"status":"ok"}`},
		{"GET", "/healthz", starting, 200, `{"status":"ok"}`},
		{"HEAD", "/healthz", nil, 200, ""},
		{"GET", "/readyz", nil, 200, `{"status":"ready"}`},
		{"GET", "/readyz", starting, 503, `{"error":"index is being loaded"}`},
		{"HEAD", "/readyz", starting, 503, ""},
		{"GET", "/metrics", nil, 200, "auditproxy_test_total 7"},
		{"GET", "/", nil, 404, `{"error":"no such page"}`},
		{"GET", "/metrics/", nil, 404, `{"error":"no such page"}`},
		{"GET", "/v1/chat/completions", nil, 404, `{"error":"no such page"}`},
		{"POST", "/nothing", nil, 404, `{"error":"no such page"}`},
		{"POST", "/healthz", nil, 405, `{"error":"method not allowed"}`},
		{"DELETE", "/metrics", nil, 405, `{"error":"method not allowed"}`},
	} {
		t.Run(tt.method+tt.path, func(t *testing.T) {
			notReady = tt.ready
			res, body := ask(t, s, tt.method, tt.path)
			if res.StatusCode != tt.code {
				t.Errorf("got %d, want %d", res.StatusCode, tt.code)
			}
			if tt.path == "/metrics" && tt.code == 200 {
				if !strings.Contains(body, tt.want) {
					t.Errorf("got %q, want %q in it", body, tt.want)
				}
				return
			}
			if body != tt.want {
				t.Errorf("got %q, want %q", body, tt.want)
			}
			if ct := res.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
				t.Errorf("content type %q", ct)
			}
			if body != "" && !json.Valid([]byte(body)) {
				t.Errorf("%q is no JSON", body)
			}
		})
	}
}

func TestZeroOptions(t *testing.T) {
	s := serve(t, Options{})
	for path, want := range map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 200} {
		if res, _ := ask(t, s, "GET", path); res.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, res.StatusCode, want)
		}
	}
}

// TestPanics has the readiness check panic, and the connection live on.
func TestPanics(t *testing.T) {
	var log bytes.Buffer
	s := serve(t, Options{
		Ready:  func() error { panic("of the test") },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for range 2 {
		if res, body := ask(t, s, "GET", "/readyz"); res.StatusCode != 500 || body != `{"error":"internal error"}` {
			t.Errorf("got %d %q", res.StatusCode, body)
		}
	}
	if log.Len() == 0 {
		t.Error("nothing was logged")
	}
}

func TestAbortIsNotSwallowed(t *testing.T) {
	s := serve(t, Options{Ready: func() error { panic(http.ErrAbortHandler) }})
	res, err := s.Client().Get(s.URL + "/readyz")
	if err == nil {
		res.Body.Close()
		t.Errorf("got %d, want a broken connection", res.StatusCode)
	}
}

func TestFailingMetricIsLogged(t *testing.T) {
	var log bytes.Buffer
	reg := prometheus.NewRegistry()
	reg.MustRegister(broken{})
	s := serve(t, Options{Gatherer: reg, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if res, _ := ask(t, s, "GET", "/metrics"); res.StatusCode != 500 {
		t.Errorf("got %d, want 500", res.StatusCode)
	}
	if log.Len() == 0 {
		t.Error("nothing was logged")
	}
}

// broken is a metric that can't be read.
type broken struct{}

func (broken) Describe(ch chan<- *prometheus.Desc) {
	ch <- prometheus.NewDesc("auditproxy_broken", "Of the test.", nil, nil)
}

func (broken) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("auditproxy_broken", "Of the test.", nil, nil), errors.New("of the test"))
}

// TestSilence looks for what gin says of itself unless it is told not to.
func TestSilence(t *testing.T) {
	var out bytes.Buffer
	mode, stdout, stderr := gin.Mode(), gin.DefaultWriter, gin.DefaultErrorWriter
	defer func() {
		gin.SetMode(mode)
		gin.DefaultWriter, gin.DefaultErrorWriter = stdout, stderr
	}()
	gin.SetMode(gin.DebugMode) // as in a program that does nothing about it
	gin.DefaultWriter, gin.DefaultErrorWriter = &out, &out
	s := serve(t, Options{})
	ask(t, s, "GET", "/healthz")
	ask(t, s, "GET", "/nothing")
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}
