package audit

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// encoded says whether a Content-Encoding changes the bytes.
func encoded(coding string) bool {
	coding = strings.TrimSpace(coding)
	return coding != "" && !strings.EqualFold(coding, "identity")
}

// inflate undoes the content codings gzip, deflate and zstd, up to limit
// bytes. Beside an error it returns what could be read.
func inflate(coding string, body []byte, limit int) ([]byte, error) {
	if !encoded(coding) {
		return body, nil
	}
	var r io.Reader
	var err error
	switch src := bytes.NewReader(body); strings.ToLower(strings.TrimSpace(coding)) {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(src)
	case "deflate": // zlib by the standard, raw deflate from some servers
		if r, err = zlib.NewReader(src); err != nil {
			r, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)+1<<20)); err == nil {
			defer d.Close()
			r = d
		}
	default:
		return nil, fmt.Errorf("content coding: not one of gzip, deflate and zstd")
	}
	if err != nil {
		return nil, fmt.Errorf("content coding: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(out) > limit {
		return out[:limit], fmt.Errorf("content coding: the body inflates to over %d bytes", limit)
	}
	if err != nil {
		return out, fmt.Errorf("content coding: %w", err)
	}
	return out, nil
}
