// Package share answers several calls with the reply of one.
package share

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/codec"
)

// Append appends the bytes of a message, the same ones for equal messages if the codec can do that.
func Append(dst []byte, cd codec.Codec, v any) ([]byte, error) {
	if c, ok := cd.(codec.Canonical); ok {
		return c.AppendCanonical(dst, v)
	}
	return cd.Append(dst, v)
}

// fillable reports whether v is a pointer that is not nil, as messages are that can be decoded into.
func fillable(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && !r.IsNil()
}

// decode makes a message of the type t, a pointer's.
func decode(cd codec.Codec, data []byte, t reflect.Type) (any, error) {
	v := reflect.New(t.Elem()).Interface()
	if f, ok := cd.(codec.FreshUnmarshaler); ok {
		return v, f.UnmarshalFresh(data, v)
	}
	return v, cd.Unmarshal(data, v)
}

// duplicate makes a message like v, whose bytes are data, that shares no memory with it. It fails
// where that gives another message: a type may write what it does not read.
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
		return nil, fmt.Errorf("a %T is another message after it was encoded and decoded with %s", v, cd.Name())
	}
	return c, nil
}
