package dialect

// Server-sent events, as servers really send them.
//
// A line ends with \n, \r\n or \r. `field: value` and `field:value` are the
// same; a line that begins with a colon is a comment; several data lines of one
// event are joined with \n; a blank line ends the event. Beyond the standard:
//
//   - An event that the body's end leaves open is given away all the same: its
//     text went to the client.
//   - Some servers leave the blank line out. If a data line is whole JSON by
//     itself and another follows, they are two events, for two JSON values in a
//     row are never one. This is asked once in an event, so that a value spread
//     over many lines costs one pass.
//   - A line that begins with a brace is data: servers that fail in the middle
//     of a stream write their error bare.
//   - `error: {...}` (llama.cpp before 2025) is an event named error.
//
// An event larger than the limit is skipped up to its blank line, and what was
// kept of it is let go. Memory is at most twice the limit: one unfinished line
// and the data of one unfinished event. Fields id and retry mean nothing here.

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// lineSlack is what a line may hold beside its data: a name, a colon, a mark.
const lineSlack = 16

// event is one server-sent event. The data is valid until the splitter reads on.
type event struct {
	data    []byte
	lines   int  // of data
	failure bool // named "error"
	tooLong bool // over the limit: there is no data
	open    bool // the body ended inside it
}

// splitter cuts a stream into events.
type splitter struct {
	limit int // of the data of one event, in bytes

	started bool   // the first line has been seen
	afterCR bool   // the last byte was a \r, and a \n that follows ends no line
	skip    bool   // inside an event over the limit
	filled  bool   // the line that is skipped has bytes
	line    []byte // of an unfinished line, what came in earlier pieces
	cur     event  // the unfinished event; its data is that of store
	store   []byte
	given   bool   // store holds an event that was given away
	again   []byte // the line that the next event begins with
}

// next returns the next event that b completes and what follows it in b, which
// is to be read on before b changes. When b completes no further one, next
// keeps what it needs of b and says false.
func (s *splitter) next(b []byte) (e event, rest []byte, ok bool) {
	if s.given {
		s.given, s.cur, s.store = false, event{}, s.store[:0]
		if s.again != nil {
			line := s.again
			s.again = nil
			s.take(line)
		}
	}
	for len(b) > 0 {
		if s.afterCR {
			s.afterCR = false
			if b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		n := lineEnd(b)
		if n < 0 {
			s.keep(b)
			break
		}
		line := b[:n]
		s.afterCR = b[n] == '\r'
		b = b[n+1:]
		if s.skip {
			if len(line) == 0 && !s.filled {
				s.skip = false
				return event{tooLong: true}, b, true
			}
			s.filled = false
			continue
		}
		if len(s.line) > 0 {
			s.keep(line)
			if s.skip {
				s.filled = false
				continue
			}
			line, s.line = s.line, s.line[:0]
		}
		if s.take(line) {
			return s.give(), b, true
		}
	}
	return event{}, nil, false
}

// finish returns the events that the end of the body completes, in the manner
// of next.
func (s *splitter) finish() (e event, ok bool) {
	if e, _, ok := s.next(nil); ok {
		return e, true
	}
	if len(s.line) > 0 {
		line := s.line
		s.line = nil
		if s.take(line) {
			return s.give(), true
		}
	}
	if s.skip {
		s.skip = false
		return event{tooLong: true, open: true}, true
	}
	if s.cur.lines > 0 {
		e := s.give()
		e.open = true
		return e, true
	}
	return event{}, false
}

// lineEnd returns the index of the first \n or \r of b, or -1.
func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if cr := bytes.IndexByte(b[:n], '\r'); cr >= 0 {
		return cr
	}
	return n
}

// keep adds b to the unfinished line, or begins to skip the event.
func (s *splitter) keep(b []byte) {
	if s.skip {
		s.filled = true
		return
	}
	if len(s.line)+len(b) > s.limit+lineSlack {
		s.drop()
		return
	}
	s.line = append(s.line, b...)
}

// drop lets the unfinished event go; the rest of its line and its remaining
// lines are skipped.
func (s *splitter) drop() {
	s.skip, s.filled = true, true
	s.line, s.store, s.cur = nil, nil, event{}
}

// give hands the unfinished event out.
func (s *splitter) give() event {
	s.given = true
	s.cur.data = s.store
	return s.cur
}

// take reads one whole line and says whether it ends an event that has data.
func (s *splitter) take(line []byte) bool {
	if !s.started {
		s.started = true
		line = trimMark(line)
	}
	if len(line) == 0 {
		if s.cur.lines > 0 {
			return true
		}
		s.cur = event{}
		return false
	}
	if len(line) > s.limit+lineSlack {
		s.drop()
		s.filled = false // the line was read to its end
		return false
	}
	if line[0] == '{' {
		return s.data(line, line)
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		return s.data(line, value)
	case "event":
		if s.split(line) {
			return true
		}
		s.cur.failure = string(value) == "error"
	case "error":
		if s.data(line, value) {
			return true
		}
		s.cur.failure = true
	}
	return false
}

// data adds the value of one line of data. It says true if the line belongs to
// a further event.
func (s *splitter) data(line, value []byte) bool {
	if s.split(line) {
		return true
	}
	if len(s.store)+len(value)+1 > s.limit {
		s.drop()
		s.filled = false // the line was read to its end
		return false
	}
	if s.cur.lines > 0 {
		s.store = append(s.store, '\n')
	}
	s.store = append(s.store, value...)
	s.cur.lines++
	return false
}

// split says whether the unfinished event is whole without line, which the next
// event then begins with.
func (s *splitter) split(line []byte) bool {
	if s.cur.lines != 1 || !alone(s.store) {
		return false
	}
	s.again = line
	return true
}

// alone says whether data is an event by itself.
func alone(data []byte) bool {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return false
	}
	switch data[len(data)-1] {
	case '}', ']':
		return isDone(data) || shallow(data) && gjson.ValidBytes(data)
	}
	return false
}

// isDone says whether data is the end marker of OpenAI-style streams.
func isDone(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t"), []byte("[DONE]"))
}
