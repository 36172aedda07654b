package dialect

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// valuesOf returns a reader that notes the values it is given.
func valuesOf(all *[]string) reader {
	return func(o *output, v gjson.Result) {
		*all = append(*all, strings.Clone(v.Raw))
		o.done = true
	}
}

// randomJSON returns a value of any type, nested up to depth levels.
func randomJSON(rnd *rand.Rand, depth int) any {
	switch n := rnd.IntN(8); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range rnd.IntN(4) {
			m[randomText(rnd, rnd.IntN(4))] = randomJSON(rnd, depth-1)
		}
		return m
	case n < 4 && depth > 0:
		var l []any
		for range rnd.IntN(4) {
			l = append(l, randomJSON(rnd, depth-1))
		}
		return l
	case n == 4:
		return rnd.IntN(1000) - 500
	case n == 5:
		return rnd.NormFloat64() * 1e6
	case n == 6:
		return []any{nil, true, false}[rnd.IntN(3)]
	}
	return randomText(rnd, rnd.IntN(12)) + []string{"", "]", "}", `"`, `\`, ",", "[{"}[rnd.IntN(7)]
}

// spaced writes v with random white space and escapes.
func spaced(rnd *rand.Rand, v any) string {
	gap := func() string { return []string{"", " ", "\n", "\t ", "\r\n"}[rnd.IntN(5)] }
	switch v := v.(type) {
	case map[string]any:
		var members []string
		for k, e := range v { // in random order
			members = append(members, gap()+spaced(rnd, k)+gap()+":"+gap()+spaced(rnd, e)+gap())
		}
		return "{" + gap() + strings.Join(members, ",") + gap() + "}"
	case []any:
		var elements []string
		for _, e := range v {
			elements = append(elements, gap()+spaced(rnd, e)+gap())
		}
		return "[" + strings.Join(elements, ",") + gap() + "]"
	case string:
		var b strings.Builder
		b.WriteByte('"')
		for _, r := range v {
			if r < 0x10000 && rnd.IntN(3) == 0 {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				j, err := json.Marshal(string(r))
				if err != nil {
					panic(err)
				}
				b.Write(j[1 : len(j)-1])
			}
		}
		return b.String() + `"`
	}
	j, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(j)
}

// TestElements takes arrays apart as the standard library does.
func TestElements(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		var list []any
		for range rnd.IntN(5) {
			list = append(list, randomJSON(rnd, 3))
		}
		body := spaced(rnd, list) + []string{"", "\n", " trailing"}[rnd.IntN(3)]
		var raw []json.RawMessage
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&raw); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		want := []string{}
		for _, e := range raw {
			want = append(want, string(bytes.TrimSpace(e)))
		}
		got := []string{}
		a := decode(newElements(valuesOf(&got)), []byte(body), func() int { return 1 + rnd.IntN(9) })
		if diff := cmp.Diff(want, got); diff != "" || a.Err != nil {
			t.Fatalf("%q: %v (-want +got):\n%s", body, a.Err, diff)
		}
	}
}

