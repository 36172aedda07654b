package audit

import (
	"strings"
	"time"

	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// Record is a whole exchange as it went over the wire: what a capture holds
// and a replay audits.
type Record struct {
	ID, Tenant, User, Instance string
	Start, End                 time.Time // event times as the engine gave them
	Method, Path               string
	RequestHeader              map[string]string // lower-case names
	RequestBody                []byte
	RequestCut                 dialect.Reason // "" if the body is whole
	Status                     int            // 0: no response came
	ResponseHeader             map[string]string
	ResponseBody               []byte
	ResponseCut                dialect.Reason // "" if the response is whole
	Aborted                    bool
}

// fields is a header read from a record.
type fields map[string]string

func (f fields) Get(name string) string { return f[strings.ToLower(name)] }

// Arrive replays the first of a record's two events, the arrival of its
// request. The transaction that it returns is to be handed to Leave once no
// other event comes before r.End.
func (e *Engine) Arrive(r *Record) *Transaction {
	t := e.Begin(Exchange{
		ID: r.ID, Tenant: r.Tenant, User: r.User, Instance: r.Instance,
		Method: r.Method, Path: r.Path, Header: fields(r.RequestHeader),
	})
	t.over = true
	t.Request(r.RequestBody, r.Start, r.RequestCut)
	return t
}

// Leave replays the second event of a record, the end of its response.
func (e *Engine) Leave(t *Transaction, r *Record) {
	if r.Status != 0 {
		t.Response(r.Status, fields(r.ResponseHeader))
		t.Append(r.ResponseBody, r.End)
	}
	t.Finish(r.End, r.ResponseCut)
}
