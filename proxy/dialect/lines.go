package dialect

import (
	"bytes"
	"fmt"
)

// lines decodes one JSON value a line. Lines end with \n or \r; a zero byte
// ends one too, which vLLM's old server puts between its values.
type lines struct {
	output
	read  reader
	limit int    // of one line, in bytes
	line  []byte // unfinished
	over  bool   // the unfinished line is over the limit and is skipped
}

func newLines(read reader) *lines {
	return &lines{output: output{stream: true}, read: read, limit: MaxEvent}
}

// Append implements Decoder.
func (d *lines) Append(dst []Delta, b []byte) []Delta {
	d.dst = dst
	for len(b) > 0 {
		n := bytes.IndexAny(b, "\n\r\x00")
		if n < 0 {
			d.keep(b)
			break
		}
		line := b[:n]
		b = b[n+1:]
		if len(d.line) > 0 || d.over {
			d.keep(line)
			line = d.line
		} else if len(line) > d.limit {
			d.keep(line)
		}
		d.take(line, false)
		d.line, d.over = d.line[:0], false
	}
	dst, d.dst = d.dst, nil
	return dst
}

// keep adds b to the unfinished line.
func (d *lines) keep(b []byte) {
	if d.over || len(d.line)+len(b) > d.limit {
		d.line, d.over = nil, true
		return
	}
	d.line = append(d.line, b...)
}

// Finish implements Decoder.
func (d *lines) Finish(dst []Delta) (_ []Delta, err error) {
	d.dst = dst
	d.take(d.line, true)
	d.line = nil
	dst, d.dst = d.dst, nil
	if !d.ended() {
		d.faults.add(ReasonTruncated, bodyObject, "the stream ended before its end was said")
	}
	return d.close(dst, &err), err
}

// take reads one line; open says that the body ended inside it.
func (d *lines) take(line []byte, open bool) {
	if d.over {
		d.event++
		d.fault(ReasonTooLong, fmt.Sprintf("larger than %d bytes", d.limit))
		return
	}
	if d.event == 0 {
		line = trimMark(line)
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}
	d.event++
	if isDone(line) {
		d.done = true
		return
	}
	d.json(line, open, d.read)
}

// json has one JSON value of a stream read; open says that the body ended
// inside it.
func (o *output) json(data []byte, open bool, read reader) {
	v, reason := readJSON(data)
	if open && reason == ReasonNotJSON {
		v, reason = readCutJSON(data)
	}
	switch reason {
	case "":
	case ReasonTruncated:
		o.cut = true
		o.fault(reason, "the stream ended inside it")
	default:
		o.fault(reason, jsonDetail(reason))
		return
	}
	o.value(v, read)
}
