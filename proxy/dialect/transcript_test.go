package dialect

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	transcripttest "github.com/auditproxy/auditproxy/proxy/internal/transcript"
)

var update = flag.Bool("update", false, "rewrite what the transcripts in testdata expect")

// transcript is one exchange of testdata.
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

// framesOf encodes an AWS event stream.
func framesOf(t testing.TB, lines []byte) []byte {
	t.Helper()
	b, err := transcripttest.Frames(lines)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func transcripts(t testing.TB) []transcript {
	t.Helper()
	read, err := transcripttest.Read("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var all []transcript
	for _, r := range read {
		tr := transcript{
			name: r.Name, archive: r.Archive, method: r.Method, path: r.Path,
			header: header{}, requestHeader: header{},
			request: r.Request, response: r.Response, want: r.Want,
		}
		if r.Type != "" {
			tr.header["Content-Type"] = r.Type
		}
		maps.Copy(tr.header, r.Header)
		if r.RequestType != "" {
			tr.requestHeader["Content-Type"] = r.RequestType
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
