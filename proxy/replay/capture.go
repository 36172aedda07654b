package replay

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// The native capture is NDJSON, one exchange a line, in the order in which the
// exchanges ended:
//
//	{"v":1,"id":"ex-2","tenant":"acme","user":"u1",
//	 "start":"2026-09-08T10:00:00.000000001Z","end":"2026-09-08T10:00:03Z","instance":"decode-3",
//	 "request":{"method":"POST","path":"/v1/chat/completions","headers":{"content-type":"application/json"},"body":{...}},
//	 "response":{"status":200,"headers":{"content-type":"text/event-stream"},"body":"data: {...}\n\n"},
//	 "aborted":false}
//
// A body is a string (the raw body) or any other JSON value (the body itself);
// body_base64 holds bytes that are not UTF-8. The response is missing where
// none came. "cut" in a request or response says why its body is not whole.
// start and end are the event times of the arrival and of the end, to the
// nanosecond; they are what makes a replay give the findings of the live run.
// Headers are only those that reading the bodies takes: never credentials.

type captureLine struct {
	V        int              `json:"v"`
	ID       string           `json:"id"`
	Tenant   string           `json:"tenant"`
	User     string           `json:"user,omitempty"`
	Start    time.Time        `json:"start"`
	End      time.Time        `json:"end"`
	Instance string           `json:"instance,omitempty"`
	Request  *captureRequest  `json:"request"`
	Response *captureResponse `json:"response,omitempty"`
	Aborted  bool             `json:"aborted"`
}

type captureRequest struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	captureBody
}

type captureResponse struct {
	Status int `json:"status"`
	captureBody
}

type captureBody struct {
	Headers    map[string]string `json:"headers,omitempty"`
	Body       json.RawMessage   `json:"body,omitempty"`
	BodyBase64 string            `json:"body_base64,omitempty"`
	Cut        dialect.Reason    `json:"cut,omitempty"`
}

// bytes returns the body as it went over the wire.
func (b *captureBody) bytes() ([]byte, error) {
	switch raw := bytes.TrimSpace(b.Body); {
	case b.BodyBase64 != "":
		if len(raw) > 0 {
			return nil, errors.New("both body and body_base64")
		}
		out, err := base64.StdEncoding.DecodeString(b.BodyBase64)
		if err != nil {
			return nil, fmt.Errorf("body_base64: %w", err)
		}
		return out, nil
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return nil, nil
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, errors.New("body: not a JSON string")
		}
		return []byte(s), nil
	default:
		return raw, nil
	}
}

func newCaptureBody(h map[string]string, body []byte, cut dialect.Reason) (captureBody, error) {
	b := captureBody{Headers: h, Cut: cut}
	switch {
	case len(body) == 0:
	case !utf8.Valid(body):
		b.BodyBase64 = base64.StdEncoding.EncodeToString(body)
	default:
		raw, err := marshal(string(body))
		if err != nil {
			return b, err
		}
		b.Body = raw
	}
	return b, nil
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// parseCapture reads one line.
func parseCapture(line []byte) (*audit.Record, error) {
	var c captureLine
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, describe(err)
	}
	switch {
	case c.V != 1:
		return nil, fmt.Errorf("v: version %d, want 1", c.V)
	case c.ID == "":
		return nil, errors.New("id: missing")
	case c.Tenant == "":
		return nil, errors.New("tenant: missing")
	case c.Start.IsZero():
		return nil, errors.New("start: missing")
	case c.Request == nil:
		return nil, errors.New("request: missing")
	case !c.End.IsZero() && c.End.Before(c.Start):
		return nil, errors.New("end: before start")
	}
	if c.End.IsZero() {
		c.End = c.Start
	}
	r := &audit.Record{
		ID: c.ID, Tenant: c.Tenant, User: c.User, Instance: c.Instance,
		Start: c.Start.UTC(), End: c.End.UTC(), Aborted: c.Aborted,
		Method: c.Request.Method, Path: c.Request.Path,
		RequestHeader: c.Request.Headers, RequestCut: c.Request.Cut,
	}
	var err error
	if r.RequestBody, err = c.Request.bytes(); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if c.Response != nil {
		if c.Response.Status < 100 || c.Response.Status > 999 {
			return nil, fmt.Errorf("response: status %d is none", c.Response.Status)
		}
		r.Status, r.ResponseHeader, r.ResponseCut = c.Response.Status, c.Response.Headers, c.Response.Cut
		if r.ResponseBody, err = c.Response.bytes(); err != nil {
			return nil, fmt.Errorf("response: %w", err)
		}
	}
	return r, nil
}

// describe says what is wrong with a line without quoting it.
func describe(err error) error {
	var typ *json.UnmarshalTypeError
	var syn *json.SyntaxError
	switch {
	case errors.As(err, &typ) && typ.Field != "":
		return fmt.Errorf("%s: a JSON %s, want %s", typ.Field, typ.Value, typ.Type)
	case errors.As(err, &typ):
		return fmt.Errorf("a JSON %s, want an object", typ.Value)
	case errors.As(err, &syn):
		return fmt.Errorf("not JSON at byte %d", syn.Offset)
	}
	return errors.New("not a capture line")
}

// Capture writes exchanges in the native format. It is safe for concurrent
// use, and goes on after a failed write: Err says the first one.
type Capture struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewCapture returns a capture on w. Every exchange is one Write.
func NewCapture(w io.Writer) *Capture { return &Capture{w: w} }

// Write appends one exchange.
func (c *Capture) Write(r *audit.Record) {
	line, err := captureOf(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		_, err = c.w.Write(line)
	}
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("capture: exchange %s: %w", r.ID, err)
	}
}

func captureOf(r *audit.Record) ([]byte, error) {
	req, err := newCaptureBody(r.RequestHeader, r.RequestBody, r.RequestCut)
	if err != nil {
		return nil, err
	}
	c := captureLine{
		V: 1, ID: r.ID, Tenant: r.Tenant, User: r.User, Instance: r.Instance,
		Start: r.Start, End: r.End, Aborted: r.Aborted,
		Request: &captureRequest{Method: r.Method, Path: r.Path, captureBody: req},
	}
	if r.Status != 0 {
		res, err := newCaptureBody(r.ResponseHeader, r.ResponseBody, r.ResponseCut)
		if err != nil {
			return nil, err
		}
		c.Response = &captureResponse{Status: r.Status, captureBody: res}
	}
	line, err := marshal(&c)
	return append(line, '\n'), err
}

// Err returns the first error in writing, or nil.
func (c *Capture) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