func TestBadElements(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		values     []string
		want       *Error
	}{
		{"not closed", `[{"a":1},{"b":2}`, []string{`{"a":1}`, `{"b":2}`}, &Error{ReasonTruncated, "response body", "the array was not closed"}},
		{"cut", `[{"a":1},{"b":"x`, []string{`{"a":1}`, `{"b":"x"}`}, &Error{ReasonTruncated, "event 2", "the stream ended inside it"}},
		{"empty", `[`, nil, &Error{ReasonTruncated, "response body", "the array was not closed"}},
		{"not JSON inside", `[{"a":1},{nonsense},{"b":2}]`, []string{`{"a":1}`, `{"b":2}`}, &Error{ReasonNotJSON, "event 2", "not JSON"}},
		{"stray bracket", `[{"a":1},},{"b":2}]`, []string{`{"a":1}`, `{"b":2}`}, &Error{ReasonNotJSON, "event 2", "not JSON"}},
		{"over the limit", `[{"a":1},{"x":"` + strings.Repeat("y", 100) + `"},{"b":2}]`, []string{`{"a":1}`, `{"b":2}`},
			&Error{ReasonTooLong, "event 2", "larger than 50 bytes"}},
	} {
		for _, n := range []int{1, 7, 1000} {
			var got []string
			d := newElements(valuesOf(&got))
			d.limit = 50
			a := decode(d, []byte(tt.body), func() int { return n })
			if diff := cmp.Diff(tt.values, got); diff != "" {
				t.Errorf("%s: values (-want +got):\n%s", tt.name, diff)
			}
			if diff := cmp.Diff(tt.want, a.Err); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", tt.name, diff)
			}
		}
	}
}

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		values     []string
		want       *Error
	}{
		{"lines", "{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}, nil},
		{"no last line end", "{\"a\":1}\n{\"b\":2}", []string{`{"a":1}`, `{"b":2}`}, nil},
		{"other line ends", "{\"a\":1}\r\n\r\n{\"b\":2}\r{\"c\":3}\x00{\"d\":4}\x00", []string{`{"a":1}`, `{"b":2}`, `{"c":3}`, `{"d":4}`}, nil},
		{"byte order mark", mark + "{\"a\":1}\n", []string{`{"a":1}`}, nil},
		{"cut", "{\"a\":1}\n{\"b\":\"x", []string{`{"a":1}`, `{"b":"x"}`}, &Error{ReasonTruncated, "event 2", "the stream ended inside it"}},
		{"not JSON between", "{\"a\":1}\nnonsense\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}, &Error{ReasonNotJSON, "event 2", "not JSON"}},
		{"over the limit", "{\"a\":1}\n{\"x\":\"" + strings.Repeat("y", 100) + "\"}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`},
			&Error{ReasonTooLong, "event 2", "larger than 50 bytes"}},
		{"over the limit at the end", "{\"a\":1}\n{\"x\":\"" + strings.Repeat("y", 100), []string{`{"a":1}`},
			&Error{ReasonTooLong, "event 2", "larger than 50 bytes"}},
		{"nothing", "\n\n", nil, &Error{ReasonTruncated, "response body", "the stream ended before its end was said"}},
	} {
		for _, n := range []int{1, 7, 1000} {
			var got []string
			d := newLines(valuesOf(&got))
			d.limit = 50
			a := decode(d, []byte(tt.body), func() int { return n })
			if diff := cmp.Diff(tt.values, got); diff != "" {
				t.Errorf("%s: values (-want +got):\n%s", tt.name, diff)
			}
			if diff := cmp.Diff(tt.want, a.Err); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", tt.name, diff)
			}
		}
	}
}

