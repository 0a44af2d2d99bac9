package shape

import (
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/codec/internal/utf8text"
)

// CheckText fails if a string of v is not UTF-8, for decoders that make strings of bytes that were
// not checked. They make none in an interface, other than where that holds a pointer.
func (s *Types) CheckText(v any) error {
	if !s.validText(reflect.ValueOf(v), maxWalk) {
		return fmt.Errorf("%s string is not UTF-8", s.Format)
	}
	return nil
}

// validText ignores what is deeper than a message can be.
func (s *Types) validText(v reflect.Value, steps int) bool {
	if steps == 0 {
		return true
	}
	switch v.Kind() {
	case reflect.String:
		return utf8text.ValidString(v.String())
	case reflect.Interface:
		return v.Elem().Kind() != reflect.Pointer || s.validText(v.Elem(), steps-1)
	case reflect.Pointer:
		return v.IsNil() || s.validText(v.Elem(), steps-1)
	case reflect.Slice, reflect.Array:
		if !s.Plan(v.Type().Elem()).Text {
			return true
		}
		for i := range v.Len() {
			if !s.validText(v.Index(i), steps-1) {
				return false
			}
		}
	case reflect.Map:
		if !s.Plan(v.Type()).Text {
			return true
		}
		for entries := v.MapRange(); entries.Next(); {
			if !s.validText(entries.Key(), steps-1) || !s.validText(entries.Value(), steps-1) {
				return false
			}
		}
	case reflect.Struct:
		if s.whole(v.Type()) {
			return true
		}
		for _, i := range s.encodedFields(v.Type()) {
			if !s.validText(v.Field(i), steps-1) {
				return false
			}
		}
	}
	return true
}
