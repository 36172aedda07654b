package dialect

// How the bytes of a response become JSON values. The Content-Type says which
// form the body has, never the request's stream flag: servers answer a stream
// with a plain JSON error, and the other way round. Only a body of no type, or
// of text/plain, is judged by how it begins.
//
// A decoder reads on after a fault: one bad event spoils no other. The first
// fault is the error of Finish, the rest are kept by reason.

import (
	"bytes"
	"fmt"
	"mime"
	"strings"

	"github.com/tidwall/gjson"
)

// form says how the responses of a dialect are framed and read.
type form struct {
	read  reader
	frame frameReader // reads a frame of AWS's event stream; nil: such streams are not read
	array bool        // a JSON array comes element by element, and each counts as soon as it is whole
	plain bool        // a body that is neither JSON nor a stream is text
	media bool        // images or audio are what the API answers with
	// single says that a stream has no end marker of its own: it is over when
	// its one choice names a finish reason.
	single bool
	// remember has the decoder keep track of what it gave, so that text that
	// comes again is known; see [output.rest].
	remember bool
}

// newDecoder returns the decoder of a response with the given header, whose
// values f reads.
func newDecoder(p Prompt, h Header, f form) Decoder {
	if h == nil {
		h = noHeader{}
	}
	m := maker{form: f, prompt: p, header: h}
	switch t := mediaType(h.Get("Content-Type")); {
	case t == "text/event-stream":
		return m.stream()
	case isLines(t):
		return m.lines()
	case t == "application/vnd.amazon.eventstream" && f.frame != nil:
		return m.frames()
	case isJSON(t) && f.array:
		return &sniffer{maker: m, json: true}
	case isJSON(t):
		return m.whole()
	case t == "" || t == "text/plain":
		return &sniffer{maker: m, mediaType: t}
	case f.plain && (strings.HasPrefix(t, "text/") || t == "application/x-subrip"):
		return m.text()
	default:
		return m.unread(t)
	}
}

type noHeader struct{}

func (noHeader) Get(string) string { return "" }

// maker makes the decoder of one response, when its framing is known.
type maker struct {
	form
	prompt Prompt
	header Header
}

// begin sets what a decoder knows before the first byte.
func (m maker) begin(o *output) {
	o.info = headerInfo(m.header)
	o.echo = newEcho(m.prompt.asked)
	o.single = m.single
	if m.remember {
		o.said = map[place]*said{}
	}
}

func (m maker) stream() Decoder {
	d := newStream(m.read)
	m.begin(&d.output)
	return d
}

func (m maker) whole() Decoder {
	d := newWhole(m.read)
	m.begin(&d.output)
	return d
}

func (m maker) lines() Decoder {
	d := newLines(m.read)
	m.begin(&d.output)
	return d
}

func (m maker) elements() Decoder {
	d := newElements(m.read)
	m.begin(&d.output)
	return d
}

func (m maker) frames() Decoder {
	d := newFrames(m.frame)
	m.begin(&d.output)
	return d
}

func (m maker) text() Decoder {
	d := &plain{}
	m.begin(&d.output)
	return d
}

func (m maker) unread(mediaType string) Decoder {
	d := newUnread(mediaType)
	d.info.RequestID, d.info.Cached = headerInfo(m.header).RequestID, headerInfo(m.header).Cached
	if m.media && isMedia(mediaType) {
		d.err = nil
	}
	return d
}

// mediaType returns a Content-Type without its parameters, in lower case.
func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// isJSON says whether a media type is one JSON value.
func isJSON(mediaType string) bool {
	return mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
}

// isLines says whether a media type is one JSON value a line.
func isLines(mediaType string) bool {
	switch mediaType {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl",
		"application/jsonlines", "application/x-jsonlines", "application/json-lines", "application/stream+json":
		return true
	}
	return false
}

// isMedia says whether a media type holds no text that could be read here.
func isMedia(mediaType string) bool {
	kind, sub, _ := strings.Cut(mediaType, "/")
	return kind == "image" || kind == "audio" || kind == "video" || sub == "octet-stream"
}

