// Package transcript reads the exchanges that tests of the proxy and of its
// dialects run on. They are kept as txtar files: a comment with lines of the
// form "key: value" (path, method, the response's type, further headers of the
// response, the request's type), then the files request, response and want. A
// missing request or response was not made. A response that is an AWS event
// stream is written as a file named frames: see [Frames].
package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"golang.org/x/tools/txtar"
)

// Transcript is one exchange.
type Transcript struct {
	Name        string // of the file
	Archive     *txtar.Archive
	Method      string
	Path        string
	RequestType string            // "" if the file names none
	Type        string            // of the response, likewise
	Header      map[string]string // further fields of the response's header
	Request     []byte
	Response    []byte
	Want        []byte
}

// Read reads the transcripts of a folder, of which there must be one at least.
func Read(dir string) ([]Transcript, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no transcripts in %s", dir)
	}
	var all []Transcript
	for _, file := range files {
		tr, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, tr)
	}
	return all, nil
}

func read(file string) (tr Transcript, err error) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		return tr, err
	}
	tr = Transcript{Name: filepath.Base(file), Archive: a, Method: "POST", Header: map[string]string{}}
	for line := range strings.Lines(string(a.Comment)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "path":
			tr.Path = value
		case "method":
			tr.Method = value
		case "type":
			tr.Type = value
		case "request-type":
			tr.RequestType = value
		case "header":
			name, value, _ := strings.Cut(value, ": ")
			tr.Header[name] = value
		}
	}
	for _, f := range a.Files {
		switch f.Name {
		case "request":
			tr.Request = f.Data
		case "response":
			tr.Response = f.Data
		case "frames":
			if tr.Response, err = Frames(f.Data); err != nil {
				return tr, err
			}
		case "want":
			tr.Want = f.Data
		default:
			return tr, fmt.Errorf("unknown file %s", f.Name)
		}
	}
	return tr, nil
}

// Frames encodes an AWS event stream. Each line is the type of an event and its
// payload; of a chunk, the payload is what is wrapped in it, and a type behind
// an exclamation mark is that of an exception.
func Frames(lines []byte) ([]byte, error) {
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
		switch kind {
		case "chunk":
			wrapped, err := json.Marshal(map[string]any{"bytes": []byte(payload), "p": "abcdefgh"})
			if err != nil {
				return nil, err
			}
			message.Payload = wrapped
		case "part": // raw bytes, as SageMaker sends them
			text, err := strconv.Unquote(payload)
			if err != nil {
				return nil, err
			}
			message.Payload = []byte(text)
		}
		if err := eventstream.NewEncoder().Encode(&b, message); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
