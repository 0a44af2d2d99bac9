package anser

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/anser-rpc/anser/codec/tuple"
)

// Shape describes a message in terms of JSON.
type Shape struct {
	// Type is the Go type, "message" with the full name of a protobuf message, "table" with that
	// of a table of FlatBuffers, or, for a method with several arguments or results, the list of
	// them: "(a int, b int)".
	Type string `json:"type"`
	// JSON is a message in which every field has an example value.
	JSON json.RawMessage `json:"json"`
	// Others are the keys of members that JSON leaves out because each excludes one that it
	// contains: the fields of a protobuf oneof after the first one, and those of the members of a
	// union after the first one, at any depth. They are sorted.
	Others []string `json:"others,omitempty"`
}

func shapeOf(t reflect.Type) Shape {
	switch m := reflect.New(t).Interface().(type) {
	case proto.Message:
		return messageShape(m)
	case tuple.Message:
		return tupleShape(m)
	}
	data, err := json.Marshal(example(t, nil))
	if err != nil {
		data = []byte("null")
	}
	return Shape{Type: t.String(), JSON: data}
}

// tupleShape describes a tuple with a type of its own, as an object if it has elements.
func tupleShape(m tuple.Message) Shape {
	layout, elements := m.Tuple()
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		t := reflect.TypeOf(e).Elem()
		if isMessage(t) {
			t = t.Elem()
		}
		fmt.Fprintf(&b, "%q:%s", layout.Names[i], shapeOf(t).JSON)
	}
	b.WriteByte('}')
	if len(elements) == 0 {
		return Shape{Type: layout.String(), JSON: json.RawMessage("[]")}
	}
	return Shape{Type: layout.String(), JSON: json.RawMessage(b.String())}
}

// exampleDepth is the maximum depth of an example. An example also ends where a type contains
// itself.
const exampleDepth = 4

var (
	timeType      = reflect.TypeFor[time.Time]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
)

// example returns a value that encoding/json writes as a message of type t with a zero in every
// field; path holds the types that contain t.
func example(t reflect.Type, path []reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == timeType:
		return "2006-01-02T15:04:05Z"
	case reflect.PointerTo(t).Implements(textType), reflect.PointerTo(t).Implements(marshalerType):
		return ownExample(t)
	case len(path) > exampleDepth || slices.Contains(path, t):
		return nil
	}
	inside := append(slices.Clip(path), t)
	switch t.Kind() {
	case reflect.Struct:
		return exampleStruct(t, inside)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return ""
		}
		return []any{example(t.Elem(), inside)}
	case reflect.Map:
		return map[string]any{"key": example(t.Elem(), inside)}
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Interface:
		return nil
	}
	return 0
}

// ownExample returns the encoding of the zero value of a type that marshals itself, or nil if that
// fails.
func ownExample(t reflect.Type) (value any) {
	defer func() {
		if recover() != nil {
			value = nil
		}
	}()
	data, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return nil
	}
	return json.RawMessage(data)
}

// exampleStruct keeps the order of the fields.
func exampleStruct(t reflect.Type, path []reflect.Type) any {
	var b strings.Builder
	b.WriteByte('{')
	addFields(&b, t, path)
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

func addFields(b *strings.Builder, t reflect.Type, path []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			addFields(b, f.Type, path)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		value, err := json.Marshal(example(f.Type, path))
		if err != nil {
			continue
		}
		key, _ := json.Marshal(name)
		if !strings.HasSuffix(b.String(), "{") {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
}

// messageShape describes a protobuf message.
func messageShape(m proto.Message) Shape {
	s := Shape{Type: "message " + string(m.ProtoReflect().Descriptor().FullName()), JSON: []byte("null")}
	fillMessage(m.ProtoReflect(), nil)
	s.Others = otherKeys(m.ProtoReflect().Descriptor(), nil, nil)
	data, err := protojson.MarshalOptions{EmitUnpopulated: true, AllowPartial: true}.Marshal(m)
	var compact bytes.Buffer // protojson's white space differs between builds
	if err == nil && json.Compact(&compact, data) == nil {
		s.JSON = compact.Bytes()
	}
	return s
}

// otherKeys adds the JSON names of the fields that fillMessage leaves out to keys. path is as in
// fillMessage.
func otherKeys(m protoreflect.MessageDescriptor, path []protoreflect.FullName, keys []string) []string {
	path = append(slices.Clip(path), m.FullName())
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if o := f.ContainingOneof(); o != nil && o.Fields().Get(0).Number() != f.Number() {
			if at, found := slices.BinarySearch(keys, f.JSONName()); !found {
				keys = slices.Insert(keys, at, f.JSONName())
			}
			continue
		}
		if f.IsMap() {
			f = f.MapValue()
		}
		if f.Message() != nil && fillable(f, path) {
			keys = otherKeys(f.Message(), path, keys)
		}
	}
	return keys
}

// fillMessage sets every field of m, and the first field of every oneof. path holds the messages
// that contain m. Scalars without presence are left alone: they always have a value.
func fillMessage(m protoreflect.Message, path []protoreflect.FullName) {
	fields := m.Descriptor().Fields()
	path = append(slices.Clip(path), m.Descriptor().FullName())
	for i := range fields.Len() {
		f := fields.Get(i)
		oneof, element := f.ContainingOneof(), f
		if f.IsMap() {
			element = f.MapValue()
		}
		switch {
		case oneof != nil && oneof.Fields().Get(0).Number() != f.Number(), !fillable(element, path):
		case f.IsMap():
			entries := m.Mutable(f).Map()
			key := f.MapKey().Default().MapKey()
			if f.MapKey().Kind() == protoreflect.StringKind {
				key = protoreflect.ValueOfString("key").MapKey()
			}
			entries.Set(key, filled(entries.NewValue(), element, path))
		case f.IsList():
			list := m.Mutable(f).List()
			list.Append(filled(list.NewElement(), element, path))
		case f.HasPresence():
			m.Set(f, filled(m.NewField(f), element, path))
		}
	}
}

// fillable reports whether a field can have a value worth showing: not a message inside itself, nor
// one of the two types that cannot hold arbitrary values.
func fillable(f protoreflect.FieldDescriptor, path []protoreflect.FullName) bool {
	if f.Message() == nil {
		return true
	}
	name := f.Message().FullName()
	return len(path) <= exampleDepth && !slices.Contains(path, name) &&
		name != "google.protobuf.Any" && name != "google.protobuf.FieldMask"
}

// filled returns v, a new value of the field or of one of its elements, with every field of a
// message set.
func filled(v protoreflect.Value, f protoreflect.FieldDescriptor, path []protoreflect.FullName) protoreflect.Value {
	if f.Message() != nil {
		fillMessage(v.Message(), path)
	}
	return v
}

// None is a message without fields.
type None struct{}
