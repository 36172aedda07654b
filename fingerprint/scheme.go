package fingerprint

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"io"
)

// The labels separate the subkeys from each other. A change of what a label's
// subkey is used for changes its number: prints are kept on disk.
const (
	labelWord      = "auditproxy/fingerprint/word/1"
	labelPassage   = "auditproxy/fingerprint/passage/2"
	labelPseudonym = "auditproxy/fingerprint/pseudonym/1"
	labelID        = "auditproxy/fingerprint/id/1"
)

// Scheme derives prints and pseudonyms under one key. It is safe for
// concurrent use. It keeps subkeys and not the key itself.
type Scheme struct {
	word      wordKey
	passage   passageKey
	pseudonym [sha256.Size]byte
}

// NewScheme derives the subkeys of k.
func NewScheme(k Key) *Scheme { return Keyring{Current: k}.Scheme() }

// Scheme derives the subkeys of the current key and of the base.
func (r Keyring) Scheme() *Scheme {
	var s Scheme
	base := r.base()
	var word [16]byte
	subkey(base, labelWord, word[:])
	s.word = newWordKey(word)
	var nh [nhBytes]byte
	subkey(base, labelPassage, nh[:])
	s.passage = newPassageKey(nh, sealKey(r.Current))
	subkey(base, labelPseudonym, s.pseudonym[:])
	return &s
}

// subkey fills out, of at most 255 blocks, by HKDF-SHA256 of RFC 5869 without
// salt. It is spelt out because crypto/hkdf returns an error that can't happen
// here and that NewScheme could only swallow.
func subkey(k Key, label string, out []byte) {
	extract := hmac.New(sha256.New, make([]byte, sha256.Size))
	extract.Write(k[:])
	expand := hmac.New(sha256.New, extract.Sum(nil))
	var block []byte
	for n := byte(1); len(out) > 0; n++ {
		expand.Reset()
		expand.Write(block)
		expand.Write([]byte(label))
		expand.Write([]byte{n})
		block = expand.Sum(block[:0])
		out = out[copy(out, block):]
	}
}

// Shingler returns a new shingler at the start of a text.
func (s *Scheme) Shingler() *Shingler {
	return &Shingler{scheme: s}
}

// Pseudonym returns a name for value that can stand in logs and metrics: kind,
// a hyphen and 16 lower-case base32 characters (80 bits of a keyed hash). The
// same kind and value give the same name under the same key; equal values of
// different kinds can't be told to be equal.
func (s *Scheme) Pseudonym(kind, value string) string {
	mac := hmac.New(sha256.New, s.pseudonym[:])
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(kind)))
	mac.Write(n[:])
	mac.Write([]byte(kind))
	mac.Write([]byte(value))
	return kind + "-" + pseudonymEncoding.EncodeToString(mac.Sum(nil)[:10])
}

var pseudonymEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Format writes the type's name, whatever the verb: subkeys are secret too.
func (s *Scheme) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "fingerprint.Scheme") }
