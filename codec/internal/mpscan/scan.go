// Package mpscan checks MessagePack before a decoder sees it.
package mpscan

import (
	"errors"
	"fmt"

	"github.com/anser-rpc/anser/codec/internal/utf8text"
)

// maxDepth is the maximum nesting depth of arrays and maps.
const maxDepth = 64

var (
	errTruncated = errors.New("MessagePack ends before it is complete, or declares more than there is")
	errTooDeep   = fmt.Errorf("MessagePack nested deeper than %d levels", maxDepth)
	errTrailing  = errors.New("bytes follow the MessagePack value")
	errUTF8      = errors.New("MessagePack string is not UTF-8")
	errCode      = errors.New("MessagePack has the reserved code c1")
)

// Found is what a decoder must know about a value.
type Found struct {
	Bin bool // it contains a bin
	Key bool // it contains a bin that is not UTF-8 as the key of a map
}

// Scan checks that data is one MessagePack value, before a decoder allocates because of a declared
// length. It needs no memory.
func Scan(data []byte) (found Found, err error) {
	var left [maxDepth + 1]uint64 // the remaining values per level
	var keyed [maxDepth + 1]bool  // which levels are maps
	left[0] = 1
	for depth := 0; ; {
		if left[depth] == 0 {
			if depth--; depth >= 0 {
				continue
			}
			if len(data) > 0 {
				return found, errTrailing
			}
			return found, nil
		}
		left[depth]--
		h, rest, err := ReadHead(data)
		if err != nil {
			return found, err
		}
		data = rest
		if h.Values >= 0 {
			if depth == maxDepth {
				return found, errTooDeep
			}
			depth++
			left[depth], keyed[depth] = uint64(h.Values), h.IsMap()
			continue
		}
		switch {
		case h.kind == text && !utf8text.Valid(data[:h.Size]):
			return found, errUTF8
		case h.kind == binary:
			found.Bin = true
			if keyed[depth] && left[depth]%2 == 1 && !utf8text.Valid(data[:h.Size]) { // its value is left
				found.Key = true
			}
		}
		data = data[h.Size:]
	}
}

// CheckAgain checks a value that was decoded from data in which found.Key is set. The code that
// msgp generates makes strings of such keys in maps of type map[string]any. marshal encodes the
// value.
func (found Found) CheckAgain(marshal func([]byte) ([]byte, error)) error {
	if !found.Key {
		return nil
	}
	out, err := marshal(nil)
	if err == nil {
		_, err = Scan(out)
	}
	return err
}

// A Head is the beginning of a value.
type Head struct {
	Size   int // number of bytes that follow and are not values
	Values int // number of values that follow; negative if it is neither an array nor a map
	kind   kind
}

// ReadHead returns the head of the value at the beginning of data, and the rest after it. It fails
// if the rest is shorter than declared, with at least one byte per value.
func ReadHead(data []byte) (Head, []byte, error) {
	if len(data) == 0 {
		return Head{}, nil, errTruncated
	}
	code, data := data[0], data[1:]
	h, n := Head{Values: -1}, uint64(0)
	switch {
	case code <= 0x7f, code >= 0xe0: // fixint
		return h, data, nil
	case code <= 0x8f:
		h.kind, n = object, uint64(code&0x0f)
	case code <= 0x9f:
		h.kind, n = array, uint64(code&0x0f)
	case code <= 0xbf:
		h.kind, n = text, uint64(code&0x1f)
	default:
		l := layouts[code-0xc0]
		if len(data) < int(l.lengthBytes) {
			return Head{}, nil, errTruncated
		}
		for _, b := range data[:l.lengthBytes] {
			n = n<<8 | uint64(b)
		}
		h.kind, n, data = l.kind, n+uint64(l.more), data[l.lengthBytes:]
	}
	if h.kind == object {
		n *= 2
	}
	if n > uint64(len(data)) {
		return Head{}, nil, errTruncated
	}
	switch h.kind {
	case array, object:
		h.Values = int(n)
	case invalid:
		return Head{}, nil, errCode
	default:
		h.Size = int(n)
	}
	return h, data, nil
}

// IsMap reports whether the values are the keys and values of a map.
func (h Head) IsMap() bool { return h.kind == object }

type kind uint8

const (
	fixed kind = iota // a number of opaque bytes
	text
	binary
	array
	object
	invalid
)

// A layout describes the bytes after a code: lengthBytes that hold a length, and extra bytes not
// included in that length.
type layout struct {
	kind        kind
	lengthBytes uint8
	more        uint8
}

// layouts holds the layouts of the codes c0 to df.
var layouts = [32]layout{
	0x00: {fixed, 0, 0}, // nil
	0x01: {invalid, 0, 0},
	0x02: {fixed, 0, 0},  // false
	0x03: {fixed, 0, 0},  // true
	0x04: {binary, 1, 0}, // bin 8, 16, 32
	0x05: {binary, 2, 0},
	0x06: {binary, 4, 0},
	0x07: {fixed, 1, 1}, // ext 8, 16, 32, with a byte of type
	0x08: {fixed, 2, 1},
	0x09: {fixed, 4, 1},
	0x0a: {fixed, 0, 4}, // float 32, 64
	0x0b: {fixed, 0, 8},
	0x0c: {fixed, 0, 1}, // uint 8, 16, 32, 64
	0x0d: {fixed, 0, 2},
	0x0e: {fixed, 0, 4},
	0x0f: {fixed, 0, 8},
	0x10: {fixed, 0, 1}, // int 8, 16, 32, 64
	0x11: {fixed, 0, 2},
	0x12: {fixed, 0, 4},
	0x13: {fixed, 0, 8},
	0x14: {fixed, 0, 2}, // fixext 1, 2, 4, 8, 16, with a byte of type
	0x15: {fixed, 0, 3},
	0x16: {fixed, 0, 5},
	0x17: {fixed, 0, 9},
	0x18: {fixed, 0, 17},
	0x19: {text, 1, 0}, // str 8, 16, 32
	0x1a: {text, 2, 0},
	0x1b: {text, 4, 0},
	0x1c: {array, 2, 0}, // array 16, 32
	0x1d: {array, 4, 0},
	0x1e: {object, 2, 0}, // map 16, 32
	0x1f: {object, 4, 0},
}
