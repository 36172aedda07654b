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
)

// newDecoder returns the decoder of a body of the given type whose JSON values
// read understands.
func newDecoder(contentType string, read reader) Decoder {
	switch t := mediaType(contentType); {
	case t == "text/event-stream":
		return newStream(read)
	case isJSON(t):
		return newWhole(read)
	case t == "" || t == "text/plain":
		return &sniffer{read: read, mediaType: t}
	default:
		return newUnread(t)
	}
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
	return d.close(dst, &err), err
}

// trimMark removes a byte order mark.
func trimMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte(mark)) }

// sniffer decodes a body of no type, or of the type that servers fall back on,
// by how it begins.
type sniffer struct {
	read      reader
	mediaType string
	begin     []byte // too little to tell
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
		b = bytes.TrimLeft(trimMark(b), " \t\r\n")
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
	if len(b) == 0 || len(b) < len(mark) && strings.HasPrefix(mark, string(b)) {
		return nil
	}
	if b[0] == '{' || b[0] == '[' {
		return newWhole(d.read)
	}
	for _, begin := range streamBegins {
		switch {
		case bytes.HasPrefix(b, []byte(begin)):
			return newStream(d.read)
		case len(b) < len(begin) && strings.HasPrefix(begin, string(b)):
			return nil
		}
	}
	return newUnread(d.mediaType)
}

// Finish implements Decoder.
func (d *sniffer) Finish(dst []Delta) ([]Delta, error) {
	switch {
	case d.inner != nil:
	case len(d.begin) == 0:
		d.inner = newWhole(d.read)
	default:
		d.inner = newUnread(d.mediaType)
	}
	return d.inner.Finish(dst)
}

// Info implements Decoder.
func (d *sniffer) Info() Info {
	if d.inner == nil {
		return Info{}
	}
	return d.inner.Info()
}

// unread stands for a body that the dialect does not read.
type unread struct {
	info Info
	err  *Error
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
func (d *unread) Finish(dst []Delta) ([]Delta, error) { return dst, d.err }

// Info implements Decoder.
func (d *unread) Info() Info { return d.info }
