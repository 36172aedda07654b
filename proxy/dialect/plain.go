package dialect

import "unicode/utf8"

// plain decodes a body that is text itself: a transcript, its subtitles.
type plain struct {
	output
	tail []byte // a character that has not come whole
}

// Append implements Decoder.
func (d *plain) Append(dst []Delta, b []byte) []Delta {
	d.dst, d.from = dst, len(dst)
	b = append(d.tail, b...)
	n := len(b)
	for i := max(len(b)-utf8.UTFMax+1, 0); i < len(b); i++ {
		if utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:]) {
			n = i
			break
		}
	}
	d.give(b[:n])
	d.tail = append(d.tail[:0:0], b[n:]...)
	dst, d.dst = d.dst, nil
	return dst
}

// give gives bytes that end with a whole character. What is no character in
// them becomes U+FFFD, byte by byte.
func (d *plain) give(b []byte) {
	if len(b) > 0 {
		d.add(place{0, Content, blockMain}, string([]rune(string(b))))
	}
}

// Finish implements Decoder.
func (d *plain) Finish(dst []Delta) (_ []Delta, err error) {
	d.dst, d.from = dst, len(dst)
	d.give(d.tail)
	dst, d.dst = d.dst, nil
	return d.close(dst, &err), err
}
