package dialect

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite what the transcripts in testdata expect")

// transcript is a file of testdata: a comment with the path and the response's
// type, then the files request, response and want. A missing request or
// response is not read.
type transcript struct {
	name        string
	archive     *txtar.Archive
	path        string
	contentType string
	request     []byte
	response    []byte
	want        []byte
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
		tr := transcript{name: filepath.Base(file), archive: a}
		for line := range strings.Lines(string(a.Comment)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "path":
				tr.path = value
			case "type":
				tr.contentType = value
			}
		}
		for _, f := range a.Files {
			switch f.Name {
			case "request":
				tr.request = f.Data
			case "response":
				tr.response = f.Data
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
			d := Find(All(), "POST", tr.path)
			if d == nil {
				t.Fatalf("no dialect matches %q", tr.path)
			}
			var got bytes.Buffer
			fmt.Fprintf(&got, "dialect %s\n", d.Name())
			if tr.request != nil {
				writePrompt(&got, d, tr)
			}
			if tr.response != nil {
				writeAnswer(&got, decodeWhole(d.Decoder(tr.contentType), tr.response))
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
	p, err := d.Prompt(tr.request, tr.path, nil)
	fmt.Fprintf(w, "prompt model=%s stream=%t\n", p.Model, p.Stream)
	for _, part := range p.Parts {
		fmt.Fprintf(w, "  %s %q\n", part.Role, part.Text)
	}
	if len(p.Unseen) > 0 {
		fmt.Fprintf(w, "  unseen %s\n", p.Unseen)
	}
	if err != nil {
		fmt.Fprintf(w, "  error %s: %v\n", err.(*Error).Reason, err)
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
