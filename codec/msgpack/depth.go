package msgpack

import "reflect"

// maxWalk is how many steps checkDepth takes into a value. A level of MessagePack is at most four of
// them: an interface, two pointers, a container. What is nested deeper than maxDepth and less than
// this is found when the bytes are scanned.
const maxWalk = 4 * maxDepth

// checkDepth fails if something is more than steps inside v, as everything is in a value that contains
// itself: encoding that would use up the stack, which ends the process.
func (c *Codec) checkDepth(v reflect.Value, steps int) error {
	if steps == 0 {
		return errTooDeep
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return c.checkDepth(v.Elem(), steps-1)
		}
	case reflect.Slice, reflect.Array:
		if !isNested(v.Type().Elem()) {
			return nil
		}
		for i := range v.Len() {
			if err := c.checkDepth(v.Index(i), steps-1); err != nil {
				return err
			}
		}
	case reflect.Map:
		if !isNested(v.Type().Elem()) {
			return nil
		}
		for entries := v.MapRange(); entries.Next(); {
			if err := c.checkDepth(entries.Value(), steps-1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for _, i := range c.encodedFields(v.Type()) {
			if err := c.checkDepth(v.Field(i), steps-1); err != nil {
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

func (c *Codec) encodedFields(t reflect.Type) []int {
	known, ok := c.fields.Load(t)
	if !ok {
		known, _ = c.fields.LoadOrStore(t, encodedFields(t))
	}
	return known.([]int)
}