// stream decodes server-sent events.
type stream struct {
	output
	read   reader
	events splitter
}

func newStream(read reader) *stream {
	return &stream{output: output{stream: true}, read: read, events: splitter{limit: MaxEvent}}
}

// Append implements Decoder.
func (d *stream) Append(dst []Delta, b []byte) []Delta {
	d.dst = dst
	for {
		e, rest, ok := d.events.next(b)
		if !ok {
			break
		}
		b = rest
		d.take(e)
	}
	dst, d.dst = d.dst, nil
	return dst
}

// Finish implements Decoder.
func (d *stream) Finish(dst []Delta) (_ []Delta, err error) {
	d.dst = dst
	for {
		e, ok := d.events.finish()
		if !ok {
			break
		}
		d.take(e)
	}
	dst, d.dst = d.dst, nil
	if !d.ended() {
		d.faults.add(ReasonTruncated, bodyObject, "the stream ended before its end was said")
	}
	return d.close(dst, &err), err
}

// take reads one event.
func (d *stream) take(e event) {
	if e.tooLong {
		d.event++
		d.fault(ReasonTooLong, fmt.Sprintf("larger than %d bytes", d.events.limit))
		return
	}
	if len(bytes.TrimSpace(e.data)) == 0 {
		return
	}
	d.event++
	if isDone(e.data) {
		d.done = true
		return
	}
	v, reason := readJSON(e.data)
	switch {
	case reason == ReasonNotJSON && e.lines > 1:
		d.event-- // its lines count instead
		for line := range bytes.SplitSeq(e.data, []byte{'\n'}) {
			d.take(event{data: line, lines: 1, failure: e.failure, open: e.open})
		}
		return
	case reason == ReasonNotJSON && e.open:
		v, reason = readCutJSON(e.data)
	}
	switch {
	case reason == ReasonNotJSON && e.failure:
		d.failure("")
		return
	case reason == ReasonTruncated:
		d.cut = true
		d.fault(reason, "the stream ended inside it")
	case reason != "":
		d.fault(reason, jsonDetail(reason))
		return
	}
	d.value(v, d.read)
	if e.failure && !d.failed {
		d.failure("")
	}
}

// jsonDetail says what readJSON found wrong.
func jsonDetail(r Reason) string {
	if r == ReasonShape {
		return fmt.Sprintf("nested deeper than %d levels", maxDepth)
	}
	return "not JSON"
}

// whole decodes one JSON value, at its end.
type whole struct {
	output
	read  reader
	limit int // in bytes
	body  []byte
	over  bool
}

func newWhole(read reader) *whole { return &whole{read: read, limit: MaxBody} }

// Append implements Decoder.
func (d *whole) Append(dst []Delta, b []byte) []Delta {
	if room := d.limit - len(d.body); len(b) > room {
		b, d.over = b[:room], true
	}
	d.body = append(d.body, b...)
	return dst
}

// Finish implements Decoder.
func (d *whole) Finish(dst []Delta) (_ []Delta, err error) {
	body := trimMark(d.body)
	d.body = nil
	v, reason := readCutJSON(body)
	if reason == ReasonNotJSON && manyValues(body) {
		return d.lines(dst, body)
	}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		d.fault(ReasonTruncated, "empty")
	case d.over:
		d.fault(ReasonTooLong, fmt.Sprintf("larger than %d bytes", d.limit))
	case reason == ReasonTruncated:
		d.fault(reason, "ended inside its JSON")
	case reason != "":
		d.fault(reason, jsonDetail(reason))
	}
	if v.Exists() {
		d.dst = dst
		d.value(v, d.read)
		dst, d.dst = d.dst, nil
	}
	d.done = reason == "" && !d.over
	return d.close(dst, &err), err
}

// manyValues says whether b begins with a line that is JSON by itself: some
// servers send one value a line under the type of a single one.
func manyValues(b []byte) bool {
	n := bytes.IndexByte(b, '\n')
	return n > 0 && b[0] == '{' && shallow(b[:n]) && gjson.ValidBytes(b[:n])
}

