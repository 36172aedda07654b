package dialect

// Requests that ask the same.
//
// Two tenants that send the very same request may well get the very same
// answer, out of a cache or at temperature zero, and that is no leak. So every
// prompt has a digest of all that decides its answer, and equal digests exempt
// two answers from being compared. A digest must therefore never be equal by
// accident or by leaving something out: everything in the body counts, known
// or not, but for a short list of fields that only say how the answer is
// delivered, billed or filed. A body that was not read whole has none.
//
// The form: SHA-256 over the API's name, the model, and the body's value, in
// which
//
//   - an object is the digest of its members, sorted by name; members that are
//     null and marks for a prompt cache are left out, and so are at the top the
//     fields of notDeciding;
//   - a string is its text, with escapes decoded, or the digest of its text if
//     it is long: a picture or a file counts by its bytes, as they were sent;
//   - a number is its value, so that 1, 1.0 and 1e0 are one;
//   - a list that holds one part of text and nothing else is that text, since
//     all APIs that have parts take both for the same.
//
// Everything is hashed in one pass, at most once: what an object held is
// replaced by its digest before the enclosing one goes on. That bounds the
// work by the body's size, whatever its nesting, and the memory by the longest
// list of short values.
//
// Not done: one digest for the same question put to two APIs. Such answers
// come from no common cache.

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

const (
	// maxCanonical bounds the objects of one body, and the members of those that
	// are open. A body with more has no digest.
	maxCanonical = 1 << 20
	// shortString is the size from which a string's digest stands for it.
	shortString = 64
)

// notDeciding are the top-level fields that have no part in what is answered.
var notDeciding = map[string]bool{
	"stream": true, "stream_options": true, "background": true, // how it is delivered
	"user": true, "metadata": true, "safety_identifier": true, "requestMetadata": true, "labels": true, // for whom
	"request_id": true, "rid": true, "id": true, "session_id": true, "custom_labels": true, "external_reference": true,
	"store": true, "service_tier": true, "priority": true, "keep_alive": true, "routing_key": true, // where it runs
	"prompt_cache_key": true, "prompt_cache_retention": true, "cache_salt": true, "extra_key": true, "cache_prompt": true,
}

// canonical returns the digest of a valid JSON value that nests no deeper than
// maxDepth, or zero.
func canonical(api, model string, value []byte) (sum [32]byte) {
	c := canon{src: value, ignored: notDeciding}
	c.value(0)
	if c.objects > maxCanonical {
		return sum
	}
	return digest("json", api, model, string(c.buf))
}

// digest returns the digest of a list of strings.
func digest(all ...string) [32]byte {
	h := sha256.New()
	var n [binary.MaxVarintLen64]byte
	for _, s := range all {
		_, _ = h.Write(n[:binary.PutUvarint(n[:], uint64(len(s)))])
		_, _ = h.Write([]byte(s))
	}
	return [32]byte(h.Sum(nil))
}

// canon writes the canonical form of one value.
type canon struct {
	src     []byte
	i       int
	buf     []byte
	members []member // of the open objects, innermost last
	objects int
	ignored map[string]bool // names that the outermost object leaves out
}

// member is one member of an object; its form is buf[from:to].
type member struct {
	name     string
	from, to int
}

// skip goes on to the next byte that is no white space.
func (c *canon) skip() {
	for c.i < len(c.src) && (c.src[c.i] == ' ' || c.src[c.i] == '\n' || c.src[c.i] == '\t' || c.src[c.i] == '\r') {
		c.i++
	}
}

// value writes the value that src[i:] begins with.
func (c *canon) value(depth int) {
	c.skip()
	if c.i >= len(c.src) || c.objects > maxCanonical {
		return
	}
	switch c.src[c.i] {
	case '{':
		c.object(depth)
	case '[':
		c.array(depth)
	case '"':
		c.text(c.quoted())
	case 't', 'f', 'n':
		c.buf = append(c.buf, c.src[c.i])
		for c.i < len(c.src) && 'a' <= c.src[c.i] && c.src[c.i] <= 'z' {
			c.i++
		}
	default:
		c.number()
	}
}

