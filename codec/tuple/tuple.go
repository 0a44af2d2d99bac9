// Package tuple encodes several values as one message: an array of them, or an object with their
// names, in JSON and MessagePack. The arguments and results of methods with several of them travel
// like that; see docs/calls.md. The code that is generated for such methods uses this package.
package tuple

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

// MaxElements is the maximum number of elements.
const MaxElements = 64

// Layout describes the elements of a tuple. It is safe for concurrent use, and must not be changed
// once it is used.
//
// The methods take pointers to the elements, in order: a *int for an int. An element may be a
// pointer to a protobuf message, which gets a **T here.
type Layout struct {
	What  string   // what an element is called in errors: "argument"
	Names []string // of the elements, no two the same
	Types []string // of the elements, for errors
}

// Message is a tuple with a type of its own, as generated code has them.
type Message interface {
	// Tuple returns the layout and pointers to the elements.
	Tuple() (layout *Layout, elements []any)
}

// The codecs of the elements; each is safe for concurrent use.
var (
	inJSON     = protobuf.NewJSON()
	inMsgpack  = msgpack.New()
	inProtobuf = protobuf.New()
)

// Unfit returns why a value of type t cannot be an element, or nil.
func Unfit(t reflect.Type) error {
	if t.Implements(reflect.TypeFor[proto.Message]()) {
		return nil
	}
	v := reflect.New(t).Interface()
	return errors.Join(inJSON.Unfit(v), inMsgpack.Unfit(v))
}