// lines reads a body that is one JSON value a line after all.
func (d *whole) lines(dst []Delta, body []byte) ([]Delta, error) {
	l := &lines{output: d.output, read: d.read, limit: d.limit}
	l.stream = true
	if d.over {
		l.fault(ReasonTooLong, fmt.Sprintf("larger than %d bytes", d.limit))
	}
	dst, err := l.Finish(l.Append(dst, body))
	d.output = l.output
	return dst, err
}

// trimMark removes a byte order mark.
func trimMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte(mark)) }

// sniffer decodes a body by how it begins: one of no type, of the type that
// servers fall back on, or JSON that may be an array.
type sniffer struct {
	maker
	json      bool // the type promises JSON
	mediaType string
	begin     []byte // too little to tell
	marked    bool   // a byte order mark was read
	inner     Decoder
}

// mark is the byte order mark that may stand before either form.
const mark = "\xEF\xBB\xBF"

// streamBegins are the ways in which a stream of events begins.
var streamBegins = [...]string{"data:", "event:", "error:", "id:", "retry:", ":"}

// Append implements Decoder.
func (d *sniffer) Append(dst []Delta, b []byte) []Delta {
	if d.inner == nil {
		b = bytes.TrimLeft(append(d.begin, b...), " \t\r\n")
		if !d.marked && bytes.HasPrefix(b, []byte(mark)) {
			d.marked = true
			b = bytes.TrimLeft(b[len(mark):], " \t\r\n")
		}
		if d.inner = d.choose(b); d.inner == nil {
			d.begin = b
			return dst
		}
	}
	return d.inner.Append(dst, b)
}

// choose returns the decoder of a body that begins with b, or nil if b is too
// short to tell.
func (d *sniffer) choose(b []byte) Decoder {
	if len(b) == 0 || !d.marked && len(b) < len(mark) && strings.HasPrefix(mark, string(b)) {
		return nil
	}
	switch {
	case b[0] == '[' && d.array:
		return d.elements()
	case b[0] == '{' || b[0] == '[' || d.json:
		return d.whole()
	case b[0] == 0 && d.frame != nil:
		return d.frames()
	}
	for _, begin := range streamBegins {
		switch {
		case bytes.HasPrefix(b, []byte(begin)):
			return d.stream()
		case len(b) < len(begin) && strings.HasPrefix(begin, string(b)):
			return nil
		}
	}
	return d.other()
}

// other returns the decoder of a body that is neither JSON nor a stream.
func (d *sniffer) other() Decoder {
	if d.plain {
		return d.text()
	}
	return d.unread(d.mediaType)
}

// Finish implements Decoder.
func (d *sniffer) Finish(dst []Delta) ([]Delta, error) {
	switch {
	case d.inner != nil:
	case len(d.begin) == 0:
		d.inner = d.whole()
	default:
		d.inner = d.other()
		dst = d.inner.Append(dst, d.begin)
	}
	return d.inner.Finish(dst)
}

// Info implements Decoder.
func (d *sniffer) Info() Info {
	if d.inner == nil {
		return headerInfo(d.header)
	}
	return d.inner.Info()
}

// unread stands for a body that the dialect does not read.
type unread struct {
	info Info
	err  *Error // nil if there is nothing to read
}

func newUnread(mediaType string) *unread {
	d := &unread{err: &Error{Reason: ReasonMIME, Object: "response body", Detail: "a media type that is not read"}}
	if t, _, err := mime.ParseMediaType(mediaType); err == nil && len(t) <= 64 {
		d.err.Detail = "media type " + t + " is not read"
	}
	if isMedia(mediaType) {
		d.info.Unseen = []Reason{ReasonMedia}
	}
	return d
}

// Append implements Decoder.
func (d *unread) Append(dst []Delta, _ []byte) []Delta { return dst }

// Finish implements Decoder.
func (d *unread) Finish(dst []Delta) ([]Delta, error) {
	if d.err == nil {
		return dst, nil
	}
	return dst, d.err
}

// Info implements Decoder.
func (d *unread) Info() Info { return d.info }
