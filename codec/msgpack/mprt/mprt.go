// Package mprt is the runtime of the code that "anser gen" generates for MessagePack. Only that
// code and codec msgpack use it. The encoding is the one that the codec has for plain structs.
package mprt

import (
	"encoding/binary"
	"math"

	"github.com/anser-rpc/anser/codec/internal/utf8text"
)

// Message is implemented by generated code. Its methods are for the codec.
type Message interface {
	// AnserMsgpackAppend writes the message.
	AnserMsgpackAppend(w *Writer)
	// AnserMsgpackDecode sets the fields that r has.
	AnserMsgpackDecode(r *Reader)
}

// maxDepth is how deep arrays and maps may be inside each other.
const maxDepth = 64

// The codes of MessagePack that are used here.
const (
	fixMap, fixArray, fixString = 0x80, 0x90, 0xa0
	null, no, yes               = 0xc0, 0xc2, 0xc3
	bin8, bin16, bin32          = 0xc4, 0xc5, 0xc6
	float32Code, float64Code    = 0xca, 0xcb
	uint8Code, uint16Code       = 0xcc, 0xcd
	uint32Code, uint64Code      = 0xce, 0xcf
	int8Code, int16Code         = 0xd0, 0xd1
	int32Code, int64Code        = 0xd2, 0xd3
	string8, string16, string32 = 0xd9, 0xda, 0xdb
	array16, array32            = 0xdc, 0xdd
	map16, map32                = 0xde, 0xdf
	mostFix, mostFixString      = 15, 31
)

// Writer appends a message to B. What it cannot write, a string that is not UTF-8 or messages that
// are inside each other too deep, makes the message unusual: the codec finds out what is wrong.
type Writer struct {
	B       []byte
	depth   int
	unusual bool
}

// Unusual reports whether B must not be used.
func (w *Writer) Unusual() bool { return w.unusual }

// enter reports whether another array or map may begin.
func (w *Writer) enter() bool {
	w.depth++
	w.unusual = w.unusual || w.depth > maxDepth
	return !w.unusual
}

// End ends an array or a map.
func (w *Writer) End() { w.depth-- }

// Map begins a map with n members, if it returns true.
func (w *Writer) Map(n int) bool {
	w.head(n, mostFix, fixMap, 0, map16, map32)
	return w.enter()
}

// Array begins an array with n elements, if it returns true.
func (w *Writer) Array(n int) bool {
	w.head(n, mostFix, fixArray, 0, array16, array32)
	return w.enter()
}

// Key appends a string that is encoded already.
func (w *Writer) Key(encoded string) { w.B = append(w.B, encoded...) }

// String appends a string.
func (w *Writer) String(s string) {
	w.unusual = w.unusual || !utf8text.ValidString(s)
	w.head(len(s), mostFixString, fixString, string8, string16, string32)
	w.B = append(w.B, s...)
}

// Bytes appends bytes, or nil.
func (w *Writer) Bytes(v []byte) {
	if v == nil {
		w.Nil()
		return
	}
	w.head(len(v), -1, 0, bin8, bin16, bin32)
	w.B = append(w.B, v...)
}

// head appends a length in the shortest form. Not all kinds have a form with the length in the
// code, or in one byte.
func (w *Writer) head(n, most int, fix, in8, in16, in32 byte) {
	switch {
	case n <= most:
		w.B = append(w.B, fix|byte(n))
	case in8 != 0 && n <= math.MaxUint8:
		w.B = append(w.B, in8, byte(n))
	case n <= math.MaxUint16:
		w.B = binary.BigEndian.AppendUint16(append(w.B, in16), uint16(n))
	default:
		w.unusual = w.unusual || uint64(n) > math.MaxUint32
		w.B = binary.BigEndian.AppendUint32(append(w.B, in32), uint32(n))
	}
}

// Nil appends nil.
func (w *Writer) Nil() { w.B = append(w.B, null) }

// Bool appends a bool.
func (w *Writer) Bool(v bool) {
	if v {
		w.B = append(w.B, yes)
	} else {
		w.B = append(w.B, no)
	}
}

// Int appends an integer in the shortest form.
func (w *Writer) Int(v int64) {
	switch {
	case v >= 0:
		w.Uint(uint64(v))
	case v >= -32:
		w.B = append(w.B, byte(v))
	case v >= math.MinInt8:
		w.B = append(w.B, int8Code, byte(v))
	case v >= math.MinInt16:
		w.B = binary.BigEndian.AppendUint16(append(w.B, int16Code), uint16(v))
	case v >= math.MinInt32:
		w.B = binary.BigEndian.AppendUint32(append(w.B, int32Code), uint32(v))
	default:
		w.B = binary.BigEndian.AppendUint64(append(w.B, int64Code), uint64(v))
	}
}

// Uint appends an integer in the shortest form.
func (w *Writer) Uint(v uint64) {
	switch {
	case v <= math.MaxInt8:
		w.B = append(w.B, byte(v))
	case v <= math.MaxUint8:
		w.B = append(w.B, uint8Code, byte(v))
	case v <= math.MaxUint16:
		w.B = binary.BigEndian.AppendUint16(append(w.B, uint16Code), uint16(v))
	case v <= math.MaxUint32:
		w.B = binary.BigEndian.AppendUint32(append(w.B, uint32Code), uint32(v))
	default:
		w.B = binary.BigEndian.AppendUint64(append(w.B, uint64Code), v)
	}
}

// Float32 appends a float32.
func (w *Writer) Float32(v float32) {
	w.B = binary.BigEndian.AppendUint32(append(w.B, float32Code), math.Float32bits(v))
}

// Float64 appends a float64.
func (w *Writer) Float64(v float64) {
	w.B = binary.BigEndian.AppendUint64(append(w.B, float64Code), math.Float64bits(v))
}
