package mprt

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/anser-rpc/anser/codec/internal/utf8text"
)

// Reader reads a payload, which may be anything. What is malformed, nested deeper than 64 levels,
// or not expected by generated code, such as nil for a number, makes the payload unusual: all
// further values are zero, and the codec decodes it by reflection, or finds out what is wrong. The
// zero Reader is empty.
type Reader struct {
	b       []byte
	depth   int
	unusual bool
}

// NewReader returns a Reader of data, which is not kept.
func NewReader(data []byte) Reader { return Reader{b: data} }

// Unusual reports whether the payload must be decoded otherwise.
func (r *Reader) Unusual() bool { return r.unusual }

// Len returns the number of bytes that were not read.
func (r *Reader) Len() int { return len(r.b) }

func (r *Reader) fail() {
	r.b, r.unusual = nil, true
}

// code reads a byte.
func (r *Reader) code() byte {
	if len(r.b) == 0 {
		r.fail()
		return null
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// take reads n bytes, which are part of the payload.
func (r *Reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// number reads an unsigned integer of some bytes.
func (r *Reader) number(size int) uint64 {
	b := r.take(size)
	if b == nil {
		return 0
	}
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return binary.BigEndian.Uint64(b)
}

// count returns a number of elements that the payload has room for.
func (r *Reader) count(n uint64, least int) int {
	if n > uint64(len(r.b)/least) {
		r.fail()
		return 0
	}
	return int(n)
}

// enter begins an array or a map of n.
func (r *Reader) enter(n uint64, least int) int {
	if r.depth++; r.depth > maxDepth {
		r.fail()
		return 0
	}
	return r.count(n, least)
}

// End ends an array or a map.
func (r *Reader) End() { r.depth-- }

// Map begins a map and returns the number of its members.
func (r *Reader) Map() int {
	switch c := r.code(); {
	case c&0xf0 == fixMap:
		return r.enter(uint64(c&0x0f), 2)
	case c == map16:
		return r.enter(r.number(2), 2)
	case c == map32:
		return r.enter(r.number(4), 2)
	}
	r.fail()
	return 0
}

// mostUnseen is the number of elements that may be allocated before it is known that they exist.
// Only arrays around each other, at most 64, can have such elements at the same time.
const mostUnseen = 64

// Array begins an array and returns the number of its elements, or -1 for nil, which needs no End.
// As many elements are there, at least if they are more than 64.
func (r *Reader) Array() int {
	n := r.array()
	if n > mostUnseen {
		ahead := *r
		for range n {
			if ahead.skip(); ahead.unusual {
				r.fail()
				return 0
			}
		}
	}
	return n
}

func (r *Reader) array() int {
	switch c := r.code(); {
	case c&0xf0 == fixArray:
		return r.enter(uint64(c&0x0f), 1)
	case c == array16:
		return r.enter(r.number(2), 1)
	case c == array32:
		return r.enter(r.number(4), 1)
	case c == null && !r.unusual:
		return -1
	}
	r.fail()
	return 0
}

// Key reads a string, which is part of the payload.
func (r *Reader) Key() []byte {
	switch c := r.code(); {
	case c&0xe0 == fixString:
		return r.take(int(c & 0x1f))
	case c == string8:
		return r.take(int(r.number(1)))
	case c == string16:
		return r.take(int(r.number(2)))
	case c == string32:
		return r.take(int(r.number(4)))
	}
	r.fail()
	return nil
}

// String reads a string.
func (r *Reader) String() string {
	b := r.Key()
	if !utf8text.Valid(b) {
		r.fail()
		return ""
	}
	return string(b)
}

// Bytes reads bytes, or nil, for a field that has a value.
func (r *Reader) Bytes(value []byte) []byte {
	if r.Nil() {
		r.Absent(value == nil)
		return value
	}
	return bytes.Clone(r.bin())
}

// bin reads bytes, which are part of the payload.
func (r *Reader) bin() []byte {
	switch r.code() {
	case bin8:
		return r.take(int(r.number(1)))
	case bin16:
		return r.take(int(r.number(2)))
	case bin32:
		return r.take(int(r.number(4)))
	}
	r.fail()
	return nil
}

// Nil reads nil if it is next, and reports whether it was.
func (r *Reader) Nil() bool {
	if len(r.b) > 0 && r.b[0] == null {
		r.b = r.b[1:]
		return true
	}
	return false
}

// Absent says that nil was read for a field, and whether the field is nil. If it is not, as when it
// occurs twice, reflection decides.
func (r *Reader) Absent(isNil bool) {
	if !isNil {
		r.fail()
	}
}

// Bool reads a bool.
func (r *Reader) Bool() bool {
	switch r.code() {
	case yes:
		return true
	case no:
		return false
	}
	r.fail()
	return false
}

// Int reads an integer. One that is too large wraps around.
func (r *Reader) Int() int64 {
	switch c := r.code(); {
	case c <= math.MaxInt8:
		return int64(c)
	case c >= 0xe0:
		return int64(int8(c))
	case c == uint8Code:
		return int64(r.number(1))
	case c == uint16Code:
		return int64(r.number(2))
	case c == uint32Code:
		return int64(r.number(4))
	case c == uint64Code, c == int64Code:
		return int64(r.number(8))
	case c == int8Code:
		return int64(int8(r.number(1)))
	case c == int16Code:
		return int64(int16(r.number(2)))
	case c == int32Code:
		return int64(int32(r.number(4)))
	}
	r.fail()
	return 0
}

// Uint reads an integer. One that is negative or too large wraps around.
func (r *Reader) Uint() uint64 { return uint64(r.Int()) }

// Float32 reads a float32.
func (r *Reader) Float32() float32 {
	if r.code() != float32Code {
		r.fail()
	}
	return math.Float32frombits(uint32(r.number(4)))
}

// Float64 reads a float32 or float64.
func (r *Reader) Float64() float64 {
	switch r.code() {
	case float64Code:
		return math.Float64frombits(r.number(8))
	case float32Code:
		return float64(math.Float32frombits(uint32(r.number(4))))
	}
	r.fail()
	return 0
}

// Skip reads a key that the message does not have, and its value.
func (r *Reader) Skip(key []byte) {
	if !utf8text.Valid(key) {
		r.fail()
	}
	r.skip()
}

func (r *Reader) skip() {
	if r.unusual || len(r.b) == 0 {
		r.fail()
		return
	}
	switch c := r.b[0]; {
	case c <= math.MaxInt8, c >= 0xe0, c == null, c == no, c == yes:
		r.take(1)
	case c&0xe0 == fixString, c == string8, c == string16, c == string32:
		if !utf8text.Valid(r.Key()) {
			r.fail()
		}
	case c&0xf0 == fixMap, c == map16, c == map32:
		for range r.Map() {
			r.skip()
			r.skip()
			if r.unusual {
				return
			}
		}
		r.End()
	case c&0xf0 == fixArray, c == array16, c == array32:
		for range r.array() {
			if r.skip(); r.unusual {
				return
			}
		}
		r.End()
	case c == uint8Code, c == int8Code:
		r.take(2)
	case c == uint16Code, c == int16Code:
		r.take(3)
	case c == uint32Code, c == int32Code, c == float32Code:
		r.take(5)
	case c == uint64Code, c == int64Code, c == float64Code:
		r.take(9)
	case c == bin8, c == bin16, c == bin32:
		r.bin()
	default: // extensions
		r.fail()
	}
}