// TestBadFrames damages an event stream in every way.
func TestBadFrames(t *testing.T) {
	delta := func(s string) []byte {
		return framesOf(t, []byte(`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"`+s+`"},"p":"abcd"}`))
	}
	stop := framesOf(t, []byte(`messageStop {"stopReason":"end_turn"}`))
	damaged := func(at int, b []byte) []byte {
		b = bytes.Clone(b)
		b[(at+len(b))%len(b)] ^= 1
		return b
	}
	// A frame whose sums are right but whose lengths are not.
	forged := func(total, headers uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, total)
		b = binary.BigEndian.AppendUint32(b, headers)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	for _, tt := range []struct {
		name string
		body [][]byte
		text string
		want *Error
	}{
		{"whole", [][]byte{delta("a"), delta("b"), stop}, "ab", nil},
		{"empty", nil, "", &Error{ReasonTruncated, "response body", "the stream ended before its end was said"}},
		{"payload damaged", [][]byte{delta("a"), damaged(-6, delta("x")), delta("b"), stop}, "ab", &Error{ReasonShape, "event 2", "a damaged frame"}},
		{"sum damaged", [][]byte{delta("a"), damaged(-1, delta("x")), delta("b"), stop}, "ab", &Error{ReasonShape, "event 2", "a damaged frame"}},
		{"length damaged", [][]byte{delta("a"), damaged(3, delta("x")), delta("b"), stop}, "a",
			&Error{ReasonShape, "event 2", "not a frame of an event stream"}},
		{"headers longer than the frame", [][]byte{delta("a"), forged(20, 5), stop}, "a", &Error{ReasonShape, "event 2", "not a frame of an event stream"}},
		{"frame too short", [][]byte{delta("a"), forged(15, 0), stop}, "a", &Error{ReasonShape, "event 2", "not a frame of an event stream"}},
		{"over the limit", [][]byte{delta("a"), delta(strings.Repeat("x", 2000)), delta("b"), stop}, "ab",
			&Error{ReasonTooLong, "event 2", "larger than 1000 bytes"}},
		{"over the limit and cut", [][]byte{delta("a"), delta(strings.Repeat("x", 2000))[:1500]}, "a",
			&Error{ReasonTooLong, "event 2", "larger than 1000 bytes"}},
		{"cut in the payload", [][]byte{delta("a"), delta("some text")[:140]}, "as",
			&Error{ReasonTruncated, "event 2", "the stream ended inside it"}},
		{"cut in the headers", [][]byte{delta("a"), delta("some text")[:40]}, "a", &Error{ReasonTruncated, "response body", "the stream ended inside a frame"}},
		{"cut in the lengths", [][]byte{delta("a"), delta("some text")[:7]}, "a", &Error{ReasonTruncated, "response body", "the stream ended inside a frame"}},
		{"not frames", [][]byte{[]byte("data: {}\n\n")}, "", &Error{ReasonTruncated, "response body", "the stream ended inside a frame"}},
		{"payload no JSON", [][]byte{framesOf(t, []byte("contentBlockDelta nonsense")), stop}, "", &Error{ReasonNotJSON, "event 1", "not JSON"}},
		{"an unknown event", [][]byte{framesOf(t, []byte("hologram {}")), delta("a"), stop}, "a", &Error{ReasonShape, "event 1", "an event of an unknown type"}},
	} {
		for _, n := range []int{1, 13, 1 << 20} {
			d := newFrames(readConverseFrame)
			d.limit = 1000
			a := decode(d, bytes.Join(tt.body, nil), func() int { return n })
			if diff := cmp.Diff(tt.want, a.Err); diff != "" || a.textAt(0, Content) != tt.text {
				t.Errorf("%s: got %q, want %q; error (-want +got):\n%s", tt.name, a.textAt(0, Content), tt.text, diff)
			}
		}
	}
}

// TestEndless feeds every framing 100 MB without an end, in one line, one
// element or one frame, and looks at what is kept of it.
func TestEndless(t *testing.T) {
	piece, pieces := bytes.Repeat([]byte("x"), 1<<20), 100
	if raceEnabled {
		pieces = MaxEvent>>20 + 2
	}
	frame := binary.BigEndian.AppendUint32(nil, 1<<31-1)
	frame = binary.BigEndian.AppendUint32(frame, 0)
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	none := func(*output, gjson.Result) {}
	s, w, l, e, f, p := newStream(none), newWhole(none), newLines(none), newElements(none), newFrames(readConverseFrame), &plain{}
	for _, tt := range []struct {
		name  string
		d     Decoder
		begin string
		kept  func() int
		limit int
	}{
		{"stream", s, "data: ", func() int { return cap(s.events.line) + cap(s.events.store) }, MaxEvent},
		{"whole", w, `{"a":"`, func() int { return cap(w.body) }, MaxBody},
		{"lines", l, `{"a":"`, func() int { return cap(l.line) }, MaxEvent},
		{"elements", e, `[{"a":"`, func() int { return cap(e.element) }, MaxEvent},
		{"frames", f, string(frame), func() int { return cap(f.buf) }, MaxEvent},
		{"plain", p, "", func() int { return cap(p.tail) }, 16},
	} {
		tt.d.Append(nil, []byte(tt.begin))
		most := 0
		for range pieces {
			tt.d.Append(nil, piece)
			most = max(most, tt.kept())
		}
		if most > tt.limit*3/2 {
			t.Errorf("%s: %d bytes are kept, limit %d", tt.name, most, tt.limit)
		}
		if got, err := tt.d.Finish(nil); len(got) > 1 || err == nil && tt.name != "plain" {
			t.Errorf("%s: got %d deltas, %v", tt.name, len(got), err)
		}
	}
}
