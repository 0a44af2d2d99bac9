package record

import (
	"reflect"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// schema says which fields of a type are secret, by their keys in JSON. A nil schema knows none. A
// schema is not changed after it was made.
type schema struct {
	fields map[string]fieldSchema
	elem   *schema // of the elements of an array, and of the values of a map
	packed bool    // it is that of google.protobuf.Any: the value names its own type
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

// schemaOf returns the schema of a message.
func (r *Recorder) schemaOf(message any) (*schema, error) {
	if m, ok := message.(proto.Message); ok && !isNil(message) {
		return r.protoSchema(m.ProtoReflect().Descriptor()), nil
	}
	t := reflect.TypeOf(message)
	if t == nil {
		return nil, nil
	}
	if known, ok := r.methods.Load(t); ok && known != openType {
		return known.(*schema), nil
	} else if ok {
		return schemaOfValue(reflect.ValueOf(message))
	}
	types := newGoSchemas()
	s := types.of(t)
	if types.open == nil {
		known, _ := r.methods.LoadOrStore(t, s)
		return known.(*schema), nil
	}
	r.methods.Store(t, openType)
	return schemaOfValue(reflect.ValueOf(message))
}

// protoSchema returns the schema of a type of protobuf.
func (r *Recorder) protoSchema(d protoreflect.MessageDescriptor) *schema {
	if known, ok := r.methods.Load(d); ok {
		return known.(*schema)
	}
	known, _ := r.methods.LoadOrStore(d, protoSchemas{}.message(d))
	return known.(*schema)
}

// packedSchema returns the schema of a message in a google.protobuf.Any, or nil.
func (r *Recorder) packedSchema(url string) *schema {
	t, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil {
		return nil
	}
	return r.protoSchema(t.Descriptor())
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
	s := &schema{fields: make(map[string]fieldSchema), packed: d.FullName() == anyName}
	p[d.FullName()] = s
	list := d.Fields()
	for i := range list.Len() {
		fd := list.Get(i)
		f := p.field(fd)
		s.fields[fd.JSONName()], s.fields[fd.TextName()] = f, f
	}
	protoregistry.GlobalTypes.RangeExtensionsByMessage(d.FullName(), func(x protoreflect.ExtensionType) bool {
		fd := x.TypeDescriptor()
		s.fields["["+string(fd.FullName())+"]"] = p.field(fd)
		return true
	})
	return s
}

// anyName is the name of the messages that have others in them.
const anyName = "google.protobuf.Any"

// field returns the schema of a field.
func (p protoSchemas) field(fd protoreflect.FieldDescriptor) (f fieldSchema) {
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
	return f
}

// goSchemas makes schemas of Go types, which refer to each other.
type goSchemas struct {
	known map[reflect.Type]*schema
	// The schema of all values in interfaces, or nil if the types have none; see schemaOfValue.
	open *schema
}

func newGoSchemas() *goSchemas { return &goSchemas{known: make(map[reflect.Type]*schema)} }

// maxPointers bounds how often a pointer is followed: a type of Go may be a pointer to itself.
const maxPointers = 8

// secretTag is the value of the tag "anser" of secret fields.
const secretTag = "secret"

func (g *goSchemas) of(t reflect.Type) *schema {
	for range maxPointers {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	if s, ok := g.known[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		s := new(schema)
		g.known[t] = s
		s.elem = g.of(t.Elem())
		return s
	case reflect.Struct:
		s := &schema{fields: make(map[string]fieldSchema)}
		g.known[t] = s
		g.add(s, t)
		return s
	case reflect.Interface:
		if g.open == nil {
			g.open = new(schema)
		}
		return g.open
	}
	return nil
}

// add adds the fields of a struct.
func (g *goSchemas) add(s *schema, t reflect.Type) {
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
