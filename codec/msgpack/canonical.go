package msgpack

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/anser-rpc/anser/codec/internal/mpscan"
)

var errSameKeys = errors.New("two keys of a map have the same bytes, as uint8(1) and uint16(1) have")

// AppendCanonical appends v with the entries of all maps, including structs, sorted by the bytes
// of their keys. It returns an error if two keys of a map have the same bytes.
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

// ordered reports whether a type contains neither maps nor types that may hold one.
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
		for i := range t.NumField() { // all fields: generated code may encode unexported ones
			if mayHoldMap(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// appendSorted appends the first value of data with its maps sorted, and returns the rest. data
// was scanned, so it is complete and not nested too deeply.
func appendSorted(dst, data []byte) (out, rest []byte, err error) {
	h, rest, err := mpscan.ReadHead(data)
	if err != nil {
		return dst, nil, err
	}
	end := len(data) - len(rest) + h.Size
	dst, rest = append(dst, data[:end]...), data[end:]
	switch {
	case h.Values < 0:
		return dst, rest, nil
	case !h.IsMap():
		for range h.Values {
			if dst, rest, err = appendSorted(dst, rest); err != nil {
				return dst, nil, err
			}
		}
		return dst, rest, nil
	}
	type entry struct{ key, value []byte }
	entries := make([]entry, h.Values/2)
	for i := range entries {
		e := &entries[i]
		for _, part := range []*[]byte{&e.key, &e.value} {
			if *part, rest, err = appendSorted(nil, rest); err != nil {
				return dst, nil, err
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	for i, e := range entries {
		if i > 0 && bytes.Equal(e.key, entries[i-1].key) {
			return dst, nil, errSameKeys
		}
		dst = append(append(dst, e.key...), e.value...)
	}
	return dst, rest, nil
}
