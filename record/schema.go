package record

import (
	"reflect"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// schema says which fields of a type are secret, by their keys in JSON. A nil schema knows none. A
// schema is not changed after it was made.
type schema struct {
	fields map[string]fieldSchema
	elem   *schema // of the elements of an array, and of the values of a map
}

// fieldSchema is a field of a type.
type fieldSchema struct {
	secret bool
	of     *schema
}

func (s *schema) secretField(name string) bool { return s != nil && s.fields[name].secret }

func (s *schema) field(name string) *schema {
	if s == nil {
		return nil
	}
	if f, ok := s.fields[name]; ok {
		return f.of
	}
	return s.elem
}

func (s *schema) element() *schema {
	if s == nil {
		return nil
	}
	return s.elem
}

// schemaOf returns the schema of a message's type.
func (r *Recorder) schemaOf(message any) *schema {
	var key any
	var descriptor protoreflect.MessageDescriptor
	if m, ok := message.(proto.Message); ok && !isNil(message) {
		descriptor = m.ProtoReflect().Descriptor()
		key = descriptor
	} else {
		key = reflect.TypeOf(message)
	}
	if known, ok := r.methods.Load(key); ok {
		return known.(*schema)
	}
	var s *schema
	if descriptor != nil {
		s = protoSchemas{}.message(descriptor)
	} else if t := reflect.TypeOf(message); t != nil {
		s = goSchemas{}.of(t)
	}
	known, _ := r.methods.LoadOrStore(key, s)
	return known.(*schema)
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// protoSchemas makes schemas of protobuf messages; those of one call refer to each other.
type protoSchemas map[protoreflect.FullName]*schema

func (p protoSchemas) message(d protoreflect.MessageDescriptor) *schema {
	if s, ok := p[d.FullName()]; ok {
		return s
	}
	s := &schema{fields: make(map[string]fieldSchema)}
	p[d.FullName()] = s
	list := d.Fields()
	for i := range list.Len() {
		fd := list.Get(i)
		var f fieldSchema
		if o, ok := fd.Options().(*descriptorpb.FieldOptions); ok {
			f.secret = o.GetDebugRedact()
		}
		switch {
		case fd.IsMap():
			if v := fd.MapValue(); v.Message() != nil {
				f.of = &schema{elem: p.message(v.Message())}
			}
		case fd.Message() != nil && fd.IsList():
			f.of = &schema{elem: p.message(fd.Message())}
		case fd.Message() != nil:
			f.of = p.message(fd.Message())
		}
		s.fields[fd.JSONName()], s.fields[fd.TextName()] = f, f
	}
	return s
}

// goSchemas makes schemas of Go types; those of one call refer to each other.
type goSchemas map[reflect.Type]*schema

// maxPointers bounds how often a pointer is followed: a type of Go may be a pointer to itself.
const maxPointers = 8

// secretTag is the value of the tag "anser" of secret fields.
const secretTag = "secret"

func (g goSchemas) of(t reflect.Type) *schema {
	for range maxPointers {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	if s, ok := g[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		s := new(schema)
		g[t] = s
		s.elem = g.of(t.Elem())
		return s
	case reflect.Struct:
		s := &schema{fields: make(map[string]fieldSchema)}
		g[t] = s
		g.add(s, t)
		return s
	}
	return nil
}

// add adds the fields of a struct.
func (g goSchemas) add(s *schema, t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		secret := f.Tag.Get("anser") == secretTag
		if f.Anonymous && name == "" {
			in := f.Type
			if in.Kind() == reflect.Pointer {
				in = in.Elem()
			}
			if in.Kind() == reflect.Struct && !secret {
				if inner := g.of(in); inner != nil {
					for k, v := range inner.fields {
						if _, own := s.fields[k]; !own {
							s.fields[k] = v
						}
					}
				}
				continue
			}
		}
		if name == "" {
			name = f.Name
		}
		s.fields[name] = fieldSchema{secret: secret, of: g.of(f.Type)}
	}
}
