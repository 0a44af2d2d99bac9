package codec

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// fitsJSON walks the type that v points to.
func fitsJSON(v any) bool {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return false
	}
	return jsonTypes{}.fits(t)
}

// jsonTypes holds the types that the walk has begun, so that it ends for types that contain themselves.
type jsonTypes map[reflect.Type]bool

func (seen jsonTypes) fits(t reflect.Type) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[protoMessage]()), t.Implements(reflect.TypeFor[protoMessage]()):
		return false
	case pointer.Implements(reflect.TypeFor[json.Marshaler]()) && pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return true
	case pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return true
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Invalid:
		return false
	case reflect.Interface:
		return t.NumMethod() == 0 // the decoder cannot choose a type for another one
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return seen.fits(t.Elem())
	case reflect.Map:
		return fitsJSONKey(t.Key()) && seen.fits(t.Elem())
	case reflect.Struct:
		return seen.fitsStruct(t)
	}
	return true
}

func (seen jsonTypes) fitsStruct(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous || f.Tag.Get("json") == "-" {
			continue
		}
		if !seen.fits(f.Type) {
			return false
		}
	}
	return true
}

func fitsJSONKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) &&
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
