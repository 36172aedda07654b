package dialect

import (
	"bytes"
	"fmt"
)

// elements decodes a JSON array whose elements come one by one, as the events
// of a stream do. Google streams so unless asked for server-sent events.
type elements struct {
	output
	read  reader
	limit int // of one element, in bytes

	opened, closed bool   // the array's brackets have come
	element        []byte // unfinished
	depth          int    // open brackets in it
	inside         bool   // an element has begun
	quoted         bool   // inside a string
	escaped        bool   // behind a backslash in it
	over           bool   // the element is over the limit and is skipped
}

func newElements(read reader) *elements {
	return &elements{output: output{stream: true}, read: read, limit: MaxEvent}
}

// Append implements Decoder.
func (d *elements) Append(dst []Delta, b []byte) []Delta {
	d.dst = dst
	for len(b) > 0 && !d.closed {
		if !d.inside {
			b = d.between(b)
			continue
		}
		n, whole := d.walk(b)
		d.keep(b[:n])
		b = b[n:]
		if whole {
			d.take(false)
		}
	}
	dst, d.dst = d.dst, nil
	return dst
}

// between reads what stands between two elements, up to the next one.
func (d *elements) between(b []byte) []byte {
	for i, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n', ',':
		case '[':
			if d.opened {
				d.inside = true
				return b[i:]
			}
			d.opened = true
		case ']':
			d.closed = true
			return nil
		default:
			d.inside = true
			return b[i:]
		}
	}
	return nil
}

// walk returns how much of b belongs to the element and whether it is whole
// with that.
func (d *elements) walk(b []byte) (n int, whole bool) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case d.escaped:
			d.escaped = false
		case d.quoted && c == '\\':
			d.escaped = true
		case c == '"':
			d.quoted = !d.quoted
		case d.quoted:
		case c == '{' || c == '[':
			d.depth++
		case c == ',' && d.depth == 0:
			return i, true
		case c == ']' && d.depth == 0:
			return i, true
		case c == '}' || c == ']':
			if d.depth--; d.depth <= 0 {
				return i + 1, true
			}
		}
	}
	return len(b), false
}

// keep adds b to the unfinished element.
func (d *elements) keep(b []byte) {
	if d.over || len(d.element)+len(b) > d.limit {
		d.element, d.over = nil, true
		return
	}
	d.element = append(d.element, b...)
}

// take reads the element; open says that the body ended inside it.
func (d *elements) take(open bool) {
	d.event++
	if d.over {
		d.fault(ReasonTooLong, fmt.Sprintf("larger than %d bytes", d.limit))
	} else {
		d.json(bytes.TrimSpace(d.element), open, d.read)
	}
	d.element = d.element[:0]
	d.inside, d.over, d.quoted, d.escaped, d.depth = false, false, false, false, 0
}

// Finish implements Decoder.
func (d *elements) Finish(dst []Delta) (_ []Delta, err error) {
	d.dst = dst
	if d.inside && !d.closed {
		d.take(true)
	}
	d.element = nil
	dst, d.dst = d.dst, nil
	d.done = d.closed
	if !d.closed {
		d.faults.add(ReasonTruncated, bodyObject, "the array was not closed")
	}
	return d.close(dst, &err), err
}
