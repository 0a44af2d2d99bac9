package codec

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/anser-rpc/anser/codec/internal/mpscan"
)

// Binary is for types that marshal themselves. It uses the first of these pairs that a type has:
//
//   - AppendBinary and UnmarshalBinary of package encoding,
//   - MarshalLen and MarshalTo, which Colfer generates in addition to UnmarshalBinary and which
//     allocate nothing,
//   - MarshalBinary and UnmarshalBinary,
//   - MarshalMsg and UnmarshalMsg, which msgp generates: the payload is MessagePack,
//   - Size, Marshal and Unmarshal, which gencode generates.
//
// These methods are the first to see a peer's bytes. They must not keep them, and must not
// allocate because of a declared length; a panic in them fails the call. Msgp's methods do
// allocate that way, so Binary scans the MessagePack first. Colfer's allocate at most
// ColferListMax elements for a list, 65,536 unless its flag -l sets another limit. Gencode's
// allocate any declared length of a slice and recurse as deep as the data: a type of gencode that
// contains a slice or itself is decoded only with TrustPeers.
//
// Fits is false for a type that has only msgp's methods: as a default, MessagePack is the better
// choice, as every peer can read it.
type Binary struct {
	// TrustPeers lifts the restriction on gencode's types: any peer that can send to this side can
	// then make it allocate any amount of memory. It has no effect on other types.
	TrustPeers bool
}

// sized is the part of Colfer's methods besides MarshalBinary.
type sized interface {
	MarshalLen() (int, error)
	MarshalTo(buf []byte) int
}

// msgp is the set of methods that msgp generates.
type msgp interface {
	MarshalMsg(b []byte) ([]byte, error)
	UnmarshalMsg(b []byte) ([]byte, error)
}

// ID returns BinaryID.
func (Binary) ID() uint8 { return BinaryID }

// Name returns "binary".
func (Binary) Name() string { return "binary" }

// Append appends the result of v's own method.
func (c Binary) Append(dst []byte, v any) ([]byte, error) {
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
	case msgp:
		out, err = m.MarshalMsg(dst)
		if err == nil {
			_, err = mpscan.Scan(out[len(dst):])
		}
	case gencode:
		out, err = c.appendGencode(dst, m)
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

// Unmarshal passes data to v's own method.
func (c Binary) Unmarshal(data []byte, v any) (err error) {
	if isNil(v) {
		return c.errUnfit(v)
	}
	defer recovered("binary", v, &err)
	switch m := v.(type) {
	case encoding.BinaryUnmarshaler:
		err = m.UnmarshalBinary(data)
	case msgp:
		err = unmarshalMsgp(data, m)
	case gencode:
		err = c.unmarshalGencode(data, m)
	default:
		return c.errUnfit(v)
	}
	if err != nil {
		return fmt.Errorf("binary codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func (Binary) errUnfit(v any) error {
	return fmt.Errorf("binary codec: cannot decode into %s: pass a pointer to a type with UnmarshalBinary", typeName(v))
}

var errLeft = errors.New("bytes follow the value")

func unmarshalMsgp(data []byte, m msgp) error {
	found, err := mpscan.Scan(data)
	if err != nil {
		return err
	}
	rest, err := m.UnmarshalMsg(data)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return errLeft
	}
	return found.CheckAgain(m.MarshalMsg)
}

// Fits reports whether v's type has the methods for both directions, other than msgp's.
func (c Binary) Fits(v any) bool {
	if _, ok := v.(encoding.BinaryUnmarshaler); ok {
		switch v.(type) {
		case encoding.BinaryAppender, sized, encoding.BinaryMarshaler:
			return true
		}
	}
	if _, ok := v.(msgp); ok {
		return false
	}
	_, ok := v.(gencode)
	return ok && c.checkGencode(reflect.TypeOf(v)) == nil
}
