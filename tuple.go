package anser

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/codec/tuple"
)

// Tuple is the message of a method with several arguments or results: an [Interceptor] sees it as
// the request and reply of such a method. It is encoded as an array of its elements or as an object
// with their names, in JSON and MessagePack; see docs/calls.md. It is not safe for concurrent use.
type Tuple struct {
	of       *elements
	values   []reflect.Value // addressable
	pointers []any           // to the values
	object   bool            // encoded with names
}

// Len returns the number of elements.
func (t *Tuple) Len() int { return len(t.values) }

// At returns element i, from 0.
func (t *Tuple) At(i int) any { return t.values[i].Interface() }

// Name returns the name of element i. Without names from [Params] they are "arg1", "arg2" and so on
// in a request, and "result1", "result2" in a reply.
func (t *Tuple) Name(i int) string { return t.of.layout.Names[i] }

// elements describes the tuples of one side of a method.
type elements struct {
	types  []reflect.Type
	layout tuple.Layout
	given  bool // the names are from Params
}

// newElements fails for types that cannot be part of a message.
func newElements(what, name string, types []reflect.Type) (*elements, error) {
	if len(types) > tuple.MaxElements {
		return nil, fmt.Errorf("it has %d %ss, more than %d: use a struct", len(types), what, tuple.MaxElements)
	}
	e := &elements{types: types, layout: tuple.Layout{What: what}}
	for i, t := range types {
		e.layout.Names = append(e.layout.Names, fmt.Sprintf("%s%d", name, i+1))
		e.layout.Types = append(e.layout.Types, t.String())
		if !isMessage(t) && !exportedOrBuiltin(t) {
			return nil, fmt.Errorf("the type %s is not exported", t)
		}
		if err := tuple.Unfit(t); err != nil {
			return nil, fmt.Errorf("a value of type %s, %s %d, cannot travel as JSON and MessagePack: %w", t, what, i+1, err)
		}
	}
	return e, nil
}

// isMessage reports whether t is a pointer to a protobuf message.
func isMessage(t reflect.Type) bool { return t.Implements(reflect.TypeFor[proto.Message]()) }

func (e *elements) new() *Tuple {
	t := &Tuple{of: e, values: make([]reflect.Value, len(e.types)), pointers: make([]any, len(e.types))}
	for i, typ := range e.types {
		at := reflect.New(typ)
		t.values[i], t.pointers[i] = at.Elem(), at.Interface()
	}
	return t
}

// clear sets all elements to zero.
func (t *Tuple) clear() {
	for _, v := range t.values {
		v.SetZero()
	}
}

// String returns the types with their names, as in Go: "(a int, b int)".
func (e *elements) String() string { return e.layout.String() }

// MarshalJSON returns an array, or an object if the request was one.
func (t *Tuple) MarshalJSON() ([]byte, error) {
	return t.of.layout.AppendJSON(nil, t.object, t.pointers...)
}

// UnmarshalJSON accepts an array with all elements in order, or an object with their names, in
// which missing ones are zero. null is an empty array.
func (t *Tuple) UnmarshalJSON(data []byte) (err error) {
	t.object, err = t.of.layout.DecodeJSON(data, t.pointers...)
	return err
}

// UnmarshalJSONWith is UnmarshalJSON with another JSON for the elements: decode gets the text of an
// element, and a pointer to it or to the protobuf message that it is.
func (t *Tuple) UnmarshalJSONWith(data []byte, decode func(data []byte, v any) error) (err error) {
	t.object, err = t.of.layout.DecodeJSONWith(decode, data, t.pointers...)
	return err
}

// MarshalMsg appends the tuple as MessagePack: an array, or a map if the request was one. A
// protobuf message is a bin with its encoding.
func (t *Tuple) MarshalMsg(b []byte) ([]byte, error) {
	return t.of.layout.AppendMsg(b, t.object, t.pointers...)
}

// UnmarshalMsg decodes the output of MarshalMsg and returns the remaining bytes.
func (t *Tuple) UnmarshalMsg(data []byte) (rest []byte, err error) {
	t.object, rest, err = t.of.layout.DecodeMsg(data, t.pointers...)
	return rest, err
}

// TupleElement describes an element of a [Tuple].
type TupleElement struct {
	// Name is the key of the element in an object; see [Tuple.Name].
	Name string
	// Type is the type of the value.
	Type reflect.Type
}

// describe returns the elements; e may be nil.
func (e *elements) describe() []TupleElement {
	if e == nil {
		return nil
	}
	list := make([]TupleElement, len(e.types))
	for i, t := range e.types {
		list[i] = TupleElement{Name: e.layout.Names[i], Type: t}
	}
	return list
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
			fmt.Fprintf(&b, "%q:", e.layout.Names[i])
		}
		if isMessage(t) {
			t = t.Elem()
		}
		b.Write(shapeOf(t).JSON)
	}
	b.WriteString(end)
	return Shape{Type: e.String(), JSON: json.RawMessage(b.String())}
}
