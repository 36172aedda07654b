package dialect

// Where the readers of the single APIs put what they find. A reader is a
// function over one JSON value, which is one event of a stream or a whole body;
// what it must know of earlier values is kept in its output, so that the same
// reader serves both forms.

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
)

// reader reads one JSON value of a response into o.
type reader func(o *output, v gjson.Result)

// faults collects what could not be read: the first in full, the others by
// their reason.
type faults struct {
	first *Error
	more  []Reason
}

// add notes a fault. The object is made only if it is the first.
func (f *faults) add(reason Reason, object func() string, detail string) {
	if f.first == nil {
		f.first = &Error{Reason: reason, Object: object(), Detail: detail}
	} else if f.first.Reason != reason {
		f.more = addReason(f.more, reason)
	}
}

// err returns the first fault.
func (f *faults) err() error {
	if f.first == nil {
		return nil
	}
	return f.first
}

func addReason(all []Reason, r Reason) []Reason {
	if slices.Contains(all, r) {
		return all
	}
	return append(all, r)
}

// choice is what must be known of one choice between two values of a stream.
type choice struct {
	seen     bool
	streamed bool   // it came as deltas
	finished bool   // it named a finish reason
	block    int    // of the tool calls that carry no index: the last given
	calls    bool   // block is in use
	callID   string // of that call
}

// maxChoices bounds the table of choices. Choices beyond it are read too, but
// share the state of one.
const maxChoices = 1 << 16

// output takes what the readers find in one response.
type output struct {
	stream bool
	dst    []Delta
	from   int // dst[from:] are of the JSON value being read
	info   Info
	faults faults
	texts  joiner
	said   map[place]*said // nil: what was given is not remembered
	echo   *echo           // nil: no answer begins with its prompt
	args   map[place]*arguments

	choices []choice
	base    int  // what the indexes of the value being read count from
	event   int  // number of the event being read; the first is 1
	cut     bool // the value being read lacks its end
	failed  bool // an error envelope was read
	done    bool // the end marker was read
	single  bool // there is no other end marker than the one choice's finish reason
	batch   bool // what ended was one answer of a list, and more may follow
}

// object names what is being read.
func (o *output) object() string {
	if o.stream {
		return fmt.Sprintf("event %d", o.event)
	}
	return bodyObject()
}

func bodyObject() string { return "response body" }

// fault notes that something could not be read.
func (o *output) fault(reason Reason, detail string) {
	if o.cut && reason == ReasonShape {
		return // what is missing or odd in a value that was cut off says nothing
	}
	o.faults.add(reason, o.object, detail)
}

// misfit notes that v, which was found at where, has a type that it can't have.
func (o *output) misfit(where string, v gjson.Result) {
	if o.faults.first != nil {
		o.fault(ReasonShape, "")
		return
	}
	o.fault(ReasonShape, where+" is "+kind(v))
}

// unseen notes something in the response that is not text.
func (o *output) unseen(r Reason) { o.info.Unseen = addReason(o.info.Unseen, r) }

// choice returns the state of choice i.
func (o *output) choice(i int) *choice {
	i = min(i, maxChoices)
	if i >= len(o.choices) {
		o.choices = slices.Grow(o.choices, i+1-len(o.choices))[:i+1]
	}
	c := &o.choices[i]
	c.seen = true
	return c
}

// text adds the text of v, which is a string or null.
func (o *output) text(p place, where string, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		if v.Str != "" {
			o.add(p, stringOf(v))
		}
	case isNull(v):
	default:
		o.misfit(where, v)
		o.add(p, sourceOf(v))
	}
}

// source adds the text of v, which may be of any type: a string as it is, all
// else as JSON.
func (o *output) source(p place, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		if v.Str != "" {
			o.add(p, stringOf(v))
		}
	case !isNull(v):
		o.add(p, sourceOf(v))
	}
}

// add adds WTF-8.
func (o *output) add(p place, s string) {
	if len(o.dst)-o.from >= maxPieces {
		o.fault(ReasonTooLong, "too many pieces of text")
		return
	}
	s = o.texts.join(p, s)
	if o.said != nil {
		o.note(p, s)
	}
	if s = o.echo.strip(p, s); s != "" {
		o.dst = append(o.dst, Delta{p.choice, p.channel, p.block, s})
	}
}

// each has read read the elements of a list, which was found at where.
func (o *output) each(where string, v gjson.Result, read func(i int, e gjson.Result)) {
	if !v.IsArray() {
		if !isNull(v) {
			o.misfit(where, v)
		}
		return
	}
	i := 0
	for _, e := range v.All() {
		read(i, e)
		i++
	}
}

// finish notes a finish reason.
func (o *output) finish(c *choice, v gjson.Result) {
	if v.Type != gjson.String || v.Str == "" {
		return
	}
	c.finished = true
	if o.info.FinishReason == "" {
		o.info.FinishReason = word(v, 64)
	}
}

// failure notes an error envelope. Code is never the message; "" means that the
// envelope has none.
func (o *output) failure(code string) {
	o.failed = true
	if o.info.Error == "" {
		o.info.Error = cmp.Or(code, "error")
	}
}

// name notes an id or a model, whichever dst is, unless it is known.
func name(dst *string, v gjson.Result) {
	if *dst == "" {
		*dst = word(v, 256)
	}
}

// value has one JSON value read.
func (o *output) value(v gjson.Result, read reader) {
	o.from, o.base = len(o.dst), 0
	read(o, v)
}

// close notes how the body ended, after its last value, and returns the deltas.
func (o *output) close(dst []Delta, err *error) []Delta {
	dst = o.texts.flush(o.echo.flush(dst))
	for _, r := range o.faults.more {
		o.unseen(r)
	}
	*err = o.faults.err()
	return dst
}

// ended says whether the response said that it is over.
func (o *output) ended() bool {
	if o.done || o.failed {
		return true
	}
	some := false
	for i := range o.choices {
		if c := &o.choices[i]; c.seen {
			if !c.finished {
				return false
			}
			some = true
		}
	}
	return some
}

// Info implements Decoder.
func (o *output) Info() Info {
	info := o.info
	info.Unseen = slices.Clip(info.Unseen)
	info.Complete = !o.cut && !o.batch && (o.done ||
		o.stream && (o.failed || o.single && len(o.choices) == 1 && o.ended()))
	return info
}
