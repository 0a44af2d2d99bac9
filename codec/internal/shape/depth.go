package shape

import (
	"fmt"
	"reflect"
)

// MaxDepth is the maximum nesting depth of arrays and maps in a message.
const MaxDepth = 64

// maxWalk is the maximum number of steps that CheckDepth descends into a value. One level of a
// format is at most four steps: an interface, two pointers, a container. Values nested deeper than
// MaxDepth but less than this are detected when the bytes are scanned.
const maxWalk = 4 * MaxDepth

// CheckDepth fails if v is nested very deeply, like a value that contains itself: encoding it
// would overflow the stack, which ends the process.
func (s *Types) CheckDepth(v any) error { return s.checkDepth(reflect.ValueOf(v), maxWalk) }

func (s *Types) checkDepth(v reflect.Value, steps int) error {
	if steps == 0 {
		return fmt.Errorf("%s nested deeper than %d levels", s.Format, MaxDepth)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return s.checkDepth(v.Elem(), steps-1)
		}
	case reflect.Slice, reflect.Array:
		if !isNested(v.Type().Elem()) {
			return nil
		}
		for i := range v.Len() {
			if err := s.checkDepth(v.Index(i), steps-1); err != nil {
				return err
			}
		}
	case reflect.Map:
		if !isNested(v.Type().Elem()) {
			return nil
		}
		for entries := v.MapRange(); entries.Next(); {
			if err := s.checkDepth(entries.Value(), steps-1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		if s.whole(v.Type()) {
			return nil
		}
		for _, i := range s.encodedFields(v.Type()) {
			if err := s.checkDepth(v.Field(i), steps-1); err != nil {
				return err
			}
		}
	}
	return nil
}

func isNested(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return true
	}
	return false
}

// IsNil reports whether v is nil or a nil pointer, and therefore not a message.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// IsPointer reports whether v is a pointer.
func IsPointer(v any) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Pointer
}
