package sim

// jsonStream writes a stream that is JSON rather than server-sent events, such
// as one object a line, or events that an API frames in its own way. What is
// added to buf leaves at flush, under the content type of the stream.
type jsonStream struct {
	*events
	contentType string
}

func (s *jsonStream) flush() error {
	if !s.begun && s.err == nil && s.buf.Len() > 0 {
		s.begun = true
		s.w.Header().Set("Content-Type", s.contentType)
	}
	return s.events.flush()
}

// line adds v and a line end.
func (s *jsonStream) line(v any) {
	if err := s.enc.Encode(v); err != nil && s.err == nil {
		s.err = err
	}
}
