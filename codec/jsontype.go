package codec

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/codec/internal/shape"
)

// protoMessage is implemented by the types that protoc-gen-go generates.
type protoMessage interface{ ProtoMessage() }

var errProtoJSON = errors.New("protobuf messages have a JSON of their own: use the JSON codec of codec/protobuf")

// jsonTypes holds the types visited so far, so that the walk ends for types that contain
// themselves.
type jsonTypes map[reflect.Type]bool

// check returns why encoding/json cannot encode and decode t, nil if it can.
func (seen jsonTypes) check(t reflect.Type) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	if implements[protoMessage](t) {
		return fmt.Errorf("%v: %w", t, errProtoJSON)
	}
	if implements[json.Marshaler](t) && implements[json.Unmarshaler](t) ||
		implements[encoding.TextMarshaler](t) && implements[encoding.TextUnmarshaler](t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("there is no JSON for %v: leave it out with the tag json:\"-\"", t)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("%v is an interface, for which no type can be chosen when it is decoded", t)
		}
	case reflect.Pointer:
		return seen.check(t.Elem())
	case reflect.Slice, reflect.Array:
		return shape.At("[]", seen.check(t.Elem()))
	case reflect.Map:
		if !isJSONKey(t.Key()) {
			return fmt.Errorf("%v has keys that are neither text nor integers", t)
		}
		return shape.At("[]", seen.check(t.Elem()))
	case reflect.Struct:
		return seen.checkFields(t)
	}
	return nil
}

func (seen jsonTypes) checkFields(t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous || f.Tag.Get("json") == "-" {
			continue
		}
		if err := seen.check(f.Type); err != nil {
			return shape.At(f.Name, err)
		}
	}
	return nil
}

func isJSONKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && implements[encoding.TextUnmarshaler](t)
}

// implements reports whether t or a pointer to it has the methods of I.
func implements[I any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[I]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}
