package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/auditproxy/auditproxy/fingerprint"
)

// The values of --key-file that are no names.
const (
	keyDefault = ""     // the user's state folder
	keyNone    = "none" // a new key, for this process alone
)

// defaultKeyFile is where the key lies if nobody says otherwise.
func defaultKeyFile() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "auditproxy", "key"), nil
}

// loadKey reads the fingerprint key from a file of 64 hex digits. A file that
// doesn't exist is made, with a new key and mode 0600. Where the default file
// can't be had, the key is new, and the log says so.
func loadKey(name string, logger *slog.Logger) (fingerprint.Key, error) {
	switch name {
	case keyNone:
		return fingerprint.NewKey()
	case keyDefault:
		name, err := defaultKeyFile()
		if err == nil {
			if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
				return readKey(name)
			}
		}
		logger.Warn("no place for a key file, so the key lives as long as this process: a replay will select other passages, and tenants told apart by API key get new pseudonyms at each start; see --key-file", "err", err)
		return fingerprint.NewKey()
	}
	return readKey(name)
}

func readKey(name string) (fingerprint.Key, error) {
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

// makeKey writes a new key. Of two processes that start at once, one writes
// and both read what it wrote: the file appears whole, by a link.
func makeKey(name string) (fingerprint.Key, error) {
	key, err := fingerprint.NewKey()
	if err != nil {
		return key, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".key-*")
	if err != nil {
		return key, fmt.Errorf("key file: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // what is left behind is a spare name of a secret that the folder holds anyway
	_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return key, fmt.Errorf("key file %s: %w", name, err)
	}
	err = os.Link(f.Name(), name)
	if errors.Is(err, fs.ErrExist) {
		return readKey(name)
	}
	return key, err
}
