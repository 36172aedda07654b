package main

import (
	"io"
	"os"
)

type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// create opens a file for writing, with mode 0600, or takes stdout for "-".
// The flag is os.O_APPEND to keep what the file holds, or os.O_TRUNC.
func create(name string, flag int, stdout io.Writer) (io.WriteCloser, error) {
	if name == "-" {
		return keepOpen{stdout}, nil
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o600)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
