package dialect

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// samples is where recorded interactions of real APIs lie, when they are there.
const samples = "../../../shared/data/dialects"

// recording is one recorded exchange. Fixtures of single streams have no request.
type recording struct {
	file        string
	n           int // in the file
	method      string
	path        string
	request     []byte
	requestType string
	contentType string
	response    []byte
}

func (r recording) String() string { return fmt.Sprintf("%s#%d", r.file, r.n) }

func (r recording) dialect() Dialect {
	return Find(All(), cmp.Or(r.method, "POST"), r.path)
}

func (r recording) header() header { return typed(r.contentType) }

func (r recording) prompt() Prompt {
	if r.request == nil {
		return Prompt{}
	}
	p, _ := r.dialect().Prompt(r.request, r.path, typed(r.requestType))
	return p
}

// sampleFolders are the folders of samples that hold exchanges. The others
// hold logs, which are read elsewhere.
var sampleFolders = []string{
	"anthropic", "azure", "bedrock", "cohere", "gemini", "ollama", "openai-audio", "openai-chat", "openai-compat", "openai-completions",
	"openai-embeddings", "openai-responses", "workers-ai",
}

// recordings reads all samples that are within scope.
func recordings(t testing.TB) []recording {
	t.Helper()
	if _, err := os.Stat(samples); err != nil {
		t.Skipf("recorded samples are not here: %v", err)
	}
	var all []recording
	for _, dir := range sampleFolders {
		files, err := filepath.Glob(filepath.Join(samples, dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := dir + "/" + filepath.Base(file)
			got, err := readRecordings(name, body)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range got {
				got[i].file, got[i].n = name, i
			}
			all = append(all, got...)
		}
	}
	return all
}

func readRecordings(name string, body []byte) ([]recording, error) {
	switch {
	case strings.HasSuffix(name, ".yaml"):
		return readCassette(body)
	case strings.HasSuffix(name, ".har"):
		return readHAR(body)
	case strings.HasSuffix(name, ".chunks.txt"):
		var b bytes.Buffer
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				fmt.Fprintf(&b, "data: %s\n\n", line)
			}
		}
		return []recording{{path: pathOf(name), contentType: "text/event-stream", response: b.Bytes()}}, nil
	case strings.HasSuffix(name, ".httprr"):
		return readTrace(body)
	case strings.HasSuffix(name, ".sse"), strings.HasSuffix(name, ".txt"):
		return []recording{{path: pathOf(name), contentType: "text/event-stream", response: body}}, nil
	case strings.HasSuffix(name, ".json"):
		return []recording{{path: pathOf(name), contentType: "application/json", response: body}}, nil
	}
	return nil, nil // WebSocket frames
}

// pathOf returns a path for fixtures that have none.
func pathOf(name string) string {
	for _, p := range []struct{ prefix, path string }{
		{"workers-ai/", "/client/v4/accounts/1/ai/run/@cf/some/model"},
		{"openai-responses/", "/v1/responses"},
		{"openai-audio/", "/v1/audio/transcriptions"},
		{"anthropic/", "/v1/messages"},
		{"gemini/unary", "/v1beta/models/gemini-pro:generateContent"},
		{"gemini/", "/v1beta/models/gemini-pro:streamGenerateContent"},
		{"cohere/v2", "/v2/chat"},
	} {
		if strings.HasPrefix(name, p.prefix) {
			return p.path
		}
	}
	return "/v1/chat/completions"
}

// readTrace reads a raw HTTP trace of one exchange, whose head says how long
// the request and the response are.
func readTrace(b []byte) ([]recording, error) {
	_, b, _ = bytes.Cut(b, []byte("\n"))
	head, b, _ := bytes.Cut(b, []byte("\n"))
	var n, m int
	if _, err := fmt.Sscan(string(head), &n, &m); err != nil || n+m > len(b) {
		return nil, fmt.Errorf("a bad head %q: %w", head, err)
	}
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b[:n])))
	if err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b[n:n+m])), req)
	if err != nil {
		return nil, err
	}
	r := recording{method: req.Method, path: req.URL.EscapedPath(), contentType: res.Header.Get("Content-Type")}
	if r.request, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	r.response, err = io.ReadAll(res.Body)
	return []recording{r}, err
}

