package dialect

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
)

const (
	maxFormFields = 1024
	maxFormField  = 1 << 20 // bytes of a field that is text
)

// formField is one field of a form. Of a file only the digest is kept.
type formField struct {
	name string
	file bool
	text string
	sum  [32]byte
}

// readForm reads a body of the type multipart/form-data, as far as it goes.
// The reason says what is wrong with it, "" for nothing.
func readForm(contentType string, body []byte) (fields []formField, reason Reason, detail string) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return nil, ReasonMIME, "a form without a boundary"
	}
	m := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for len(fields) < maxFormFields {
		part, err := m.NextRawPart()
		switch {
		case err == io.EOF: //nolint:errorlint // the end is this very value; for a form that is cut it is wrapped
			return fields, "", ""
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fields, ReasonTruncated, "the form ended before its end"
		case err != nil:
			return fields, ReasonShape, "not a form"
		}
		f := formField{name: part.FormName(), file: part.FileName() != ""}
		if f.file {
			h := sha256.New()
			_, err = io.Copy(h, part)
			f.sum = [32]byte(h.Sum(nil))
		} else {
			var text []byte
			text, err = io.ReadAll(io.LimitReader(part, maxFormField))
			f.text = wellFormed(string(text))
		}
		fields = append(fields, f)
		if err != nil {
			return fields, ReasonTruncated, "the form ended inside a field"
		}
	}
	return fields, ReasonTooLong, "too many fields"
}

// formDigest returns the digest of a whole form.
func formDigest(api, model string, fields []formField) [32]byte {
	all := slices.Clone(fields)
	slices.SortStableFunc(all, func(a, b formField) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	list := []string{"form", api, model}
	for _, f := range all {
		switch {
		case notDeciding[f.name]:
		case f.file:
			list = append(list, f.name, "file", string(f.sum[:]))
		default:
			list = append(list, f.name, "text", f.text)
		}
	}
	return digest(list...)
}
