package audit

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// codings lists the content codings that change the bytes, in the order in
// which they were applied.
func codings(header string) []string {
	var all []string
	for c := range strings.SplitSeq(header, ",") {
		if c = strings.ToLower(strings.TrimSpace(c)); c != "" && c != "identity" {
			all = append(all, c)
		}
	}
	return all
}

// encoded says whether a Content-Encoding changes the bytes.
func encoded(header string) bool { return len(codings(header)) > 0 }

// inflate undoes a Content-Encoding of gzip, deflate, br and zstd, up to limit
// bytes. Beside an error it returns what could be read.
func inflate(header string, body []byte, limit int) ([]byte, error) {
	all := codings(header)
	if len(all) > 4 {
		return nil, errors.New("content coding: more than 4 layers")
	}
	var first error
	for _, c := range slices.Backward(all) {
		var err error
		if body, err = undo(c, body, limit); err != nil && first == nil {
			first = fmt.Errorf("content coding: %w", err)
		}
	}
	return body, first
}

func undo(coding string, body []byte, limit int) ([]byte, error) {
	var r io.Reader
	var err error
	switch src := bytes.NewReader(body); coding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(src)
	case "deflate": // zlib by the standard, raw deflate from some servers
		if r, err = zlib.NewReader(src); err != nil {
			r, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	case "br":
		r = brotli.NewReader(src)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)+1<<20)); err == nil {
			defer d.Close()
			r = d
		}
	default:
		return nil, errors.New("not one of gzip, deflate, br and zstd")
	}
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(out) > limit {
		return out[:limit], fmt.Errorf("the body inflates to over %d bytes", limit)
	}
	return out, err
}