// quoted returns the text of the string that src[i:] begins with.
func (c *canon) quoted() []byte {
	end := endOfString(c.src, c.i)
	raw := c.src[min(c.i+1, end):end]
	c.i = min(end+1, len(c.src))
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return []byte(unescape(view(raw)))
}

// text writes a string.
func (c *canon) text(s []byte) {
	if len(s) >= shortString {
		sum := sha256.Sum256(s)
		c.buf = append(append(c.buf, 'S'), sum[:]...)
		return
	}
	c.buf = append(append(c.buf, 's', byte(len(s))), s...)
}

// number writes a number.
func (c *canon) number() {
	raw, whole := c.src[c.i:], true
	for n, b := range raw {
		if b == '.' || b == 'e' || b == 'E' {
			whole = false
		} else if b != '-' && b != '+' && (b < '0' || b > '9') {
			raw = raw[:n]
			break
		}
	}
	c.i += max(len(raw), 1)
	c.buf = append(c.buf, 'd')
	f, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case whole || err != nil:
		c.buf = append(c.buf, raw...)
	case f == math.Trunc(f) && math.Abs(f) < 1<<53:
		c.buf = strconv.AppendInt(c.buf, int64(f), 10)
	default:
		c.buf = strconv.AppendFloat(c.buf, f, 'g', -1, 64)
	}
	c.buf = append(c.buf, ';')
}

// array writes an array.
func (c *canon) array(depth int) {
	from := len(c.buf)
	c.buf = append(c.buf, '[')
	c.i++
	n := 0
	for c.skip(); c.i < len(c.src) && c.src[c.i] != ']'; c.skip() {
		if c.src[c.i] == ',' {
			c.i++
			continue
		}
		c.value(depth + 1)
		n++
		if c.objects > maxCanonical {
			return
		}
	}
	c.i++
	if n == 1 && c.buf[from+1] == 'T' {
		c.buf = slices.Delete(c.buf, from, from+2)
		return
	}
	c.buf = append(c.buf, ']')
}

// object writes an object.
func (c *canon) object(depth int) {
	c.objects++
	from, first := len(c.buf), len(c.members)
	c.i++
	for c.skip(); c.i < len(c.src) && c.src[c.i] != '}'; c.skip() {
		if c.src[c.i] == ',' {
			c.i++
			continue
		}
		name := view(c.quoted())
		c.skip()
		c.i++ // the colon
		c.skip()
		at := len(c.buf)
		mark := name == "cache_control" && c.i < len(c.src) && c.src[c.i] == '{'
		c.value(depth + 1)
		if c.objects > maxCanonical {
			return
		}
		if mark || depth == 0 && c.ignored[name] || string(c.buf[at:]) == "n" {
			c.buf = c.buf[:at]
			continue
		}
		if len(c.members) == maxCanonical {
			c.objects = maxCanonical + 1
			return
		}
		c.members = append(c.members, member{name, at, len(c.buf)})
	}
	c.i++
	all := c.members[first:]
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	if text, ok := c.part(all); ok {
		c.buf = append(append(c.buf[:from], 'T'), bytes.Clone(text)...)
		c.members = c.members[:first]
		return
	}
	h := sha256.New()
	var n [binary.MaxVarintLen64]byte
	for _, m := range all {
		_, _ = h.Write(n[:binary.PutUvarint(n[:], uint64(len(m.name)))])
		_, _ = h.Write([]byte(m.name))
		_, _ = h.Write(n[:binary.PutUvarint(n[:], uint64(m.to-m.from))])
		_, _ = h.Write(c.buf[m.from:m.to])
	}
	c.members = c.members[:first]
	c.buf = h.Sum(append(c.buf[:from], 'o'))
}

// part returns the form of the text of an object that is a part of text and
// nothing else.
func (c *canon) part(all []member) ([]byte, bool) {
	if len(all) != 2 || all[0].name != "text" || all[1].name != "type" {
		return nil, false
	}
	text := c.buf[all[0].from:all[0].to]
	if kind := string(c.buf[all[1].from:all[1].to]); kind != "s\x04text" && kind != "s\x0ainput_text" {
		return nil, false
	}
	return text, len(text) > 0 && (text[0] == 's' || text[0] == 'S')
}
