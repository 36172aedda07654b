package fingerprint

// Eight bytes of text at a time, in one register. The first byte is the lowest.

const (
	ones = 0x0101010101010101
	tops = 0x80 * ones // the bit that ASCII doesn't have

	// caseBits, set in a letter or digit of ASCII, leaves digits as they are and
	// makes letters small.
	caseBits = 0x20 * ones
)

// load64 returns the eight bytes at text[i:]. The compiler makes one load of it,
// as it does for encoding/binary, which has no strings.
func load64(text string, i int) uint64 {
	b := text[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// loadUpTo64 returns the bytes at text[i:], up to eight, with zeros behind them.
func loadUpTo64(text string, i int) uint64 {
	switch n := len(text) - i; {
	case n >= 8:
		return load64(text, i)
	case n >= 4:
		return uint64(load32(text, i)) | uint64(load32(text, i+n-4))<<(8*(n-4))
	case n > 0:
		return uint64(text[i]) | uint64(text[i+n/2])<<(8*(n/2)) | uint64(text[i+n-1])<<(8*(n-1))
	}
	return 0
}

// load32 returns the four bytes at text[i:].
func load32(text string, i int) uint32 {
	b := text[i : i+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// lowBytes has the n lowest bytes set; n is 1 to 8.
func lowBytes(n int) uint64 { return ^uint64(0) >> ((64 - 8*n) & 63) }

// wordBytes returns the top bit of each byte that is a letter or digit of
// ASCII. Added to a byte below 128, 128-c carries into the top bit if the byte
// is at least c: one sum for where a range begins, one for where it has ended.
func wordBytes(v uint64) uint64 {
	x := v &^ tops
	y := x | caseBits
	letters := (y + (0x80-'a')*ones) ^ (y + (0x7F-'z')*ones)
	digits := (x + (0x80-'0')*ones) ^ (x + (0x7F-'9')*ones)
	return (letters ^ digits) &^ v & tops
}

// gather moves the top bits of eight bytes into the lowest byte. All other bits
// are zero.
func gather(tops uint64) uint64 { return tops * 0x0002040810204081 >> 56 }

// encode returns the UTF-8 of r as n bytes in a register.
func encode(r rune) (b uint64, n uint) {
	c := uint64(r)
	switch {
	case c < 0x80:
		return c, 1
	case c < 0x800:
		return 0x80C0 | c>>6 | c&0x3F<<8, 2
	case c < 0x10000:
		return 0x8080E0 | c>>12 | c>>6&0x3F<<8 | c&0x3F<<16, 3
	}
	return 0x808080F0 | c>>18 | c>>12&0x3F<<8 | c>>6&0x3F<<16 | c&0x3F<<24, 4
}

// decode returns the character of two or three bytes at the beginning of four,
// and zero bytes if there is none. A surrogate passes for a character; the fold
// table has it separate words, as its bytes would. There is no branch on the
// length, which nobody could predict.
func decode(v uint32) (r uint32, n int) {
	off2, off3 := v&0xC0E0^0x80C0, v&0xC0C0F0^0x8080E0
	r, n = v&0x1F<<6|v>>8&0x3F, 2
	if off3 == 0 {
		r, n = v&0xF<<12|v>>2&0xFC0|v>>16&0x3F, 3
	}
	// One byte holds 7 bits and two hold 11: what fits there is overlong here.
	if min(off2, off3) != 0 || r>>(4*n-1) == 0 {
		n = 0
	}
	return r, n
}
