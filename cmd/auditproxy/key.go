package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/store"
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

// keyVariable is the environment variable that may hold the keyring itself.
const keyVariable = "AUDITPROXY_KEY"

// loadKey reads the fingerprint keys: from the environment if they are there,
// else from a file. A file that doesn't exist is made, with a new key and mode
// 0600. Where the default file can't be had, the key is new, and the log says
// so.
func loadKey(name string, logger *slog.Logger) (fingerprint.Keyring, error) {
	if text, ok := os.LookupEnv(keyVariable); ok {
		if name != keyDefault {
			return fingerprint.Keyring{}, fmt.Errorf("%s and a key file are both set, want one", keyVariable)
		}
		ring, err := fingerprint.ParseKeyring(text)
		if err != nil {
			return ring, fmt.Errorf("%s: %w", keyVariable, err)
		}
		return ring, nil
	}
	switch name {
	case keyNone:
		return newKeyring()
	case keyDefault:
		name, err := defaultKeyFile()
		if err == nil {
			if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
				return readKey(name)
			}
		}
		logger.Warn("no place for a key file, so the key lives as long as this process: a replay will select other passages, and tenants told apart by API key get new pseudonyms at each start; see --key-file", "err", err)
		return newKeyring()
	}
	return readKey(name)
}

func newKeyring() (fingerprint.Keyring, error) {
	key, err := fingerprint.NewKey()
	return fingerprint.Keyring{Current: key}, err
}

// readKey reads a key file, or makes it.
func readKey(name string) (fingerprint.Keyring, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(name)
	}
	if err != nil {
		return fingerprint.Keyring{}, err
	}
	ring, err := fingerprint.ParseKeyring(string(text))
	if err != nil {
		return ring, fmt.Errorf("key file %s: %w", name, err)
	}
	return ring, nil
}

// makeKey writes a new key. Of two processes that start at once, one writes
// and both read what it wrote: the file appears whole, by a link.
func makeKey(name string) (fingerprint.Keyring, error) {
	ring, err := newKeyring()
	if err != nil {
		return ring, err
	}
	temp, err := writeKey(name, ring)
	if err != nil {
		return ring, err
	}
	defer os.Remove(temp) //nolint:errcheck // what is left behind is a spare name of a secret that the folder holds anyway
	err = os.Link(temp, name)
	if errors.Is(err, fs.ErrExist) {
		return readKey(name)
	}
	return ring, err
}

// rotateKey puts a new key in front of the one in the file.
func rotateKey(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	ring, err := fingerprint.ParseKeyring(string(text))
	if err != nil {
		return fmt.Errorf("key file %s: %w", name, err)
	}
	next, err := fingerprint.NewKey()
	if err != nil {
		return err
	}
	temp, err := writeKey(name, ring.Rotate(next))
	if err != nil {
		return err
	}
	if err := os.Rename(temp, name); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return store.Disk{}.SyncDir(filepath.Dir(name))
}

// writeKey writes the keyring, whole and for its owner alone, to a new file
// beside name, and returns that file's name.
func writeKey(name string, ring fingerprint.Keyring) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".key-*") // of mode 0600
	if err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	_, err = f.WriteString(ring.Reveal())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("key file %s: %w", name, err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func newKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make and rotate the fingerprint key",
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "new",
			Short: "Print a new key, for " + keyVariable + " or a file that several sidecars share",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				ring, err := newKeyring()
				if err != nil {
					return err
				}
				_, err = io.WriteString(cmd.OutOrStdout(), ring.Reveal())
				return err
			},
		},
		newKeyRotate(),
	)
	return cmd
}

func newKeyRotate() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Put a new key in front of the one in the key file",
		Long: `Puts a new key in front of the one in the key file. The old one stays as the
previous key. Restart the sidecar, and what it has indexed goes on counting: its
snapshot is read under the previous key, and each print moves to the new key
when its text is seen again.

After one horizon the previous key serves nothing. Delete its line, and nobody
can test guesses against what was stored under it. The base key must stay; it
hashes words and makes the pseudonyms of tenants, and opens nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == keyDefault {
				var err error
				if name, err = defaultKeyFile(); err != nil {
					return err
				}
			}
			if err := rotateKey(name); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: new key; restart the sidecars that use it\n", name)
			return err
		},
	}
	cmd.Flags().StringVar(&name, "key-file", "", "`FILE` with the key (default: auditproxy/key in $XDG_STATE_HOME or ~/.local/state)")
	return cmd
}
