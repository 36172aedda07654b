package dialect

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite what the transcripts in testdata expect")

// transcript is a file of testdata: a comment with lines of the form "key:
// value" (path, method, the response's type, further response headers, the
// request's type), then the files request, response and want. A missing request
// or response is not read. A response that is an AWS event stream is written as
// a file named frames: see [framesOf].
type transcript struct {
	name          string
	archive       *txtar.Archive
	method        string
	path          string
	header        header // of the response
	requestHeader header
	request       []byte
	response      []byte
	want          []byte
}

// dialect returns the dialect that speaks in the transcript, or nil.
func (tr transcript) dialect() Dialect { return Find(All(), tr.method, tr.path) }

// prompt returns what the dialect reads in the request.
func (tr transcript) prompt(d Dialect) Prompt {
	if tr.request == nil && tr.method == "POST" {
		return Prompt{}
	}
	p, _ := d.Prompt(tr.request, tr.path, tr.requestHeader)
	return p
}

// framesOf encodes an AWS event stream. Each line is the type of an event and
// its payload; of a chunk, the payload is what is wrapped in it, and a type
// behind an exclamation mark is that of an exception.
func framesOf(t testing.TB, lines []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(lines) {
		kind, payload, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		if !ok {
			continue
		}
		message := eventstream.Message{Payload: []byte(payload)}
		set := func(name, value string) { message.Headers.Set(name, eventstream.StringValue(value)) }
		if exception, ok := strings.CutPrefix(kind, "!"); ok {
			set(":message-type", "exception")
			set(":exception-type", exception)
		} else {
			set(":message-type", "event")
			set(":event-type", kind)
		}
		set(":content-type", "application/json")
		if kind == "chunk" {
			wrapped, err := json.Marshal(map[string]any{"bytes": []byte(payload), "p": "abcdefgh"})
			if err != nil {
				t.Fatal(err)
			}
			message.Payload = wrapped
		}
		if kind == "part" { // raw bytes, as SageMaker sends them
			text, err := strconv.Unquote(payload)
			if err != nil {
				t.Fatal(err)
			}
			message.Payload = []byte(text)
		}
		if err := eventstream.NewEncoder().Encode(&b, message); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func transcripts(t testing.TB) []transcript {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	var all []transcript
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tr := transcript{name: filepath.Base(file), archive: a, method: "POST", header: header{}, requestHeader: header{}}
		for line := range strings.Lines(string(a.Comment)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "path":
				tr.path = value
			case "method":
				tr.method = value
			case "type":
				tr.header["Content-Type"] = value
			case "request-type":
				tr.requestHeader["Content-Type"] = value
			case "header":
				name, value, _ := strings.Cut(value, ": ")
				tr.header[name] = value
			}
		}
		for _, f := range a.Files {
			switch f.Name {
			case "request":
				tr.request = f.Data
			case "response":
				tr.response = f.Data
			case "frames":
				tr.response = framesOf(t, f.Data)
			case "want":
				tr.want = f.Data
			default:
				t.Fatalf("%s: unknown file %s", file, f.Name)
			}
		}
		all = append(all, tr)
	}
	return all
}

// TestTranscripts reads the transcripts in testdata.
func TestTranscripts(t *testing.T) {
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			d := tr.dialect()
			if d == nil {
				t.Fatalf("no dialect matches %q", tr.path)
			}
			var got bytes.Buffer
			fmt.Fprintf(&got, "dialect %s\n", d.Name())
			if tr.request != nil || tr.method == "GET" {
				writePrompt(&got, d, tr)
			}
			if tr.response != nil {
				writeAnswer(&got, decodeWhole(d.Decoder(tr.prompt(d), tr.header), tr.response))
			}
			if *update {
				rewrite(t, tr, got.Bytes())
				return
			}
			if diff := cmp.Diff(string(tr.want), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func writePrompt(w *bytes.Buffer, d Dialect, tr transcript) {
	p, err := d.Prompt(tr.request, tr.path, tr.requestHeader)
	fmt.Fprintf(w, "prompt model=%s stream=%t\n", p.Model, p.Stream)
	for _, part := range p.Parts {
		fmt.Fprintf(w, "  %s %q\n", part.Role, part.Text)
	}
	if p.Poll != "" {
		fmt.Fprintf(w, "  poll %s\n", p.Poll)
	}
	if len(p.Unseen) > 0 {
		fmt.Fprintf(w, "  unseen %s\n", p.Unseen)
	}
	if err != nil {
		fmt.Fprintf(w, "  error %s: %v\n", errorIn(err).Reason, err)
	}
}

func writeAnswer(w *bytes.Buffer, a answer) {
	fmt.Fprintf(w, "response\n")
	for _, d := range a.Places {
		fmt.Fprintf(w, "  %d %s %d %q\n", d.Choice, d.Channel, d.Block, d.Text)
	}
	i := a.Info
	fmt.Fprintf(w, "  id=%s model=%s finish=%s tokens=%d+%d cached=%d\n",
		i.ID, i.Model, i.FinishReason, i.PromptTokens, i.CompletionTokens, i.CachedTokens)
	if i.RequestID != "" || i.Cached {
		fmt.Fprintf(w, "  request=%s out of a cache=%t\n", i.RequestID, i.Cached)
	}
	if i.Queued != "" {
		fmt.Fprintf(w, "  queued %s\n", i.Queued)
	}
	if i.Error != "" {
		fmt.Fprintf(w, "  envelope %s\n", i.Error)
	}
	if len(i.Unseen) > 0 {
		fmt.Fprintf(w, "  unseen %s\n", i.Unseen)
	}
	if a.Err != nil {
		fmt.Fprintf(w, "  error %s: %v\n", a.Err.Reason, a.Err)
	}
}

func rewrite(t *testing.T, tr transcript, want []byte) {
	t.Helper()
	files := tr.archive.Files[:0]
	for _, f := range tr.archive.Files {
		if f.Name != "want" {
			files = append(files, f)
		}
	}
	tr.archive.Files = append(files, txtar.File{Name: "want", Data: want})
	if err := os.WriteFile(filepath.Join("testdata", tr.name), txtar.Format(tr.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
