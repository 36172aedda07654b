package proxy

import (
	"net/http"
	"strings"
	"time"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// recordedHeaders are all that a record keeps of headers: what reading the
// bodies takes, and ids by which an operator finds the exchange elsewhere.
// What isn't listed may be a credential.
var recordedHeaders = [...]string{
	"Content-Type",
	"Content-Encoding",
	"Inference-Header-Content-Length",
	"Cf-Aig-Step",
	"Cf-Aig-Cache-Status",
	"Helicone-Cache",
	"X-Portkey-Cache-Status",
	"User-Agent",
	"X-Request-Id",
	"Request-Id",
	"X-Correlation-Id",
	"Traceparent",
	"Cf-Ray",
	"Cf-Aig-Log-Id",
	"Apim-Request-Id",
	"X-Ms-Request-Id",
	"X-Amzn-Requestid",
}

// recording builds the record of an exchange on the exchange's audit
// goroutine. A nil recording records nothing.
type recording struct {
	r     audit.Record
	limit int
	take  func(*audit.Record)
}

func newRecording(x *exchange) *recording {
	if x.p.o.Record == nil || x.unaudited {
		return nil
	}
	return &recording{
		r: audit.Record{
			ID: x.info.ID, Tenant: x.info.Tenant, User: x.info.User, Instance: x.info.Instance,
			Method: x.info.Method, Path: x.info.Path,
			RequestHeader: recorded(x.info.Header),
		},
		limit: x.p.o.MaxRecordBody,
		take:  x.p.o.Record,
	}
}

// recorded returns the part of a header that a record keeps.
func recorded(h dialect.Header) map[string]string {
	kept := map[string]string{}
	for _, name := range recordedHeaders {
		if v := h.Get(name); v != "" {
			kept[strings.ToLower(name)] = v
		}
	}
	return kept
}

func (r *recording) request(body []byte, cut dialect.Reason, start time.Time) {
	if r == nil {
		return
	}
	if len(body) > r.limit {
		body, cut = body[:r.limit], audit.ReasonTooLarge
	}
	r.r.RequestBody, r.r.RequestCut, r.r.Start = body, cut, start
}

func (r *recording) response(status int, h http.Header) {
	if r == nil {
		return
	}
	r.r.Status = status
	r.r.ResponseHeader = recorded(h)
}

func (r *recording) append(b []byte) {
	if r == nil {
		return
	}
	if room := r.limit - len(r.r.ResponseBody); len(b) > room {
		b = b[:room]
		r.r.ResponseCut = audit.ReasonTooLarge
	}
	r.r.ResponseBody = append(r.r.ResponseBody, b...)
}

// end completes the record and hands it over.
func (r *recording) end(at time.Time, cut dialect.Reason) {
	if r == nil {
		return
	}
	r.r.End = at
	r.r.Aborted = r.r.Status == 0 || cut == audit.ReasonClientGone || cut == audit.ReasonUpstreamBroken
	if cut != "" {
		r.r.ResponseCut = cut
	}
	r.take(&r.r)
}
