package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/auditproxy/auditproxy/fingerprint"
)

// loadKey reads the fingerprint key from a file of 64 hex digits. A file that
// doesn't exist is made, with a new key and mode 0600. Without a name the key
// is new and lives as long as the process, like the index that it protects.
func loadKey(name string) (fingerprint.Key, error) {
	if name == "" {
		return fingerprint.NewKey()
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(name)
	}
	if err != nil {
		return fingerprint.Key{}, err
	}
	key, err := fingerprint.ParseKey(string(bytes.TrimSpace(text)))
	if err != nil {
		return key, fmt.Errorf("key file %s: %w", name, err)
	}
	return key, nil
}

func makeKey(name string) (fingerprint.Key, error) {
	key, err := fingerprint.NewKey()
	if err != nil {
		return key, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return key, err
	}
	_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	return key, errors.Join(err, f.Sync(), f.Close())
}
