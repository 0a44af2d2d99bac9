// Package gocontract describes Go types as contracts. For types of a program it says the same as
// "anser gen" says of the same types in source code.
package gocontract

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/contract"
)

// Message adds the type of a message, without pointers, and all types inside it to the schema,
// unless they are there, and returns its name.
func Message(s *contract.Schema, t reflect.Type) string {
	return (&reader{schema: s}).message(t)
}

// Tuple adds the message of several arguments or results with their names to the schema.
func Tuple(s *contract.Schema, name string, names []string, types []reflect.Type) {
	r := &reader{schema: s}
	m := contract.Message{Name: name, Form: contract.InOrder}
	for i, t := range types {
		m.Fields = append(m.Fields, contract.Field{Name: names[i], Type: r.typeOf(t)})
	}
	s.Messages = append(s.Messages, m)
}

// reader adds types to a schema, each once.
type reader struct {
	schema *contract.Schema
	inside []reflect.Type // slices, maps and pointers with a name that are being read
}

func (r *reader) message(t reflect.Type) string {
	name := t.String()
	if r.schema.Message(name) != nil {
		return name
	}
	m := contract.Message{Name: name, Form: contract.Opaque}
	place := len(r.schema.Messages)
	r.schema.Messages = append(r.schema.Messages, m)
	switch {
	case encodesItself(t):
	case t.Kind() == reflect.Struct:
		m.Form, m.Fields = contract.ByName, r.fields(t)
	default:
		m.Form, m.Fields = contract.InOrder, []contract.Field{{Name: "value", Type: r.typeOf(t)}}
	}
	r.schema.Messages[place] = m
	return name
}

// fields returns the fields of a struct; those of an embedded one are its own.
func (r *reader) fields(t reflect.Type) []contract.Field {
	var fields []contract.Field
	for i := range t.NumField() {
		f := t.Field(i)
		inMsgpack, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		inJSON, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && f.Type.Kind() == reflect.Struct && inMsgpack == "" && inJSON == "" {
			fields = append(fields, r.fields(f.Type)...)
			continue
		}
		if !f.IsExported() || inMsgpack == "-" && inJSON == "-" {
			continue
		}
		c := contract.Field{Name: f.Name, Type: r.typeOf(f.Type)}
		if inMsgpack != "" && inMsgpack != "-" {
			c.Name = inMsgpack
		}
		if inJSON != "" && inJSON != "-" && inJSON != c.Name {
			c.JSON = inJSON
		} else if inJSON == "" && c.Name != f.Name {
			c.JSON = f.Name
		}
		if f.Type.Kind() == reflect.Pointer || strings.Contains(options, "omitempty") {
			c.Presence = contract.Explicit
		}
		fields = append(fields, c)
	}
	return fields
}

var timeType = reflect.TypeFor[time.Time]()

func (r *reader) typeOf(t reflect.Type) contract.Type {
	if t.Name() != "" && t.Kind() != reflect.Struct {
		if slices.Contains(r.inside, t) { // it contains itself, such as type Tree []Tree
			return contract.Type{Name: t.String()}
		}
		r.inside = append(r.inside, t)
		defer func() { r.inside = r.inside[:len(r.inside)-1] }()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.typeOf(t.Elem())
	case reflect.Interface:
		return contract.Type{Name: "any"}
	case reflect.Struct:
		if t == timeType {
			return contract.Type{Name: "time"}
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
	default:
		if t.Name() == "" || !encodesItself(t) {
			return r.plain(t)
		}
	}
	return contract.Type{Name: "message", Of: r.message(t)}
}

// plain returns the type of a scalar, slice, array or map.
func (r *reader) plain(t reflect.Type) contract.Type {
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
	default:
		return contract.Type{Name: t.Kind().String()}
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return contract.Type{Name: "bytes"}
	}
	inner := r.typeOf(t.Elem())
	nested := inner.Key != "" || inner.Repeated || inner.Length != 0
	switch {
	case nested && t.Kind() == reflect.Slice:
		return contract.Type{Name: t.Elem().String(), Repeated: true}
	case nested:
		return contract.Type{Name: t.String()}
	case t.Kind() == reflect.Slice:
		inner.Repeated = true
	case t.Kind() == reflect.Array:
		inner.Length = t.Len()
	default:
		inner.Key = keyOf(t.Key())
	}
	return inner
}

func keyOf(t reflect.Type) string {
	if t.Kind() == reflect.Struct || t.Kind() == reflect.Interface {
		return t.String()
	}
	return t.Kind().String()
}

// encodesItself reports whether the type decides itself what is sent of it. The names are constants
// since with a variable the linker keeps all exported methods of all types of the program.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	_, msg := p.MethodByName("MarshalMsg")
	_, json := p.MethodByName("MarshalJSON")
	_, text := p.MethodByName("MarshalText")
	_, binary := p.MethodByName("MarshalBinary")
	_, proto := p.MethodByName("ProtoReflect")
	return msg || json || text || binary || proto
}
