package codec

import (
	"fmt"
	"reflect"
)

// isNil reports whether v is nil or a nil pointer, whose methods must not be called.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// typeName names v's type for an error message.
func typeName(v any) string {
	switch {
	case v == nil:
		return "nil"
	case isNil(v):
		return fmt.Sprintf("a nil %T", v)
	}
	return fmt.Sprintf("%T", v)
}

// recovered is deferred around methods of the application that parse a peer's bytes: a method that
// indexes without checks would let the peer crash the process. It turns the panic into *err.
func recovered(codec string, v any, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s codec: decoding into %T panicked: %v", codec, v, p)
	}
}
