package sim

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// writeJSON answers with a JSON body.
func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	if err := encodeJSON(&b, v); err != nil {
		http.Error(w, "encoding the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may have left; there is nobody to tell.
	_, _ = w.Write(b.Bytes())
}

// encodeJSON appends v and a line end, without escapes for HTML.
func encodeJSON(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// events writes server-sent events. Frames collect until flush, so that tokens
// which come together leave together.
type events struct {
	w     http.ResponseWriter
	buf   bytes.Buffer
	enc   *json.Encoder
	begun bool
	err   error
}

func newEvents(w http.ResponseWriter) *events {
	s := &events{w: w}
	s.enc = json.NewEncoder(&s.buf)
	s.enc.SetEscapeHTML(false)
	return s
}

// frame adds one event with v as its data.
func (s *events) frame(v any) {
	s.buf.WriteString("data: ")
	if err := s.enc.Encode(v); err != nil && s.err == nil {
		s.err = err
	}
	s.buf.WriteByte('\n')
}

// done adds the event that ends the stream.
func (s *events) done() { s.buf.WriteString("data: [DONE]\n\n") }

// flush sends what has been added. Nothing, not even the header, is sent before
// there is an event, so that a refusal can still have a status of its own.
func (s *events) flush() error {
	if s.err != nil || s.buf.Len() == 0 {
		return s.err
	}
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
	}
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		s.err = errGone
		return s.err
	}
	s.buf.Reset()
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		s.err = errGone
	}
	return s.err
}
