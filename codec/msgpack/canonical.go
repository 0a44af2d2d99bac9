package msgpack

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// AppendCanonical appends v with the entries of maps in the order of the bytes of their keys, those of
// structs too.
func (c *Codec) AppendCanonical(dst []byte, v any) ([]byte, error) {
	start := len(dst)
	out, err := c.Append(dst, v)
	if err != nil || c.ordered(reflect.TypeOf(v)) {
		return out, err
	}
	sorted, _, err := appendSorted(make([]byte, 0, len(out)-start), out[start:])
	if err != nil {
		return dst, fmt.Errorf("msgpack codec: cannot encode %T: %w", v, err)
	}
	return append(out[:start], sorted...), nil
}

// ordered reports whether a type has no maps in it, nor what may hold one.
func (c *Codec) ordered(t reflect.Type) bool {
	known, ok := c.orders.Load(t)
	if !ok {
		known, _ = c.orders.LoadOrStore(t, !mayHoldMap(t, map[reflect.Type]bool{}))
	}
	return known.(bool)
}

func mayHoldMap(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Map, reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return mayHoldMap(t.Elem(), seen)
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return false
		}
		for i := range t.NumField() { // all of them: generated code may encode what has no exported name
			if mayHoldMap(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// appendSorted appends the first value of data with its maps in order, and returns what follows it.
// data was scanned, so it is complete and not nested too deeply.
func appendSorted(dst, data []byte) (out, rest []byte, err error) {
	h, rest, err := readHead(data)
	if err != nil {
		return dst, nil, err
	}
	end := len(data) - len(rest) + h.size
	dst, rest = append(dst, data[:end]...), data[end:]
	switch {
	case h.values < 0:
		return dst, rest, nil
	case h.kind == array:
		for range h.values {
			if dst, rest, err = appendSorted(dst, rest); err != nil {
				return dst, nil, err
			}
		}
		return dst, rest, nil
	}
	type entry struct{ key, value []byte }
	entries := make([]entry, h.values/2)
	for i := range entries {
		e := &entries[i]
		for _, part := range []*[]byte{&e.key, &e.value} {
			if *part, rest, err = appendSorted(nil, rest); err != nil {
				return dst, nil, err
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	for _, e := range entries {
		dst = append(append(dst, e.key...), e.value...)
	}
	return dst, rest, nil
}
