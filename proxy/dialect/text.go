package dialect

// Text as the client will see it.
//
// The text of a delta is what JSON decoding yields, with one addition: a
// character may be cut in two by the server. Some tokenizers give half a
// character a token of its own, and their servers send the halves of a UTF-16
// pair (`\ud83d`, then `\ude00`), or the bytes of a UTF-8 sequence, in two
// deltas. Decoded one by one both become U+FFFD and the text no longer matches
// anything. So strings are first decoded to WTF-8 (UTF-8 in which a lone
// surrogate is three bytes, ED A0..BF xx), an unfinished end is held back until
// the next delta of the same choice, channel and block, and only what never
// joins becomes U+FFFD: one for a surrogate, one for each byte. Every text that
// leaves this package is valid UTF-8.
//
// gjson decodes escapes itself but turns lone surrogates into U+FFFD at once;
// strings that hold an escape of the surrogate range are decoded here again.

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxHeld is how many places may hold an unfinished character at a time.
const maxHeld = 1024

// stringOf returns the text of a JSON string as WTF-8, in memory of its own.
func stringOf(v gjson.Result) string {
	switch raw := v.Raw; {
	case len(raw) == len(v.Str)+2:
		return strings.Clone(v.Str) // no escapes, so gjson gave a piece of the body
	case strings.Contains(raw, `\ud`) || strings.Contains(raw, `\uD`):
		return unescape(raw[1 : len(raw)-1])
	}
	return v.Str
}

// sourceOf returns the JSON text of v with the escapes in its strings decoded,
// so that words stand in it as the client will read them.
func sourceOf(v gjson.Result) string {
	if strings.IndexByte(v.Raw, '\\') < 0 {
		return strings.Clone(v.Raw)
	}
	return unescape(v.Raw)
}

// unescape decodes the escapes in the inside of a valid JSON string to WTF-8.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for {
		n := strings.IndexByte(s, '\\')
		if n < 0 || n+1 == len(s) {
			return string(append(b, s...))
		}
		b = append(b, s[:n]...)
		c := s[n+1]
		s = s[n+2:]
		switch c {
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			u, ok := codeUnit(s)
			if !ok {
				continue
			}
			s = s[4:]
			if len(s) > 1 && s[0] == '\\' && s[1] == 'u' {
				if low, ok := codeUnit(s[2:]); ok {
					if r := utf16.DecodeRune(u, low); r != utf8.RuneError {
						b, s = utf8.AppendRune(b, r), s[6:]
						continue
					}
				}
			}
			if utf16.IsSurrogate(u) {
				b = append(b, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F)
			} else {
				b = utf8.AppendRune(b, u)
			}
		default: // quote, backslash, slash
			b = append(b, c)
		}
	}
}

// codeUnit reads the four hexadecimal digits that s begins with.
func codeUnit(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	u, err := strconv.ParseUint(s[:4], 16, 16)
	return rune(u), err == nil
}

// wellFormed returns WTF-8 as UTF-8: pairs joined, the rest that is not UTF-8
// replaced by U+FFFD.
func wellFormed(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	text, tail := splitTail(s)
	return text + replacement(tail)
}

// splitTail returns s as UTF-8 and, apart, an end of it that the following text
// may complete: a high surrogate or a part of a UTF-8 sequence.
func splitTail(s string) (text, tail string) {
	b := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError || n != 1 {
			b, i = append(b, s[i:i+n]...), i+n
			continue
		}
		u, ok := surrogate(s[i:])
		switch {
		case ok && u < 0xDC00 && i+3 == len(s), !utf8.FullRuneInString(s[i:]):
			return string(b), s[i:]
		case ok:
			i += 3
			if low, ok := surrogate(s[i:]); ok {
				if r := utf16.DecodeRune(u, low); r != utf8.RuneError {
					b, i = utf8.AppendRune(b, r), i+3
					continue
				}
			}
		default:
			i++
		}
		b = utf8.AppendRune(b, utf8.RuneError)
	}
	return string(b), ""
}

// surrogate reads the WTF-8 surrogate that s begins with.
func surrogate(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2] < 0x80 || s[2] > 0xBF {
		return 0, false
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), true
}

// replacement is what a held tail becomes when nothing completes it.
func replacement(tail string) string {
	if _, ok := surrogate(tail); ok {
		return "\uFFFD"
	}
	return strings.Repeat("\uFFFD", len(tail))
}

// place is where text is joined: text of two places never is.
type place struct {
	choice  int
	channel Channel
	block   int
}

// joiner makes UTF-8 of the WTF-8 pieces of many places. The zero value is
// ready for use.
type joiner struct{ held map[place]string }

// join returns the text that s completes at p and holds back an unfinished
// character at its end.
func (j *joiner) join(p place, s string) string {
	if len(j.held) == 0 && utf8.ValidString(s) {
		return s
	}
	if tail, ok := j.held[p]; ok {
		delete(j.held, p)
		s = tail + s
	}
	text, tail := splitTail(s)
	switch {
	case tail == "":
	case len(j.held) == maxHeld:
		text += replacement(tail)
	default:
		if j.held == nil {
			j.held = make(map[place]string)
		}
		j.held[p] = tail
	}
	return text
}

// flush appends what is still held, which nothing can complete any more.
func (j *joiner) flush(dst []Delta) []Delta {
	from := len(dst)
	for p, tail := range j.held {
		dst = append(dst, Delta{p.choice, p.channel, p.block, replacement(tail)})
	}
	slices.SortFunc(dst[from:], func(a, b Delta) int {
		return cmp.Or(cmp.Compare(a.Choice, b.Choice), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Block, b.Block))
	})
	j.held = nil
	return dst
}
