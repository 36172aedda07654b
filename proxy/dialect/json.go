package dialect

// Reading JSON in place.
//
// Bodies are checked once with gjson.ValidBytes and then walked with gjson
// over the caller's own bytes: no tree is built, and the only copies made are
// the strings that are given away. Three things need care.
//
//   - gjson's validator recurses, and bodies come from tenants: 64 MiB of "["
//     would end the process. Nesting is bounded before it runs, in about 15 ns
//     for a stream event, because counting brackets is vectorised and nearly
//     every event has fewer brackets than levels allowed.
//   - Walking a container costs one pass over what it holds, at each level. The
//     readers go a fixed number of levels down; the one that recurses (tool
//     schemas) has its own, lower limit, so that the work stays linear.
//   - A body that was cut is read up to the cut. The text before it crossed the
//     wire, so it counts; mend finds the longest prefix that closing quotes and
//     brackets make whole.
//
// Not done: resuming a parse between two pieces of a body. A whole JSON body
// is decoded at its end, since no client reads it earlier either.

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

const (
	// MaxBody is how much of one JSON body is read, in bytes. What lies beyond
	// it is skipped and reported as [ReasonTooLong].
	MaxBody = 64 << 20
	// MaxEvent is the largest event of a stream that is read, in bytes. A
	// larger one is skipped and reported as [ReasonTooLong].
	MaxEvent = 16 << 20

	maxDepth       = 512     // nesting of any JSON
	maxSchemaDepth = 32      // nesting of the JSON schemas of tools
	maxPieces      = 1 << 18 // parts of one prompt, deltas of one JSON value
)

// readJSON returns the value that b holds, or why it can't be read. The value
// lives in b: its strings must be copied before b changes.
func readJSON(b []byte) (gjson.Result, Reason) {
	if !shallow(b) {
		return gjson.Result{}, ReasonShape
	}
	if !gjson.ValidBytes(b) {
		return gjson.Result{}, ReasonNotJSON
	}
	return gjson.Parse(view(b)), ""
}

// readCutJSON is readJSON for bytes that may lack their end. A value that could
// be mended comes with [ReasonTruncated]; it may live in b or in a copy.
func readCutJSON(b []byte) (gjson.Result, Reason) {
	v, reason := readJSON(b)
	if reason != ReasonNotJSON {
		return v, reason
	}
	whole, ok := mend(b)
	if !ok || !gjson.ValidBytes(whole) {
		return gjson.Result{}, ReasonNotJSON
	}
	return gjson.Parse(view(whole)), ReasonTruncated
}

// view returns b as a string without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// shallow says whether b nests no deeper than maxDepth.
func shallow(b []byte) bool {
	if bytes.Count(b, []byte{'{'})+bytes.Count(b, []byte{'['}) <= maxDepth {
		return true
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = endOfString(b, i)
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return true
}

// endOfString returns the index of the quote that ends the string begun at
// b[i], or len(b) if it has no end.
func endOfString(b []byte, i int) int {
	begin := i + 1
	for i = begin; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			break
		}
		i += n
		escapes := 0
		for j := i - 1; j >= begin && b[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// mend closes JSON that was cut off: it goes back to the last place where a
// value was whole, or stays inside a string value, and appends what is open.
// It says false for bytes that are not a cut value. The result is a copy and
// may still be invalid, since mend looks at nesting only.
func mend(b []byte) ([]byte, bool) {
	var (
		closers []byte // of the open containers, outermost first
		isKey   bool   // the next string names a field
		good    = -1   // b[:good] with the closers is whole
		quote   bool   // b[:good] ends inside a string value
	)
scan:
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '{', '[':
			if len(closers) == maxDepth {
				return nil, false
			}
			closers, isKey, good = append(closers, c+2), c == '{', i+1
		case '}', ']':
			if len(closers) == 0 || closers[len(closers)-1] != c {
				return nil, false
			}
			if closers, isKey, good = closers[:len(closers)-1], false, i+1; len(closers) == 0 {
				return nil, false // whole, so what is wrong with it isn't a cut
			}
		case ',':
			if len(closers) == 0 {
				return nil, false
			}
			isKey, good = closers[len(closers)-1] == '}', i
		case ':':
			isKey = false
		case '"':
			end := endOfString(b, i)
			switch {
			case end < len(b) && !isKey:
				good = end + 1
			case end == len(b) && !isKey:
				good, quote = wholeEscapes(b, i+1), true
				break scan
			}
			i = end
		}
	}
	if good < 0 || len(closers) == 0 {
		return nil, false
	}
	out := make([]byte, 0, good+1+len(closers))
	out = append(out, b[:good]...)
	if quote {
		out = append(out, '"')
	}
	slices.Reverse(closers)
	return append(out, closers...), true
}

// wholeEscapes returns where the unfinished string whose text begins at b[i]
// must be cut so that no escape in it is left half.
func wholeEscapes(b []byte, i int) int {
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '\\')
		if n < 0 {
			break
		}
		i += n
		size := 2
		if i+1 < len(b) && b[i+1] == 'u' {
			size = 6
		}
		if i+size > len(b) {
			return i
		}
		i += size
	}
	return len(b)
}

// isNull says whether v is absent or null.
func isNull(v gjson.Result) bool { return v.Type == gjson.Null }

// kind names the JSON type of v for error details.
func kind(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "an array"
	case v.IsBool():
		return "a boolean"
	case v.Type == gjson.Number:
		return "a number"
	case v.Type == gjson.String:
		return "a string"
	}
	return "null"
}

// word returns a short string of v as a fresh string, and "" for anything that
// is not a short string.
func word(v gjson.Result, limit int) string {
	if v.Type != gjson.String || len(v.Str) > limit {
		return ""
	}
	return wellFormed(strings.Clone(v.Str))
}

// count returns a number that counts tokens or places: never negative, and
// never so large that sums of it overflow.
func count(v gjson.Result) int {
	if v.Type != gjson.Number {
		return 0
	}
	return int(min(max(v.Int(), 0), math.MaxInt32))
}
