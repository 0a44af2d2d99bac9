// Package share answers several calls with the reply of one.
package share

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/codec"
)

// Append appends the encoding of a message, the canonical one if the codec supports that.
func Append(dst []byte, cd codec.Codec, v any) ([]byte, error) {
	if c, ok := cd.(codec.Canonical); ok {
		return c.AppendCanonical(dst, v)
	}
	return cd.Append(dst, v)
}

// fillable reports whether v is a non-nil pointer, so that a message can be decoded into it.
func fillable(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && !r.IsNil()
}

// decode decodes a message of the type t, a pointer type.
func decode(cd codec.Codec, data []byte, t reflect.Type) (any, error) {
	v := reflect.New(t.Elem()).Interface()
	if f, ok := cd.(codec.FreshUnmarshaler); ok {
		return v, f.UnmarshalFresh(data, v)
	}
	return v, cd.Unmarshal(data, v)
}

// duplicate returns a copy of v, whose encoding is data, that shares no memory with it. It fails
// if the copy differs: a type may encode fields that it does not decode.
func duplicate(cd codec.Codec, data []byte, v any) (any, error) {
	c, err := decode(cd, data, reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	again, err := Append(make([]byte, 0, len(data)), cd, c)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(data, again) && !reflect.DeepEqual(c, v) {
		return nil, fmt.Errorf("a %T differs after it was encoded and decoded with %s", v, cd.Name())
	}
	return c, nil
}
