package proxy

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"github.com/auditproxy/auditproxy/proxy/audit"
	"github.com/auditproxy/auditproxy/proxy/dialect"
	"github.com/auditproxy/auditproxy/proxy/internal/transcript"
)

// This file sends the exchanges of every dialect's testdata through a proxy, on
// raw connections at both ends, and compares what came with what was sent. All
// that the proxy and net/http may change is listed here:
//
//   - Names of header fields come in the canonical spelling, and fields of
//     different names in another order. The values of one name keep theirs.
//   - Host is the upstream's, and X-Forwarded-For, -Host and -Proto are added.
//   - Connection and Keep-Alive end with the connection they came on.
//   - The reason phrase of a status line is the standard one.
//   - A chunked body stays chunked, but may be cut into other chunks.

// sample is one exchange of the dialects' testdata.
type sample struct {
	transcript.Transcript
	dialect string
}

// streamed says whether a response comes in pieces.
func (s *sample) streamed() bool {
	t, _, _ := strings.Cut(s.Type, ";")
	switch t {
	case "text/event-stream", "application/x-ndjson", "application/stream+json", "application/vnd.amazon.eventstream", "application/jsonl", "application/x-jsonl":
		return true
	}
	return bytes.HasPrefix(s.Response, []byte("[{")) && strings.Contains(s.Path, ":stream")
}

// samples reads the transcripts of package dialect.
func samples(t *testing.T) []sample {
	t.Helper()
	all, err := transcript.Read("dialect/testdata")
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	for _, tr := range all {
		if tr.Response == nil {
			continue
		}
		s := sample{Transcript: tr}
		if d := dialect.Find(dialect.All(), tr.Method, tr.Path); d != nil {
			s.dialect = d.Name()
		}
		out = append(out, s)
	}
	return out
}

// coded returns a body in a content coding.
func coded(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "":
		return body
	case "gzip":
		return gzipped(body)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		t.Fatalf("no coding %q", coding)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// message is an HTTP/1.1 message as it went over a connection, with the framing
// of its body undone.
type message struct {
	Line    string              // the first
	Header  map[string][]string // by canonical name
	Chunked bool
	Body    []byte
}

// readMessage reads a message without net/http, whose reader would tidy it up.
func readMessage(r *bufio.Reader) (m message, err error) {
	text := textproto.NewReader(r)
	if m.Line, err = text.ReadLine(); err != nil {
		return m, err
	}
	m.Header = map[string][]string{}
	for {
		line, err := text.ReadLine()
		if err != nil {
			return m, err
		}
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return m, fmt.Errorf("header line %q", line)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		m.Header[name] = append(m.Header[name], strings.Trim(value, " \t"))
	}
	if slices.Equal(m.Header["Transfer-Encoding"], []string{"chunked"}) {
		m.Chunked = true
		for {
			line, err := text.ReadLine()
			if err != nil {
				return m, err
			}
			n, err := strconv.ParseUint(line, 16, 31)
			if err != nil {
				return m, err
			}
			chunk := make([]byte, n+2)
			if _, err := io.ReadFull(r, chunk); err != nil {
				return m, err
			}
			if !bytes.HasSuffix(chunk, []byte("\r\n")) {
				return m, fmt.Errorf("chunk of %d bytes without an end", n)
			}
			if n == 0 {
				return m, nil
			}
			m.Body = append(m.Body, chunk[:n]...)
		}
	}
	if v := m.Header["Content-Length"]; len(v) == 1 {
		n, err := strconv.Atoi(v[0])
		if err != nil {
			return m, err
		}
		m.Body = make([]byte, n)
		if _, err := io.ReadFull(r, m.Body); err != nil {
			return m, err
		}
	}
	return m, nil
}

// write returns a message as bytes. A chunked body is cut into chunks of odd
// sizes.
func (m message) write() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\r\n", m.Line)
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		for _, v := range m.Header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", strings.ToLower(name), v)
		}
	}
	b.WriteString("\r\n")
	if !m.Chunked {
		b.Write(m.Body)
		return b.Bytes()
	}
	size := 1
	for rest := m.Body; len(rest) > 0; size = size%97 + 13 {
		n := min(size, len(rest))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}

