package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Open opens a log file, or standard input for "-", and undoes gzip and zstd,
// which it knows by their first bytes.
func Open(name string, stdin io.Reader) (io.ReadCloser, error) {
	var f io.ReadCloser
	if name == "-" {
		f = io.NopCloser(stdin)
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		f = file
	}
	r, err := decompress(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return r, nil
}

// layered is a reader over a file, and what closes both.
type layered struct {
	io.Reader
	close func() error
}

func (l layered) Close() error { return l.close() }

func decompress(f io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(f, 1<<20)
	head, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		return layered{z, f.Close}, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b)
		if err != nil {
			return nil, err
		}
		return layered{z, func() error { z.Close(); return f.Close() }}, nil
	}
	return layered{b, f.Close}, nil
}

// maxLine bounds one line of a log, in bytes.
const maxLine = 512 << 20

// lines reads a log line by line and knows where each began.
type lines struct {
	r      *bufio.Reader
	buf    []byte
	offset int64 // of the line that next returned
	after  int64 // of the byte after it
	number int   // of that line, from 1
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 1<<20)} }

var errLineTooLong = fmt.Errorf("a line of more than %d bytes", maxLine)

// next returns the next line that isn't blank, without its end. The slice
// holds until the call after. A line that is too long is skipped whole, with
// errLineTooLong.
func (l *lines) next() ([]byte, error) {
	for {
		l.buf = l.buf[:0]
		l.offset = l.after
		l.number++
		long := false
		for {
			piece, err := l.r.ReadSlice('\n')
			l.after += int64(len(piece))
			if long = long || len(l.buf)+len(piece) > maxLine; !long {
				l.buf = append(l.buf, piece...)
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if errors.Is(err, io.EOF) && (len(l.buf) > 0 || long) {
				break
			}
			return nil, err
		}
		if long {
			return nil, errLineTooLong
		}
		if line := bytes.TrimSpace(l.buf); len(line) > 0 {
			return line, nil
		}
	}
}

// where names the place of a record for an error.
func where(file string, l *lines) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: line %d (byte %d)", file, l.number, l.offset)
	return b.String()
}