// String returns the elements as in Go: "(a int, b int)".
func (l *Layout) String() string {
	list := make([]string, len(l.Names))
	for i, name := range l.Names {
		list[i] = name + " " + l.Types[i]
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// messageIn returns the protobuf message that the element is a pointer to, which may be nil, or
// false if the element is something else.
func messageIn(element any) (m proto.Message, null, ok bool) {
	v := reflect.ValueOf(element).Elem()
	if v.Kind() != reflect.Pointer {
		return nil, false, false
	}
	m, ok = v.Interface().(proto.Message)
	return m, v.IsNil(), ok
}

// plain reports whether the element is of a type that is certainly no protobuf message, so that
// reflection is not needed to see it.
func plain(element any) bool {
	switch element.(type) {
	case *int, *int8, *int16, *int32, *int64, *uint, *uint8, *uint16, *uint32, *uint64,
		*string, *bool, *float32, *float64, *[]byte, *[]string, *[]int:
		return true
	}
	return false
}

func (l *Layout) wrong(i int, err error) error {
	return fmt.Errorf("%s %s: %w", l.What, l.Names[i], err)
}

// AppendJSON appends the elements to b as an array, or as an object if object is set.
func (l *Layout) AppendJSON(b []byte, object bool, elements ...any) ([]byte, error) {
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	b = append(b, open)
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		if object {
			b = append(b, fmt.Sprintf("%q:", l.Names[i])...)
		}
		if !plain(e) {
			if m, null, ok := messageIn(e); ok {
				if null {
					b = append(b, "null"...)
					continue
				}
				e = m
			}
		}
		var err error
		if b, err = inJSON.Append(b, e); err != nil {
			return nil, l.wrong(i, err)
		}
	}
	return append(b, end), nil
}

// DecodeJSON decodes an array with all elements in order, or an object with their names, in which
// missing ones are zero. null is an empty array. It reports whether data is an object.
func (l *Layout) DecodeJSON(data []byte, elements ...any) (object bool, err error) {
	return l.DecodeJSONWith(inJSON.Unmarshal, data, elements...)
}

// DecodeJSONWith is DecodeJSON with another JSON for the elements: decode gets the text of an
// element, and a pointer to it or to the protobuf message that it is.
func (l *Layout) DecodeJSONWith(decode func(data []byte, v any) error, data []byte, elements ...any) (object bool, err error) {
	var array []json.RawMessage
	if err := json.Unmarshal(data, &array); err == nil {
		if err := l.checkCount(len(array)); err != nil {
			return false, err
		}
		for i, text := range array {
			if err := l.setJSON(decode, i, text, elements[i]); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return false, fmt.Errorf("want an array or an object with the %ss %s", l.What, l)
	}
	clearAll(elements)
	for name, text := range fields {
		i, err := l.index(name)
		if err == nil {
			err = l.setJSON(decode, i, text, elements[i])
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

func (l *Layout) setJSON(decode func([]byte, any) error, i int, text []byte, element any) error {
	return l.set(i, element, string(text) == "null", func(v any) error { return decode(text, v) })
}

// AppendMsg appends the elements to b as MessagePack: an array, or a map if object is set. A
// protobuf message is a bin with its encoding.
func (l *Layout) AppendMsg(b []byte, object bool, elements ...any) ([]byte, error) {
	n := len(elements)
	switch {
	case object:
		b = append(b, 0xde, 0, byte(n)) // map 16
	case n < 16:
		b = append(b, 0x90|byte(n))
	default:
		b = append(b, 0xdc, 0, byte(n)) // array 16
	}
	for i, e := range elements {
		var err error
		if object {
			if b, err = inMsgpack.Append(b, &l.Names[i]); err != nil {
				return nil, err
			}
		}
		if b, err = appendMsg(b, e); err != nil {
			return nil, l.wrong(i, err)
		}
	}
	return b, nil
}

func appendMsg(b []byte, element any) ([]byte, error) {
	if plain(element) {
		return inMsgpack.Append(b, element)
	}
	m, null, ok := messageIn(element)
	switch {
	case !ok:
		return inMsgpack.Append(b, element)
	case null:
		return append(b, msgpackNil), nil
	}
	text, err := inProtobuf.Append(nil, m)
	if err != nil {
		return nil, err
	}
	return inMsgpack.Append(b, &text)
}

const msgpackNil = 0xc0

// DecodeMsg decodes the output of AppendMsg. It reports whether data begins with a map, and returns
// the bytes after it. data must be valid MessagePack; the codec checks that first.
func (l *Layout) DecodeMsg(data []byte, elements ...any) (object bool, rest []byte, err error) {
	if len(data) == 0 {
		return false, nil, errors.New("there is no value")
	}
	values, keyed, rest, err := msgpack.Elements(data, MaxElements)
	if err != nil {
		return false, nil, fmt.Errorf("the %ss %s: %w", l.What, l, err)
	}
	if !keyed {
		if err := l.checkCount(len(values)); err != nil {
			return false, nil, err
		}
		for i, v := range values {
			if err := l.setMsg(i, v, elements[i]); err != nil {
				return false, nil, err
			}
		}
		return false, rest, nil
	}
	clearAll(elements)
	for at := 0; at < len(values); at += 2 {
		var name string
		if err := inMsgpack.Unmarshal(values[at], &name); err != nil {
			return false, nil, err
		}
		i, err := l.index(name)
		if err == nil {
			err = l.setMsg(i, values[at+1], elements[i])
		}
		if err != nil {
			return false, nil, err
		}
	}
	return true, rest, nil
}

func (l *Layout) setMsg(i int, data []byte, element any) error {
	return l.set(i, element, len(data) == 1 && data[0] == msgpackNil, func(v any) error {
		m, ok := v.(proto.Message)
		if !ok {
			return inMsgpack.Unmarshal(data, v)
		}
		var text []byte
		if err := inMsgpack.Unmarshal(data, &text); err != nil {
			return err
		}
		return inProtobuf.Unmarshal(text, m)
	})
}

// set replaces the element with the value that decode stores through a pointer to it, or with zero
// if null is set.
func (l *Layout) set(i int, element any, null bool, decode func(v any) error) error {
	zero(element)
	if null {
		return nil
	}
	if !plain(element) {
		if _, _, ok := messageIn(element); ok {
			v := reflect.ValueOf(element).Elem()
			v.Set(reflect.New(v.Type().Elem()))
			element = v.Interface()
		}
	}
	if err := decode(element); err != nil {
		return l.wrong(i, err)
	}
	return nil
}

// zero sets the element to its zero value.
func zero(element any) {
	switch e := element.(type) {
	case *int:
		*e = 0
	case *int64:
		*e = 0
	case *string:
		*e = ""
	case *bool:
		*e = false
	case *float64:
		*e = 0
	default:
		reflect.ValueOf(element).Elem().SetZero()
	}
}

func clearAll(elements []any) {
	for _, e := range elements {
		zero(e)
	}
}

// index returns the index of the element with the name.
func (l *Layout) index(name string) (int, error) {
	if i := slices.Index(l.Names, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("there is no %s %q: want %s", l.What, name, l)
}

// checkCount returns an error unless n is the number of elements.
func (l *Layout) checkCount(n int) error {
	if n != len(l.Names) {
		return fmt.Errorf("%d %ss: want %s", n, l.What, l)
	}
	return nil
}

// values are several values in one message: the Tuple of package anser is one.
type values interface {
	Len() int
	At(i int) any
	json.Unmarshaler
}

// Is reports whether a message is several values, or generated code for several.
func Is(message any) bool {
	switch message.(type) {
	case values, Message:
		return true
	}
	return false
}

// Single returns the value of a message that is a tuple with one value, and every other message as
// it is: a protocol whose results are single values sends it so.
func Single(message any) any {
	switch m := message.(type) {
	case values:
		if m.Len() == 1 {
			return m.At(0)
		}
	case Message:
		if _, elements := m.Tuple(); len(elements) == 1 {
			return elements[0]
		}
	}
	return message
}