// framed sets how the body is delimited.
func (m *message) framed(chunked bool, body []byte) {
	m.Body, m.Chunked = body, chunked
	if chunked {
		m.Header["Transfer-Encoding"] = []string{"chunked"}
	} else {
		m.Header["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
}

// messages returns the messages of a sample whose bodies are in a content coding.
func (s *sample) messages(t *testing.T, coding string, chunked bool) (request, response message) {
	t.Helper()
	request = message{
		Line: s.Method + " " + s.Path + "?alt=sse&odd=%zz;x HTTP/1.1",
		Header: map[string][]string{
			"Host": {"api.example"}, "Connection": {"keep-alive"}, "User-Agent": {"test/1 (a; b)"},
			"Authorization": {"Bearer k"}, "Accept-Encoding": {"zstd;q=0.9, br, gzip;q=0.1"}, "Accept": {"*/*"},
			"X-Twice": {"2", "1"}, "X-Empty": {""}, "X-Latin": {"caf\xe9"},
		},
	}
	if s.RequestType != "" {
		request.Header["Content-Type"] = []string{s.RequestType}
	} else {
		request.Header["Content-Type"] = []string{"application/json; charset=utf-8"}
	}
	if s.Method != "GET" {
		if coding != "" {
			request.Header["Content-Encoding"] = []string{coding}
		}
		request.framed(chunked, coded(t, coding, s.Request))
	}
	response = message{
		Line: "HTTP/1.1 200 OK",
		Header: map[string][]string{
			"Connection": {"keep-alive"}, "Keep-Alive": {"timeout=5"}, "Server": {"uvicorn"}, "Date": {"Mon, 07 Sep 2026 07:00:00 GMT"},
			"X-Request-Id": {"req_1"}, "Set-Cookie": {"b=2; Path=/", "a=1"}, "X-Empty": {""}, "Cache-Control": {"no-cache"}, "Vary": {"Accept-Encoding"},
		},
	}
	if s.Type != "" {
		response.Header["Content-Type"] = []string{s.Type}
	}
	for name, value := range s.Header {
		response.Header[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
	}
	if coding != "" {
		response.Header["Content-Encoding"] = []string{coding}
	}
	response.framed(s.streamed() || chunked, coded(t, coding, s.Response))
	return request, response
}

// TestEveryDialectUntouched passes the samples of every dialect, plain and in
// every content coding that the audit reads.
func TestEveryDialectUntouched(t *testing.T) {
	type pair struct{ request, response message }
	answers, arrived := make(chan message, 1), make(chan message, 1)
	upstream := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			m, err := readMessage(r)
			if err != nil {
				return
			}
			arrived <- m
			// In two pieces, so that the head and the body come apart.
			b := (<-answers).write()
			half := bytes.Index(b, []byte("\r\n\r\n")) + 4
			c.Write(b[:half])
			c.Write(b[half:])
		}
	})
	g := newRig(t, upstream, setup{})
	c, r := g.dial()
	exchange := func(sent pair) (got pair) {
		t.Helper()
		answers <- sent.response
		// There are hundreds of exchanges, and each may take its time.
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(sent.request.write()); err != nil {
			t.Fatal(err)
		}
		got.request = await(t, "request", arrived)
		var err error
		if got.response, err = readMessage(r); err != nil {
			t.Fatal(err)
		}
		return got
	}

	whole, streamed := map[string]int{}, map[string]int{}
	for _, s := range samples(t) {
		if s.dialect == "" {
			t.Errorf("%s: no dialect", s.Name)
			continue
		}
		if s.streamed() {
			streamed[s.dialect]++
		} else {
			whole[s.dialect]++
		}
		var plain audit.Summary
		for i, coding := range []string{"", "gzip", "br", "zstd", "deflate"} {
			sent := pair{}
			sent.request, sent.response = s.messages(t, coding, i%2 == 1)
			got := exchange(sent)
			want := sent
			want.request.Header, want.response.Header = maps.Clone(sent.request.Header), maps.Clone(sent.response.Header)
			h := want.request.Header
			delete(h, "Connection")
			h["Host"] = []string{strings.TrimPrefix(upstream, "http://")}
			h["X-Forwarded-For"], h["X-Forwarded-Host"], h["X-Forwarded-Proto"] = []string{"127.0.0.1"}, []string{"api.example"}, []string{"http"}
			h = want.response.Header
			delete(h, "Connection")
			delete(h, "Keep-Alive")
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(pair{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, coded %q (-sent +got):\n%s", s.Name, coding, diff)
			}
			summary := g.summary()
			if summary.Dialect != s.dialect {
				t.Errorf("%s, coded %q: read as %q, want %q", s.Name, coding, summary.Dialect, s.dialect)
			}
			if rec := g.record(); !bytes.Equal(rec.RequestBody, sent.request.Body) || !bytes.Equal(rec.ResponseBody, sent.response.Body) {
				t.Errorf("%s, coded %q: the audit saw %s", s.Name, coding, brief(rec))
			}
			if coding == "" {
				plain = summary
			} else if summary.Words != plain.Words || summary.PromptPrints != plain.PromptPrints || summary.Coverage != plain.Coverage ||
				!slices.Equal(summary.Reasons, plain.Reasons) {
				t.Errorf("%s, coded %q: read as %+v, plain as %+v", s.Name, coding, summary, plain)
			}
		}
	}
	for _, d := range dialect.All() {
		about := d.(dialect.Describer).About()
		stream := slices.ContainsFunc(about.Formats, func(f string) bool {
			return f == "SSE" || f == "NDJSON" || f == "JSON array stream" || f == "AWS eventstream"
		})
		if whole[d.Name()] == 0 && slices.Contains(about.Formats, "JSON") {
			t.Errorf("%s: no sample of a whole answer", d.Name())
		}
		if stream && streamed[d.Name()] == 0 {
			t.Errorf("%s: no sample of a stream", d.Name())
		}
		if whole[d.Name()]+streamed[d.Name()] == 0 {
			t.Errorf("%s: no sample", d.Name())
		}
	}
}

// TestBatchFilesAreNeverWhole passes OpenAI's batches. Their prompts come as a
// file and their answers are fetched as one, and neither is read: such
// exchanges are counted as not audited.
func TestBatchFilesAreNeverWhole(t *testing.T) {
	const (
		line   = `{"custom_id":"1","response":{"status_code":200,"body":{"choices":[{"message":{"content":"hello there"}}]}}}` + "\n"
		upload = "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b.jsonl\"\r\n\r\n" +
			`{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"messages":[]}}` + "\r\n--x--\r\n"
	)
	g := newRig(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("X-Type"))
		io.WriteString(w, r.Header.Get("X-Answer"))
	}), setup{})
	for _, tt := range []struct{ method, path, kind, body, answerType, answer string }{
		{"POST", "/v1/files", "multipart/form-data; boundary=x", upload, "application/json", `{"id":"file-1","object":"file"}`},
		{"GET", "/v1/files/file-2/content", "", "", "application/octet-stream", strings.TrimSpace(line)},
		{"POST", "/v1/batches", "application/json", `{"input_file_id":"file-1","endpoint":"/v1/chat/completions"}`, "application/json", `{"id":"batch_1","object":"batch","status":"validating"}`},
		{"GET", "/v1/batches/batch_1", "", "", "application/json", `{"id":"batch_1","object":"batch","status":"completed","output_file_id":"file-2"}`},
	} {
		var body io.Reader
		if tt.body != "" {
			body = strings.NewReader(tt.body)
		}
		_, got := g.must(tt.method, tt.path, body, "Content-Type", tt.kind, "X-Type", tt.answerType, "X-Answer", tt.answer)
		if string(got) != tt.answer {
			t.Errorf("%s %s: got %q", tt.method, tt.path, got)
		}
		s := g.summary()
		if s.Coverage != audit.None || !slices.Equal(s.Reasons, []dialect.Reason{dialect.ReasonNoDialect}) {
			t.Errorf("%s %s: counted as %q for %v", tt.method, tt.path, s.Coverage, s.Reasons)
		}
	}
}
