package shape

import (
	"fmt"
	"reflect"
)

// MaxDepth is how deep arrays and maps may be nested in a message.
const MaxDepth = 64

// maxWalk is how many steps CheckDepth takes into a value. A level of a format is at most four of
// them: an interface, two pointers, a container. What is nested deeper than MaxDepth and less than
// this is found when the bytes are scanned.
const maxWalk = 4 * MaxDepth

// CheckDepth fails if something is very deep inside v, as everything is in a value that contains
// itself: encoding that would use up the stack, which ends the process.
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

// IsNil reports whether v is nil or a nil pointer, which is no message.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// IsPointer reports whether v's type is one of pointers.
func IsPointer(v any) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Pointer
}
