package anser

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/codec/protobuf"
)

// Tuple is the message of a method with several arguments or results: an [Interceptor] sees it as
// the request and reply of such a method. It is encoded as an array of its elements or as an object
// with their names, in JSON and MessagePack; see docs/calls.md. It is not safe for concurrent use.
type Tuple struct {
	of     *elements
	values []reflect.Value // addressable
	object bool            // encoded with names
}

// Len returns the number of elements.
func (t *Tuple) Len() int { return len(t.values) }

// At returns element i, from 0.
func (t *Tuple) At(i int) any { return t.values[i].Interface() }

// Name returns the name of element i. Without names from [Params] they are "arg1", "arg2" and so on
// in a request, and "result1", "result2" in a reply.
func (t *Tuple) Name(i int) string { return t.of.names[i] }

// elements describes the tuples of one side of a method.
type elements struct {
	types []reflect.Type
	names []string
	what  string // "argument" or "result"
	given bool   // the names are from Params
}

// maxElements bounds what a peer may send; no function written by hand has more.
const maxElements = 64

// newElements fails for types that cannot be part of a message.
func newElements(what, name string, types []reflect.Type) (*elements, error) {
	if len(types) > maxElements {
		return nil, fmt.Errorf("it has %d %ss, more than %d: use a struct", len(types), what, maxElements)
	}
	e := &elements{types: types, what: what}
	for i, t := range types {
		e.names = append(e.names, fmt.Sprintf("%s%d", name, i+1))
		v := reflect.New(t).Interface()
		if isMessage(t) {
			continue
		}
		if !exportedOrBuiltin(t) {
			return nil, fmt.Errorf("the type %s is not exported", t)
		}
		if err := errors.Join(tupleJSON.Unfit(v), tupleMsgpack.Unfit(v)); err != nil {
			return nil, fmt.Errorf("a value of type %s, %s %d, cannot travel as JSON and MessagePack: %w", t, what, i+1, err)
		}
	}
	return e, nil
}

// The codecs of the elements; each is safe for concurrent use.
var (
	tupleJSON    = protobuf.NewJSON()
	tupleMsgpack = msgpack.New()
)

// isMessage reports whether t is a pointer to a protobuf message.
func isMessage(t reflect.Type) bool { return t.Implements(reflect.TypeFor[proto.Message]()) }

func (e *elements) new() *Tuple {
	t := &Tuple{of: e, values: make([]reflect.Value, len(e.types))}
	for i, typ := range e.types {
		t.values[i] = reflect.New(typ).Elem()
	}
	return t
}

// message returns element i as a protobuf message, or false if it is none. If fresh is set, it is a
// new message.
func (t *Tuple) message(i int, fresh bool) (proto.Message, bool) {
	v := t.values[i]
	if !isMessage(v.Type()) {
		return nil, false
	}
	if fresh && v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Interface().(proto.Message), true
}

// set replaces element i with the value that decode stores through a pointer to it, or with zero if
// null is set.
func (t *Tuple) set(i int, null bool, decode func(v any) error) error {
	t.values[i].SetZero()
	if null {
		return nil
	}
	var v any = t.values[i].Addr().Interface()
	if m, ok := t.message(i, true); ok {
		v = m
	}
	if err := decode(v); err != nil {
		return fmt.Errorf("%s %s: %w", t.of.what, t.of.names[i], err)
	}
	return nil
}

