package pbrt

import "math/bits"

// AppendVarint appends a varint.
func AppendVarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return appendVarint(b, v)
}

func appendVarint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<14:
		return append(b, byte(v)|0x80, byte(v>>7))
	case v < 1<<21:
		return append(b, byte(v)|0x80, byte(v>>7)|0x80, byte(v>>14))
	case v < 1<<28:
		return append(b, byte(v)|0x80, byte(v>>7)|0x80, byte(v>>14)|0x80, byte(v>>21))
	}
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendFixed32 appends four bytes.
func AppendFixed32(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

// AppendFixed64 appends eight bytes.
func AppendFixed64(b []byte, v uint64) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24),
		byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
}

// AppendBool appends a bool.
func AppendBool(b []byte, v bool) []byte {
	var c byte
	if v {
		c = 1
	}
	return append(b, c)
}

// AppendText appends the length of v and its bytes.
func AppendText[T string | []byte](b []byte, v T) []byte {
	b = AppendVarint(b, uint64(len(v)))
	return append(b, v...)
}

// Close sets the length of a message that begins at b[start], behind one byte for the length. If
// the length needs more, the message is moved.
func Close(b []byte, start int) []byte {
	if n := len(b) - start; n < 0x80 {
		b[start-1] = byte(n)
		return b
	}
	return move(b, start)
}

func move(b []byte, start int) []byte {
	n := len(b) - start
	extra := (bits.Len(uint(n))+6)/7 - 1
	b = append(b, "123456789"[:extra]...)
	copy(b[start+extra:], b[start:start+n])
	for i := start - 1; ; i++ {
		if n < 0x80 {
			b[i] = byte(n)
			return b
		}
		b[i] = byte(n) | 0x80
		n >>= 7
	}
}

// ZigZag encodes a sint32 or a sint64.
func ZigZag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

// UnZigZag32 decodes a sint32.
func UnZigZag32(v uint64) int32 { return int32(uint32(v)>>1) ^ -int32(v&1) }

// UnZigZag64 decodes a sint64.
func UnZigZag64(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
