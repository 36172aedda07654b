package dialect

// plain decodes a body that is text itself: a transcript, its subtitles.
type plain struct{ output }

// Append implements Decoder.
func (d *plain) Append(dst []Delta, b []byte) []Delta {
	d.dst, d.from = dst, len(dst)
	if len(b) > 0 {
		d.add(place{0, Content, blockMain}, string(b))
	}
	dst, d.dst = d.dst, nil
	return dst
}

// Finish implements Decoder.
func (d *plain) Finish(dst []Delta) (_ []Delta, err error) {
	return d.close(dst, &err), err
}
