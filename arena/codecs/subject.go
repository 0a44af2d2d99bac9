package main

import (
	"fmt"
	"reflect"
	"runtime/debug"

	"google.golang.org/protobuf/proto"
)

// subject is a codec with a type that holds the message.
type subject struct {
	name   string
	module string // whose version is shown; empty for the standard library
	anser  bool
	// encode appends the message to dst, or returns a slice of its own where the library has no
	// way to append.
	encode func(dst []byte) ([]byte, error)
	// decode decodes into a new message and returns it.
	decode func(data []byte) (any, error)
	// same says how a decoded message differs from what was encoded.
	same func(decoded any) error
}

// of makes a subject of a type and two functions.
func of[T any](name, module string, message *T, encode func(dst []byte, m *T) ([]byte, error), decode func(data []byte, m *T) error) subject {
	return subject{
		name: name, module: module,
		encode: func(dst []byte) ([]byte, error) { return encode(dst, message) },
		decode: func(data []byte) (any, error) {
			m := new(T)
			return m, decode(data, m)
		},
		same: func(decoded any) error { return differ(message, decoded) },
	}
}

// differ compares two messages of one type. A slice that is nil equals an empty one.
func differ(want, got any) error {
	a, ok1 := want.(proto.Message)
	b, ok2 := got.(proto.Message)
	if ok1 && ok2 {
		if !proto.Equal(a, b) {
			return fmt.Errorf("decoded is %v, want %v", b, a)
		}
		return nil
	}
	if reflect.TypeOf(want) != reflect.TypeOf(got) {
		return fmt.Errorf("decoded is a %T, want a %T", got, want)
	}
	return differFields(reflect.ValueOf(want), reflect.ValueOf(got), reflect.TypeOf(want).String())
}

func differFields(want, got reflect.Value, name string) error {
	switch want.Kind() {
	case reflect.Pointer:
		if want.IsNil() != got.IsNil() {
			return fmt.Errorf("%s is nil in one of them", name)
		}
		if want.IsNil() {
			return nil
		}
		return differFields(want.Elem(), got.Elem(), name)
	case reflect.Struct:
		for i := range want.NumField() {
			if err := differFields(want.Field(i), got.Field(i), name+"."+want.Type().Field(i).Name); err != nil {
				return err
			}
		}
		return nil
	case reflect.Slice:
		if want.Len() != got.Len() {
			return fmt.Errorf("%s has %d elements, want %d", name, got.Len(), want.Len())
		}
		for i := range want.Len() {
			if err := differFields(want.Index(i), got.Index(i), fmt.Sprintf("%s[%d]", name, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if !want.Equal(got) {
		return fmt.Errorf("%s is %v, want %v", name, got, want)
	}
	return nil
}

// library returns the name of a module with its version.
func library(module string) string {
	switch module {
	case "":
		return "standard library"
	case anserModule:
		return "Anser"
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return module
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return module + " " + m.Version
		}
	}
	return module
}
