package bson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

var (
	errLength   = errors.New("a declared BSON length differs from the actual one")
	errTrailing = errors.New("bytes follow the BSON document")
	errDepth    = fmt.Errorf("BSON nested deeper than %d levels", MaxDepth)
	errUTF8     = errors.New("BSON text is not UTF-8")
	errBool     = errors.New("BSON has a boolean that is neither 0 nor 1")
)

// scan checks that data is one BSON document, before a decoder allocates because of a declared
// length or recurses as deep as the data.
func scan(data []byte) error {
	rest, err := passDocument(data, 0)
	if err == nil && len(rest) > 0 {
		err = errTrailing
	}
	return err
}

// passDocument skips a document or an array and returns the rest.
func passDocument(data []byte, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, errDepth
	}
	inner, rest, err := cut(data, 4)
	if err != nil {
		return nil, err
	}
	for {
		if len(inner) == 0 {
			return nil, errLength
		}
		kind := inner[0]
		if kind == 0 {
			if len(inner) > 1 {
				return nil, errLength
			}
			return rest, nil
		}
		if inner, err = text(inner[1:]); err != nil {
			return nil, err
		}
		if inner, err = value(kind, inner, depth); err != nil {
			return nil, err
		}
	}
}

// cut splits data after a part with a length of four bytes in front. The length includes counted
// bytes of itself.
func cut(data []byte, counted int) (inner, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, errLength
	}
	n := int64(int32(binary.LittleEndian.Uint32(data))) - int64(counted)
	if n < 0 || n > int64(len(data)-4) {
		return nil, nil, errLength
	}
	return data[4 : 4+n], data[4+n:], nil
}

// text skips a zero-terminated string.
func text(data []byte) ([]byte, error) {
	end := bytes.IndexByte(data, 0)
	if end < 0 {
		return nil, errLength
	}
	if !utf8.Valid(data[:end]) {
		return nil, errUTF8
	}
	return data[end+1:], nil
}

// sized skips a string with its length in front and a zero at its end.
func sized(data []byte) ([]byte, error) {
	inner, rest, err := cut(data, 0)
	if err != nil {
		return nil, err
	}
	if len(inner) == 0 || inner[len(inner)-1] != 0 {
		return nil, errLength
	}
	if !utf8.Valid(inner) {
		return nil, errUTF8
	}
	return rest, nil
}

func skip(data []byte, n int) ([]byte, error) {
	if n > len(data) {
		return nil, errLength
	}
	return data[n:], nil
}

// value skips the value of an element.
func value(kind byte, data []byte, depth int) (rest []byte, err error) {
	switch kind {
	case 0x01, 0x09, 0x11, 0x12: // double, date, timestamp, int64
		return skip(data, 8)
	case 0x02, 0x0d, 0x0e: // string, code, symbol
		return sized(data)
	case 0x03, 0x04: // document, array
		return passDocument(data, depth+1)
	case 0x05: // binary, with a byte of subtype
		_, rest, err = binaryValue(data)
		return rest, err
	case 0x06, 0x0a, 0xff, 0x7f: // undefined, null, the least key, the greatest
		return data, nil
	case 0x07: // object id
		return skip(data, 12)
	case 0x08:
		if len(data) > 0 && data[0] > 1 {
			return nil, errBool
		}
		return skip(data, 1)
	case 0x0b: // regular expression and its options
		if rest, err = text(data); err != nil {
			return nil, err
		}
		return text(rest)
	case 0x0c: // pointer into a database
		if rest, err = sized(data); err != nil {
			return nil, err
		}
		return skip(rest, 12)
	case 0x0f: // code with scope
		inner, rest, err := cut(data, 4)
		if err != nil {
			return nil, err
		}
		if inner, err = sized(inner); err != nil {
			return nil, err
		}
		if inner, err = passDocument(inner, depth+1); err == nil && len(inner) > 0 {
			err = errLength
		}
		return rest, err
	case 0x10:
		return skip(data, 4)
	case 0x13:
		return skip(data, 16)
	}
	return nil, fmt.Errorf("BSON has no type %#x", kind)
}

// binaryValue skips a length, a subtype byte and n bytes. For the old subtype 2 these begin with
// another length.
func binaryValue(data []byte) (inner, rest []byte, err error) {
	if len(data) < 5 {
		return nil, nil, errLength
	}
	n := int64(int32(binary.LittleEndian.Uint32(data)))
	if n < 0 || n > int64(len(data)-5) {
		return nil, nil, errLength
	}
	inner, rest = data[5:5+n], data[5+n:]
	if data[4] == 2 {
		if len(inner) < 4 || int64(int32(binary.LittleEndian.Uint32(inner))) != n-4 {
			return nil, nil, errLength
		}
	}
	return inner, rest, nil
}
