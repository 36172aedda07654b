package dialect

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// splitAll returns the events of a stream that is cut after every n bytes.
func splitAll(stream string, n, limit int) []string {
	s := splitter{limit: limit}
	var all []string
	note := func(e event) {
		switch {
		case e.tooLong:
			all = append(all, "TOO LONG")
		default:
			text := string(e.data)
			if e.failure {
				text += " FAILURE"
			}
			if e.open {
				text += " OPEN"
			}
			all = append(all, text)
		}
	}
	for b := []byte(stream); len(b) > 0; {
		piece := bytes.Clone(b[:min(n, len(b))])
		for rest := piece; ; {
			e, r, ok := s.next(rest)
			if !ok {
				break
			}
			note(e)
			rest = r
		}
		clear(piece)
		b = b[min(n, len(b)):]
	}
	for {
		e, ok := s.finish()
		if !ok {
			return all
		}
		note(e)
	}
}

func TestSplitter(t *testing.T) {
	long := strings.Repeat("x", 40)
	for _, tt := range []struct {
		name   string
		stream string
		want   []string
	}{
		{"lf", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"crlf, several lines", "data: a\r\ndata: b\r\n\r\n", []string{"a\nb"}},
		{"cr", "data: a\r\rdata: b\r\r", []string{"a", "b"}},
		{"mixed", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []string{"a", "b", "c"}},
		{"no space", "data:a\n\n", []string{"a"}},
		{"two spaces", "data:  a\n\n", []string{" a"}},
		{"no colon", "data\n\n", []string{""}},
		{"several lines", "data: a\ndata: b\ndata:\n\n", []string{"a\nb\n"}},
		{"comments", ": hello\n\n:\ndata: a\n: inside\n\n", []string{"a"}},
		{"other fields", "id: 1\nretry: 9\nfoo: bar\nevent: message\ndata: a\n\n", []string{"a"}},
		{"many blank lines", "\n\n\ndata: a\n\n\n\n", []string{"a"}},
		{"no data", "event: error\n\ndata: a\n\n", []string{"a"}},
		{"error event", "event: error\ndata: a\n\ndata: b\n\n", []string{"a FAILURE", "b"}},
		{"error event named behind", "data: a\nevent: error\n\n", []string{"a FAILURE"}},
		{"error field", "error: {\"x\":1}\n\n", []string{`{"x":1} FAILURE`}},
		{"bare object", "data: a\n\n{\"x\":1}\n", []string{"a", `{"x":1} OPEN`}},
		{"unfinished event", "data: a\n\ndata: b\n", []string{"a", "b OPEN"}},
		{"unfinished line", "data: a\n\ndata: b", []string{"a", "b OPEN"}},
		{"unfinished name", "data: a\n\ndat", []string{"a"}},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []string{"a"}},
		{"no blank lines", "data: {\"a\":1}\ndata: {\"b\":2}\ndata: [DONE]\n", []string{`{"a":1}`, `{"b":2}`, "[DONE] OPEN"}},
		{"no blank lines, named", "event: x\ndata: {}\nevent: error\ndata: {\"b\":2}\n\n", []string{"{}", `{"b":2} FAILURE`}},
		{"spread over lines", "data: [\ndata: 1\ndata: ]\n\n", []string{"[\n1\n]"}},
		{"whole first, blank second", "data: {}\ndata:\n\n", []string{"{}", ""}},
		{"line too long", "data: " + long + "\ndata: a\n\ndata: b\n\n", []string{"TOO LONG", "b"}},
		{"data too long", "data: " + long[:20] + "\ndata: " + long[:20] + "\n\ndata: b\n\n", []string{"TOO LONG", "b"}},
		{"last too long", "data: a\n\ndata: " + long, []string{"a", "TOO LONG"}},
		{"too long, then its end", "data: " + long + "\r\n\r\ndata: b\r\n\r\n", []string{"TOO LONG", "b"}},
		{"comment far too long", ":" + long + long + "\n\ndata: b\n\n", []string{"TOO LONG", "b"}},
		{"exactly the limit", "data: " + long[:31] + "\n\n", []string{long[:31]}},
		{"one more", "data: " + long[:32] + "\n\n", []string{"TOO LONG"}},
	} {
		for n := 1; n <= len(tt.stream); n++ {
			if diff := cmp.Diff(tt.want, splitAll(tt.stream, n, 32)); diff != "" {
				t.Errorf("%s, in pieces of %d (-want +got):\n%s", tt.name, n, diff)
				break
			}
		}
	}
}

// TestSplitterIsBounded feeds lines and events without end.
func TestSplitterIsBounded(t *testing.T) {
	const limit = 1 << 16
	for name, piece := range map[string]string{
		"line":       "data: " + strings.Repeat("x", 1000),
		"data lines": "data: " + strings.Repeat("x", 1000) + "\n",
		"blank data": strings.Repeat("data:\n", 1000),
		"comment":    ":" + strings.Repeat("x", 1000),
	} {
		s := splitter{limit: limit}
		for range 1000 {
			for rest := []byte(piece); ; {
				_, r, ok := s.next(rest)
				if !ok {
					break
				}
				rest = r
			}
			if held := cap(s.line) + cap(s.store) + cap(s.again); held > 3*limit {
				t.Fatalf("%s: %d bytes are held, limit %d", name, held, limit)
			}
		}
	}
}

// TestManyLinesAreLinear reads one event of very many lines, which would take
// minutes if each line had the event looked at again.
func TestManyLinesAreLinear(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"x\":[0\n")
	for range 500_000 {
		b.WriteString("data:,{}\n")
	}
	fmt.Fprint(&b, "data: ]}]}\n\ndata: [DONE]\n\n")
	a := decodeWhole(openAIChat{}.Decoder(Prompt{}, typed("text/event-stream")), b.Bytes())
	if a.Err != nil || a.textAt(0, Content) != "a" {
		t.Errorf("got %q, %v", a.textAt(0, Content), a.Err)
	}
}
