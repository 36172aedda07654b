// Package admin is the listener for operators: metrics, liveness and
// readiness. It is served apart from the traffic, on an address that clients
// can't reach, and is the only package that knows gin.
package admin

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configure the admin listener. The zero value serves no metrics and is
// always ready.
type Options struct {
	// Gatherer has the metrics for GET /metrics; nil means that it has none.
	Gatherer prometheus.Gatherer
	// Ready says why the sidecar is not ready for traffic; GET /readyz answers
	// 503 with the error's text, which operators see. nil, or a nil error,
	// means that it is.
	Ready func() error
	// Logger takes what goes wrong inside the listener; nil discards it.
	Logger *slog.Logger
}

// New returns the handler of the admin listener:
//
//	GET /metrics  the metrics, in the format that the scraper asks for
//	GET /healthz  200 while the process can answer at all
//	GET /readyz   200 while it is ready for traffic, else 503 and why
//
// HEAD works wherever GET does. Whatever else is asked for is a 404 or 405,
// with a JSON body.
func New(o Options) http.Handler {
	if o.Gatherer == nil {
		o.Gatherer = prometheus.NewRegistry()
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	// gin's mode is the process's. Outside it gin prints each route to standard
	// output, which belongs to the program.
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	r.NoRoute(func(c *gin.Context) { fail(c, http.StatusNotFound, "no such page") })
	r.NoMethod(func(c *gin.Context) { fail(c, http.StatusMethodNotAllowed, "method not allowed") })
	r.Use(recovery(o.Logger))

	metrics := promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		ErrorLog:          errorLog{o.Logger},
		EnableOpenMetrics: true,
	})
	get(r, "/metrics", gin.WrapH(metrics))
	get(r, "/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, status{"ok"}) })
	get(r, "/readyz", func(c *gin.Context) {
		if err := o.Ready(); err != nil {
			fail(c, http.StatusServiceUnavailable, err.Error())
			return
		}
		c.JSON(http.StatusOK, status{"ready"})
	})
	return r
}

func get(r *gin.Engine, path string, h gin.HandlerFunc) {
	r.Match([]string{http.MethodGet, http.MethodHead}, path, h)
}

type status struct {
	Status string `json:"status"`
}

type problem struct {
	Error string `json:"error"`
}

func fail(c *gin.Context, code int, text string) { c.AbortWithStatusJSON(code, problem{text}) }

// recovery answers 500 where a handler panics. gin's own would swallow
// http.ErrAbortHandler, and print what was panicked with.
func recovery(log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) || c.Writer.Written() {
				panic(http.ErrAbortHandler) // too late for an answer
			}
			log.Error("admin request failed", slog.String("path", c.FullPath()), slog.Any("panic", v))
			fail(c, http.StatusInternalServerError, "internal error")
		}()
		c.Next()
	}
}

// errorLog passes on what promhttp logs.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Println(v ...any) { l.log.Error("metrics", slog.Any("error", v)) }
