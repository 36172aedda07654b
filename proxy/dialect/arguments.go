package dialect

// The arguments of tool calls.
//
// Most APIs send them as JSON inside a JSON string, so a text in them is escaped
// twice, and one that was leaked into a call would not look like the prompt that
// it came from: a line feed in it reads `\n`, a quote `\"`, and outside ASCII
// every letter may be six bytes. What is given is therefore the text with the
// escapes of the inner JSON undone as well; the braces, the keys and the quotes
// stay where they are. APIs that send arguments as an object are read to the
// same effect by [sourceOf]. Offsets into the channel count in that decoded
// text, as they do in every other channel.
//
// Only what begins like JSON with strings in it, with a brace, a bracket or a
// quote, is read so. The input of a custom tool, code and patches are no JSON,
// and a backslash in them is one. One level is undone: what a string of the
// arguments says is text, even where it looks like JSON again.
//
// Pieces are cut anywhere, so an escape that is not whole is held back until the
// next piece of the same place; halves of a pair of surrogates are joined behind
// this, as those of any text are. Models write arguments, and so they need not
// be JSON: a backslash that begins no escape stays as it is. One that is still
// unfinished when the answer ends is no text, and is dropped.

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxArguments bounds the places whose arguments are followed from piece to
// piece. Pieces at further places are each read by themselves.
const maxArguments = 1 << 14

// arguments is what is known of the arguments at one place.
type arguments struct {
	begun bool   // something else than white space has come
	plain bool   // they are not JSON
	held  string // an unfinished escape
}

// arguments adds the text of v, which is a piece of JSON in a string, or JSON
// of any type.
func (o *output) arguments(p place, v gjson.Result) {
	switch {
	case v.Type != gjson.String:
		o.source(p, v)
	case v.Str != "":
		o.add(p, o.argumentsAt(p).decode(stringOf(v)))
	}
}

// wholeArguments gives what v, the whole arguments of p, says beyond the pieces
// that came.
func (o *output) wholeArguments(p place, v gjson.Result) {
	if v.Type != gjson.String {
		o.wholeSource(p, v)
		return
	}
	delete(o.args, p) // the whole has what the pieces left unfinished
	o.rest(p, argumentsOf(stringOf(v)))
}

func (o *output) argumentsAt(p place) *arguments {
	a := o.args[p]
	if a == nil {
		a = new(arguments)
		if len(o.args) < maxArguments {
			if o.args == nil {
				o.args = map[place]*arguments{}
			}
			o.args[p] = a
		}
	}
	return a
}

// argumentsOf decodes whole arguments, given as WTF-8.
func argumentsOf(s string) string { return new(arguments).decode(s) }

// arguments adds the arguments of an earlier call.
func (r *request) arguments(role Role, v gjson.Result) {
	if v.Type == gjson.String {
		r.add(role, argumentsOf(stringOf(v)))
	} else {
		r.source(role, v)
	}
}

// decode returns the text that s completes.
func (a *arguments) decode(s string) string {
	if !a.begun {
		text := strings.TrimLeft(s, space)
		if text == "" {
			return s
		}
		a.begun, a.plain = true, strings.IndexByte(`{["`, text[0]) < 0
	}
	if a.plain || a.held == "" && strings.IndexByte(s, '\\') < 0 {
		return s
	}
	s = a.held + s
	b := make([]byte, 0, len(s))
	for {
		n := strings.IndexByte(s, '\\')
		if n < 0 {
			a.held = ""
			return string(append(b, s...))
		}
		b = append(b, s[:n]...)
		s = s[n:]
		if unfinishedEscape(s) {
			a.held = strings.Clone(s)
			return string(b)
		}
		b, s = appendEscape(b, s)
	}
}

// unfinishedEscape says whether s is a backslash and the beginning of what may
// become an escape.
func unfinishedEscape(s string) bool {
	if len(s) == 1 {
		return true
	}
	if s[1] != 'u' || len(s) >= 6 {
		return false
	}
	for i := 2; i < len(s); i++ {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// appendEscape appends what the escape that s begins with stands for, or its
// backslash if it is none, and returns the rest of s. Each half of a surrogate
// pair is appended by itself, as three bytes.
func appendEscape(b []byte, s string) ([]byte, string) {
	c := s[1]
	switch c {
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case '"', '\\', '/':
	case 'u':
		if len(s) < 6 || !isHex(s[2]) || !isHex(s[3]) || !isHex(s[4]) || !isHex(s[5]) {
			return append(b, s[0]), s[1:]
		}
		u, _ := codeUnit(s[2:])
		if utf16.IsSurrogate(u) {
			b = append(b, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F)
		} else {
			b = utf8.AppendRune(b, u)
		}
		return b, s[6:]
	default:
		return append(b, s[0]), s[1:]
	}
	return append(b, c), s[2:]
}
