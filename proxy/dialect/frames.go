package dialect

// AWS event streams.
//
// A frame is: total length (4 bytes, big-endian), length of the headers (4),
// CRC-32 of these eight bytes (4), the headers, the payload, CRC-32 of all
// before it (4). The SDK's decoder reads a frame once all of it is here; this
// file collects frames from the pieces of a body within a bound, and looks at
// the first twelve bytes only, to know how long a frame is. A frame over the
// limit is skipped by its length. Behind a frame whose lengths are damaged
// nothing can be found again, and the rest is not read; a frame whose payload
// is damaged is skipped alone.
//
// A frame that the end of the body cuts off is closed where it ends, with
// lengths and sums of its own, so that what had come of its payload is read
// like any other cut value.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

const (
	preludeSize = 12 // two lengths and their sum
	sumSize     = 4
)

// frameReader reads one frame into o. The message is valid until it returns.
type frameReader func(o *output, m eventstream.Message)

// frames decodes an AWS event stream.
type frames struct {
	output
	read  frameReader
	limit int    // of one frame, in bytes
	buf   []byte // unfinished frame
	skip  int    // bytes of a frame over the limit that are still to come
	lost  bool   // no further frame can be found
	sdk   *eventstream.Decoder
	store []byte // for payloads
}

func newFrames(read frameReader) *frames {
	return &frames{output: output{stream: true}, read: read, limit: MaxEvent, sdk: eventstream.NewDecoder()}
}

// Append implements Decoder.
func (d *frames) Append(dst []Delta, b []byte) []Delta {
	d.dst = dst
	for len(b) > 0 && !d.lost {
		if d.skip > 0 {
			n := min(d.skip, len(b))
			d.skip -= n
			b = b[n:]
			continue
		}
		want := preludeSize
		if len(d.buf) >= preludeSize {
			want = int(binary.BigEndian.Uint32(d.buf))
		}
		n := min(want-len(d.buf), len(b))
		d.buf = append(d.buf, b[:n]...)
		b = b[n:]
		switch {
		case len(d.buf) < want:
		case want == preludeSize && !d.prelude():
		case len(d.buf) == int(binary.BigEndian.Uint32(d.buf)):
			d.take()
		}
	}
	dst, d.dst = d.dst, nil
	return dst
}

// prelude looks at the lengths of a frame, and says whether it is to be read.
func (d *frames) prelude() bool {
	total, headers := binary.BigEndian.Uint32(d.buf), binary.BigEndian.Uint32(d.buf[4:])
	sum := binary.BigEndian.Uint32(d.buf[8:])
	switch {
	case crc32.ChecksumIEEE(d.buf[:8]) != sum || total < preludeSize+sumSize || headers > total-preludeSize-sumSize:
		d.event++
		d.fault(ReasonShape, "not a frame of an event stream")
		d.lost, d.buf = true, nil
		return false
	case uint64(total) > uint64(d.limit):
		d.event++
		d.fault(ReasonTooLong, fmt.Sprintf("larger than %d bytes", d.limit))
		d.skip, d.buf = int(total)-preludeSize, nil
		return false
	}
	return true
}

// take reads the frame in buf.
func (d *frames) take() {
	d.event++
	m, err := d.sdk.Decode(bytes.NewReader(d.buf), d.store)
	d.buf = d.buf[:0]
	if err != nil {
		d.fault(ReasonShape, "a damaged frame")
		return
	}
	if d.store = m.Payload[:0]; cap(d.store) > 1<<20 {
		d.store = nil
	}
	d.from, d.base = len(d.dst), 0
	d.read(&d.output, m)
}

// Finish implements Decoder.
func (d *frames) Finish(dst []Delta) (_ []Delta, err error) {
	d.dst = dst
	switch {
	case d.skip > 0 || len(d.buf) > 0 && !d.closeFrame():
		d.faults.add(ReasonTruncated, bodyObject, "the stream ended inside a frame")
	case !d.ended() && !d.lost:
		d.faults.add(ReasonTruncated, bodyObject, "the stream ended before its end was said")
	}
	d.buf, d.store = nil, nil
	dst, d.dst = d.dst, nil
	return d.close(dst, &err), err
}

// closeFrame reads what has come of the frame in buf, and says false if the
// payload has not begun.
func (d *frames) closeFrame() bool {
	if len(d.buf) < preludeSize {
		return false
	}
	total, headers := binary.BigEndian.Uint32(d.buf), binary.BigEndian.Uint32(d.buf[4:])
	end := min(len(d.buf), int(total)-sumSize)
	if end <= preludeSize+int(headers) {
		return false
	}
	b := d.buf[:end]
	binary.BigEndian.PutUint32(b, uint32(end+sumSize))
	binary.BigEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	d.buf = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	d.cut = true
	d.take()
	return true
}

// frameHeader returns a header of a frame, or "".
func frameHeader(m eventstream.Message, name string) string {
	if v, ok := m.Headers.Get(name).(eventstream.StringValue); ok {
		return string(v)
	}
	return ""
}

// payload has the JSON payload of a frame read.
func (o *output) payload(b []byte, read reader) {
	v, reason := readCutJSON(b)
	switch {
	case reason == "":
	case reason == ReasonTruncated && o.cut:
		o.fault(reason, "the stream ended inside it")
	case reason == ReasonTruncated:
		o.fault(ReasonNotJSON, jsonDetail(ReasonNotJSON))
		return
	default:
		o.fault(reason, jsonDetail(reason))
		return
	}
	read(o, v)
}
