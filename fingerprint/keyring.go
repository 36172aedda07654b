package fingerprint

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Rotation of keys
//
// A print is a sum of word hashes that AES seals (print.go). The two steps have
// keys of their own, and only the second is rotated: it alone stands between
// what is stored and who could test guesses on it. The first, which also picks
// the passages, comes from a base key that stays, so that a text has the same
// passages before and after. As AES can be undone by whoever holds its key, a
// print under the new key leads to the same passage's print under the old one,
// and an index made under the old key goes on counting: see [Keyring.Before].
//
// Once the previous key is deleted, whatever was stored under it, such as old
// snapshots, can't be tested by anybody any more. The base key alone opens
// nothing: without the sealing key a print is as good as random.
//
// A key for each epoch of the index was not taken: a text would have as many
// prints as there are epochs, and each print of a response would cost as many
// probes. Prints leave the index's memory with their epoch anyway.

// Keyring is the operator's secrets, of which the fingerprint depends. Like a
// [Key] it masks itself where it is printed.
type Keyring struct {
	Current  Key // seals prints
	Previous Key // sealed them before the last rotation; zero means that there was none
	Base     Key // hashes words and makes pseudonyms, and stays; zero means Current
}

// The names of the keys in the text of a keyring.
const (
	nameCurrent  = "current"
	namePrevious = "previous"
	nameBase     = "base"
)

// ParseKeyring reads the text of a keyring: 64 hexadecimal digits, which are
// the current key; or fields such as current=DIGITS, with previous and base
// beside it, between white space in any order. Its errors hold no part of a
// key.
func ParseKeyring(text string) (Keyring, error) {
	fields := strings.Fields(text)
	if len(fields) < 2 && !strings.Contains(text, "=") {
		k, err := ParseKey(text)
		return Keyring{Current: k}, err
	}
	var r Keyring
	for i, field := range fields {
		name, digits, _ := strings.Cut(field, "=")
		var key *Key
		switch name {
		case nameCurrent:
			key = &r.Current
		case namePrevious:
			key = &r.Previous
		case nameBase:
			key = &r.Base
		default:
			return Keyring{}, fmt.Errorf("fingerprint keyring: field %d: want current=, previous= or base= and a key", i+1)
		}
		if *key != (Key{}) {
			return Keyring{}, fmt.Errorf("fingerprint keyring: field %d: a second %s key", i+1, name)
		}
		var err error
		if *key, err = ParseKey(digits); err != nil {
			return Keyring{}, fmt.Errorf("fingerprint keyring: field %d, %s: %w", i+1, name, err)
		}
		if *key == (Key{}) {
			return Keyring{}, fmt.Errorf("fingerprint keyring: field %d: the %s key is all zeros", i+1, name)
		}
	}
	switch {
	case r.Current == Key{}:
		return Keyring{}, errors.New("fingerprint keyring: no current key")
	case r.Previous != Key{} && r.Base == Key{}:
		return Keyring{}, errors.New("fingerprint keyring: a previous key without the base key, which stays when keys rotate")
	case r.Previous == r.Current:
		return Keyring{}, errors.New("fingerprint keyring: the previous key is the current one")
	}
	return r, nil
}

// Reveal returns the text that [ParseKeyring] reads, with the keys in it.
func (r Keyring) Reveal() string {
	if r.Previous == (Key{}) && r.Base == (Key{}) {
		return hex.EncodeToString(r.Current[:]) + "\n"
	}
	var b strings.Builder
	for _, f := range []struct {
		name string
		key  Key
	}{{nameCurrent, r.Current}, {namePrevious, r.Previous}, {nameBase, r.Base}} {
		if f.key != (Key{}) {
			b.WriteString(f.name + "=" + hex.EncodeToString(f.key[:]) + "\n")
		}
	}
	return b.String()
}

// Rotate returns the keyring after a rotation to the next key.
func (r Keyring) Rotate(next Key) Keyring {
	return Keyring{Current: next, Previous: r.Current, Base: r.base()}
}

func (r Keyring) base() Key {
	if r.Base == (Key{}) {
		return r.Current
	}
	return r.Base
}

// last returns the keyring before the last rotation.
func (r Keyring) last() Keyring { return Keyring{Current: r.Previous, Base: r.base()} }

// ID names the keys that prints are made under, so that what is stored can be
// told to belong to them. It tells nothing of the keys.
func (r Keyring) ID() [16]byte {
	var ids [64]byte
	subkey(r.base(), labelID, ids[:32])
	subkey(r.Current, labelID, ids[32:])
	sum := sha256.Sum256(ids[:])
	return [16]byte(sum[:])
}

// PreviousID is the ID of the keyring before the last rotation; it reports
// false if there was none.
func (r Keyring) PreviousID() ([16]byte, bool) {
	return r.last().ID(), r.Previous != Key{}
}

// Before returns the function from a passage's print to the print that the
// passage had before the last rotation, or nil if there was none. It is safe
// for concurrent use and costs two rounds of AES.
func (r Keyring) Before() func(Print) Print {
	if r.Previous == (Key{}) {
		return nil
	}
	now, before := sealKey(r.Current), sealKey(r.Previous)
	return func(p Print) Print {
		var block [16]byte
		binary.BigEndian.PutUint64(block[:], p.Hi)
		binary.BigEndian.PutUint64(block[8:], p.Lo)
		now.Decrypt(block[:], block[:])
		before.Encrypt(block[:], block[:])
		p.Hi, p.Lo = binary.BigEndian.Uint64(block[:]), binary.BigEndian.Uint64(block[8:])
		return p
	}
}

// sealKey derives the key that seals sums.
func sealKey(k Key) cipher.Block {
	var b [passageKeyBytes]byte
	subkey(k, labelPassage, b[:])
	c, _ := aes.NewCipher(b[nhBytes:]) // 16 bytes are always a key
	return c
}
