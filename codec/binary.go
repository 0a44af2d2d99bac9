package codec

import (
	"encoding"
	"fmt"
	"slices"
)

// Binary is for types that marshal themselves: they have UnmarshalBinary, and AppendBinary or
// MarshalBinary (package encoding), or MarshalLen and MarshalTo, which Colfer generates and which
// need no memory of their own.
//
// Such a method sees a peer's bytes before anybody else does. It must not keep them, and must not
// allocate because a length was declared. Gencode's Unmarshal does the latter, which is why its
// methods are not looked for; a type can offer them as UnmarshalBinary when its peers are trusted.
type Binary struct{}

// sized is what Colfer generates beside MarshalBinary.
type sized interface {
	MarshalLen() (int, error)
	MarshalTo(buf []byte) int
}

// ID returns BinaryID.
func (Binary) ID() uint8 { return BinaryID }

// Name returns "binary".
func (Binary) Name() string { return "binary" }

// Append appends what v's own method writes.
func (Binary) Append(dst []byte, v any) ([]byte, error) {
	if isNil(v) {
		return dst, fmt.Errorf("binary codec: cannot encode %s: pass a value", typeName(v))
	}
	out, err := dst, error(nil)
	switch m := v.(type) {
	case encoding.BinaryAppender:
		out, err = m.AppendBinary(dst)
	case sized:
		out, err = appendSized(dst, m)
	case encoding.BinaryMarshaler:
		var b []byte
		b, err = m.MarshalBinary()
		out = append(dst, b...)
	default:
		return dst, fmt.Errorf("binary codec: %T does not marshal itself: give it AppendBinary and UnmarshalBinary, or use another codec", v)
	}
	if err != nil {
		return dst, fmt.Errorf("binary codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

func appendSized(dst []byte, m sized) ([]byte, error) {
	n, err := m.MarshalLen()
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst = slices.Grow(dst, n)[:start+n]
	if written := m.MarshalTo(dst[start:]); written != n {
		return dst[:start], fmt.Errorf("MarshalTo wrote %d bytes and MarshalLen announced %d: was the value changed meanwhile?", written, n)
	}
	return dst, nil
}

// Unmarshal gives data to v's UnmarshalBinary.
func (Binary) Unmarshal(data []byte, v any) (err error) {
	m, ok := v.(encoding.BinaryUnmarshaler)
	if !ok || isNil(v) {
		return fmt.Errorf("binary codec: cannot decode into %s: pass a pointer to a type with UnmarshalBinary", typeName(v))
	}
	defer recovered("binary", v, &err)
	if err := m.UnmarshalBinary(data); err != nil {
		return fmt.Errorf("binary codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

// Fits reports whether v's type has the methods in both directions.
func (Binary) Fits(v any) bool {
	if _, ok := v.(encoding.BinaryUnmarshaler); !ok {
		return false
	}
	switch v.(type) {
	case encoding.BinaryAppender, sized, encoding.BinaryMarshaler:
		return true
	}
	return false
}