// index returns the index of the element with the name.
func (t *Tuple) index(name string) (int, error) {
	if i := slices.Index(t.of.names, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("there is no %s %q: want %s", t.of.what, name, t.of)
}

// checkCount returns an error unless n is the number of elements.
func (t *Tuple) checkCount(n int) error {
	if n != len(t.values) {
		return fmt.Errorf("%d %ss: want %s", n, t.of.what, t.of)
	}
	return nil
}

// clear sets all elements to zero, as an object may lack some.
func (t *Tuple) clear() {
	for _, v := range t.values {
		v.SetZero()
	}
}

// String returns the types with their names, as in Go: "(a int, b int)".
func (e *elements) String() string {
	list := make([]string, len(e.types))
	for i, t := range e.types {
		list[i] = e.names[i] + " " + t.String()
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// MarshalJSON returns an array, or an object if the request was one.
func (t *Tuple) MarshalJSON() ([]byte, error) {
	open, end := byte('['), byte(']')
	if t.object {
		open, end = '{', '}'
	}
	out := []byte{open}
	for i, v := range t.values {
		if i > 0 {
			out = append(out, ',')
		}
		if t.object {
			out = append(out, fmt.Sprintf("%q:", t.of.names[i])...)
		}
		value := v.Addr().Interface()
		if m, ok := t.message(i, false); ok {
			if value = m; v.IsNil() {
				out = append(out, "null"...)
				continue
			}
		}
		var err error
		if out, err = tupleJSON.Append(out, value); err != nil {
			return nil, fmt.Errorf("%s %s: %w", t.of.what, t.of.names[i], err)
		}
	}
	return append(out, end), nil
}

// UnmarshalJSON accepts an array with all elements in order, or an object with their names, in
// which missing ones are zero. null is an empty array.
func (t *Tuple) UnmarshalJSON(data []byte) error {
	var array []json.RawMessage
	if err := json.Unmarshal(data, &array); err == nil {
		t.object = false
		if err := t.checkCount(len(array)); err != nil {
			return err
		}
		for i, text := range array {
			if err := t.setJSON(i, text); err != nil {
				return err
			}
		}
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("want an array or an object with the %ss %s", t.of.what, t.of)
	}
	t.object = true
	t.clear()
	for name, text := range object {
		i, err := t.index(name)
		if err == nil {
			err = t.setJSON(i, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Tuple) setJSON(i int, text []byte) error {
	return t.set(i, string(text) == "null", func(v any) error { return tupleJSON.Unmarshal(text, v) })
}

// MarshalMsg appends the tuple as MessagePack: an array, or a map if the request was one. A
// protobuf message is a bin with its encoding.
func (t *Tuple) MarshalMsg(b []byte) ([]byte, error) {
	n := len(t.values)
	switch {
	case t.object:
		b = append(b, 0xde, 0, byte(n)) // map 16
	case n < 16:
		b = append(b, 0x90|byte(n))
	default:
		b = append(b, 0xdc, 0, byte(n)) // array 16
	}
	for i, v := range t.values {
		var err error
		if t.object {
			name := t.of.names[i]
			if b, err = tupleMsgpack.Append(b, &name); err != nil {
				return nil, err
			}
		}
		if m, ok := t.message(i, false); ok {
			b, err = appendMessage(b, m, v.IsNil())
		} else {
			b, err = tupleMsgpack.Append(b, v.Addr().Interface())
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", t.of.what, t.of.names[i], err)
		}
	}
	return b, nil
}

func appendMessage(b []byte, m proto.Message, null bool) ([]byte, error) {
	if null {
		return append(b, msgpackNil), nil
	}
	text, err := tupleProtobuf.Append(nil, m)
	if err != nil {
		return nil, err
	}
	return tupleMsgpack.Append(b, &text)
}

var tupleProtobuf = protobuf.New()

const msgpackNil = 0xc0

// UnmarshalMsg decodes the output of MarshalMsg and returns the remaining bytes.
func (t *Tuple) UnmarshalMsg(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, errors.New("there is no value")
	}
	values, keyed, rest, err := msgpack.Elements(data, maxElements)
	if err != nil {
		return nil, fmt.Errorf("the %ss %s: %w", t.of.what, t.of, err)
	}
	t.object = keyed
	if !keyed {
		if err := t.checkCount(len(values)); err != nil {
			return nil, err
		}
		for i, v := range values {
			if err := t.setMsg(i, v); err != nil {
				return nil, err
			}
		}
		return rest, nil
	}
	t.clear()
	for at := 0; at < len(values); at += 2 {
		var name string
		if err := tupleMsgpack.Unmarshal(values[at], &name); err != nil {
			return nil, err
		}
		i, err := t.index(name)
		if err == nil {
			err = t.setMsg(i, values[at+1])
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

func (t *Tuple) setMsg(i int, data []byte) error {
	return t.set(i, len(data) == 1 && data[0] == msgpackNil, func(v any) error {
		m, ok := v.(proto.Message)
		if !ok {
			return tupleMsgpack.Unmarshal(data, v)
		}
		var text []byte
		if err := tupleMsgpack.Unmarshal(data, &text); err != nil {
			return err
		}
		return tupleProtobuf.Unmarshal(text, m)
	})
}

// shape describes the tuples of e: as objects if their elements have names.
func (e *elements) shape() Shape {
	var b strings.Builder
	open, end := "[", "]"
	if e.given {
		open, end = "{", "}"
	}
	b.WriteString(open)
	for i, t := range e.types {
		if i > 0 {
			b.WriteByte(',')
		}
		if e.given {
			fmt.Fprintf(&b, "%q:", e.names[i])
		}
		if isMessage(t) {
			t = t.Elem()
		}
		b.Write(shapeOf(t).JSON)
	}
	b.WriteString(end)
	return Shape{Type: e.String(), JSON: json.RawMessage(b.String())}
}
