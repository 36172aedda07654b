package audit

import (
	"bytes"
	"compress/gzip"
	"slices"
	"testing"

	"github.com/auditproxy/auditproxy/proxy/dialect"
)

// TestClientLeavesAtTheEnd has the client go when the end marker has come,
// which misses nothing, and before, which does.
func TestClientLeavesAtTheEnd(t *testing.T) {
	rnd := seeded(t)
	stream := sse(rnd, words(rnd, 60))
	unended := bytes.TrimSuffix(stream, []byte("data: [DONE]\n\n"))
	if len(unended) == len(stream) {
		t.Fatal("the stream has no end marker")
	}
	half := unended[:bytes.LastIndex(unended[:len(unended)/2], []byte("\n\n"))]
	failed := append(slices.Clone(half), "\n\ndata: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\"}}\n\n"...)
	zipped := func(b []byte) []byte {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		_, _ = z.Write(b)
		_ = z.Flush()
		return buf.Bytes() // its end is still to come
	}
	gzipHeader := fields{"content-type": "text/event-stream", "content-encoding": "gzip"}
	for _, c := range []struct {
		name     string
		header   dialect.Header
		response []byte
		cut      dialect.Reason
		want     []dialect.Reason
	}{
		{"at the end marker", sseHeader, stream, ReasonClientGone, nil},
		{"before it", sseHeader, unended, ReasonClientGone, []dialect.Reason{ReasonClientGone}},
		{"inside it", sseHeader, stream[:len(stream)-4], ReasonClientGone, []dialect.Reason{ReasonClientGone, dialect.ReasonTruncated}},
		{"at an error", sseHeader, failed, ReasonClientGone, nil},
		{"behind a whole body", jsonHeader, answer(words(rnd, 20)), ReasonClientGone, nil},
		{"inside a body", jsonHeader, cutOff(answer(words(rnd, 20))), ReasonClientGone, []dialect.Reason{ReasonClientGone, dialect.ReasonTruncated}},
		{"at the end marker, coded", gzipHeader, zipped(stream), ReasonClientGone, nil},
		{"before it, coded", gzipHeader, zipped(unended), ReasonClientGone, []dialect.Reason{ReasonClientGone, ReasonEncoding}},
		{"for another reason", sseHeader, stream, ReasonUpstreamBroken, []dialect.Reason{ReasonUpstreamBroken}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, s := newEngine(t, Options{})
			tx := e.Begin(Exchange{ID: "a", Tenant: "A", Method: "POST", Path: chatPath, Header: jsonHeader})
			tx.Request(chat(user("hi")), at(1), "")
			tx.Response(200, c.header)
			tx.Append(c.response, at(2))
			tx.Finish(at(3), c.cut)
			got := s.exchanges[len(s.exchanges)-1]
			slices.Sort(got.Reasons)
			want := Whole
			if c.want != nil {
				want = Part
			}
			if got.Coverage != want || !slices.Equal([]dialect.Reason(got.Reasons), c.want) {
				t.Errorf("got %q for %v, want %q for %v", got.Coverage, got.Reasons, want, c.want)
			}
		})
	}
}
