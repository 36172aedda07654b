package fingerprint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Key is the operator's secret: 32 random bytes from which everything keyed is
// derived. Printing, formatting or marshalling a Key as text or JSON yields a
// mask. Package fmt can't reach the methods of unexported struct fields, so
// keep a Key out of structs that are printed whole.
type Key [32]byte

const masked = "fingerprint.Key(masked)"

// NewKey draws a key from the system's random source.
func NewKey() (Key, error) {
	var k Key
	if _, err := rand.Read(k[:]); err != nil {
		return Key{}, fmt.Errorf("fingerprint key: %w", err)
	}
	return k, nil
}

// ParseKey reads a key written as 64 hexadecimal digits of either case, with
// white space allowed around them. Its errors never hold any part of the text.
func ParseKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	var k Key
	switch n := len(text); {
	case n == 0:
		return Key{}, errors.New("fingerprint key: empty, want 64 hexadecimal digits")
	case n != 2*len(k):
		return Key{}, fmt.Errorf("fingerprint key: %d bytes long, want 64 hexadecimal digits", n)
	}
	for i := range len(text) {
		d, ok := hexDigit(text[i])
		if !ok {
			return Key{}, fmt.Errorf("fingerprint key: byte %d is not a hexadecimal digit", i+1)
		}
		k[i/2] = k[i/2]<<4 | d
	}
	return k, nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// String returns a mask.
func (k Key) String() string { return masked }

// Format writes the mask, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// MarshalText returns the mask, so that JSON, YAML and structured logs hold no
// key. Write a key to its file with [encoding/hex].
func (k Key) MarshalText() ([]byte, error) { return []byte(masked), nil }