// readCassette reads the two kinds of VCR cassettes.
func readCassette(body []byte) ([]recording, error) {
	var c struct {
		Interactions []struct {
			Request struct {
				Body    any
				Method  string
				URL     string
				URI     string
				Headers map[string]any
			}
			Response struct {
				Body    any
				Headers map[string]any
			}
		}
	}
	if err := yaml.Unmarshal(body, &c); err != nil {
		return nil, err
	}
	var all []recording
	for _, i := range c.Interactions {
		u, err := url.Parse(i.Request.URL + i.Request.URI)
		if err != nil {
			return nil, err
		}
		r := recording{method: i.Request.Method, path: u.EscapedPath()}
		r.request = bytesOf(i.Request.Body)
		r.response = bytesOf(i.Response.Body)
		r.requestType = headerOf(i.Request.Headers, "content-type")
		r.contentType = headerOf(i.Response.Headers, "content-type")
		if headerOf(i.Response.Headers, "content-encoding") == "gzip" && bytes.HasPrefix(r.response, []byte{0x1f, 0x8b}) {
			if r.response, err = inflate(r.response); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// bytesOf returns a body as a cassette holds it: a string, bytes, or a map
// with one of them.
func bytesOf(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	case map[string]any:
		return bytesOf(v["string"])
	}
	return nil
}

func headerOf(h map[string]any, name string) string {
	for k, v := range h {
		if strings.EqualFold(k, name) {
			if list, ok := v.([]any); ok && len(list) > 0 {
				return fmt.Sprint(list[0])
			}
			return fmt.Sprint(v)
		}
	}
	return ""
}

func inflate(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// readHAR reads the HAR files of Polly.js.
func readHAR(body []byte) ([]recording, error) {
	type header struct{ Name, Value string }
	var h struct {
		Log struct {
			Entries []struct {
				Request struct {
					Method, URL string
					PostData    struct{ Text string }
				}
				Response struct {
					Headers []header
					Content struct{ MimeType, Text, Encoding string }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return nil, err
	}
	var all []recording
	for _, e := range h.Log.Entries {
		u, err := url.Parse(e.Request.URL)
		if err != nil {
			return nil, err
		}
		r := recording{method: e.Request.Method, path: u.EscapedPath(), request: []byte(e.Request.PostData.Text)}
		r.contentType = e.Response.Content.MimeType
		if r.response, err = polly(e.Response.Content.Text, e.Response.Content.Encoding); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// polly returns the body that Polly stored as text, as base64, or as a JSON
// array of base64 pieces of a gzip stream.
func polly(text, encoding string) ([]byte, error) {
	var pieces []string
	if strings.HasPrefix(text, `["`) && json.Unmarshal([]byte(text), &pieces) == nil {
		var b []byte
		for _, p := range pieces {
			d, err := base64.StdEncoding.DecodeString(p)
			if err != nil {
				return nil, err
			}
			b = append(b, d...)
		}
		return inflate(b)
	}
	if encoding == "base64" {
		return base64.StdEncoding.DecodeString(text)
	}
	return []byte(text), nil
}

// answer is what a decoder made of one body.
type answer struct {
	Places []Delta // one for each place, in order of appearance, with all its text
	Info   Info
	Err    *Error
}

// decode has d decode body in pieces of the sizes that cut gives.
func decode(d Decoder, body []byte, cut func() int) answer {
	var deltas []Delta
	for len(body) > 0 {
		n := min(max(cut(), 1), len(body))
		// A piece of memory that is gone afterwards, as the network's is.
		piece := bytes.Clone(body[:n])
		deltas = d.Append(deltas, piece)
		clear(piece)
		body = body[n:]
	}
	deltas, err := d.Finish(deltas)
	a := answer{Places: merge(deltas), Info: d.Info()}
	a.Err = errorIn(err)
	return a
}

// decodeWhole has d decode body in one piece.
func decodeWhole(d Decoder, body []byte) answer {
	return decode(d, body, func() int { return len(body) })
}

// merge joins the text of each place.
func merge(deltas []Delta) []Delta {
	var all []Delta
	text := map[place]*strings.Builder{}
	for _, d := range deltas {
		p := place{d.Choice, d.Channel, d.Block}
		if text[p] == nil {
			text[p] = new(strings.Builder)
			all = append(all, d)
		}
		text[p].WriteString(d.Text)
	}
	for i, d := range all {
		all[i].Text = text[place{d.Choice, d.Channel, d.Block}].String()
	}
	return all
}

// textAt returns all text of one choice's channel, over its blocks.
func (a answer) textAt(choice int, c Channel) string {
	s := ""
	for _, d := range a.Places {
		if d.Choice == choice && d.Channel == c {
			s += d.Text
		}
	}
	return s
}

// errorIn returns the dialect's error that err is, or nil.
func errorIn(err error) *Error {
	var e *Error
	errors.As(err, &e)
	return e
}

// header is a Header for tests. Its names are in the canonical form.
type header map[string]string

func (h header) Get(name string) string { return h[textproto.CanonicalMIMEHeaderKey(name)] }

// typed is the header of a body of the given type.
func typed(contentType string) header { return header{"Content-Type": contentType} }
