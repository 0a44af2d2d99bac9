package openapi

import (
	"encoding"
	"encoding/json"
	"math/big"
	"reflect"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/jsonschema"
)

// hint is what a contract says of a Go type: its message, or nil.
type hint struct {
	schema  *contract.Schema
	message *contract.Message
}

// field returns what the contract says of a field with a name in JSON, and of its type.
func (h hint) field(name string) (*contract.Field, hint) {
	if h.message == nil {
		return nil, hint{}
	}
	for i := range h.message.Fields {
		if f := &h.message.Fields[i]; f.JSON == name || f.JSON == "" && f.Name == name {
			return f, hint{h.schema, h.schema.Message(f.Type.Of)}
		}
	}
	return nil, hint{}
}

var (
	protoType   = reflect.TypeFor[proto.Message]()
	jsonType    = reflect.TypeFor[json.Marshaler]()
	textType    = reflect.TypeFor[encoding.TextMarshaler]()
	numberType  = reflect.TypeFor[json.Number]()
	rawType     = reflect.TypeFor[json.RawMessage]()
	timeType    = reflect.TypeFor[time.Time]()
	elapsedType = reflect.TypeFor[time.Duration]()
	bigType     = reflect.TypeFor[big.Int]()
)

// known are schemas of types that marshal themselves.
var known = map[reflect.Type]func() *Schema{
	timeType:   func() *Schema { return &Schema{Type: jsonschema.Types{jsonschema.String}, Format: "date-time"} },
	bigType:    func() *Schema { return &Schema{Type: jsonschema.Types{jsonschema.Integer}} },
	rawType:    func() *Schema { return new(Schema) },
	numberType: func() *Schema { return &Schema{Type: jsonschema.Types{jsonschema.Number}} },
	elapsedType: func() *Schema {
		return &Schema{Type: jsonschema.Types{jsonschema.Integer}, Format: "int64", Description: "Nanoseconds.", Sample: "1000000000"}
	},
}

// goType returns the schema of a value that encoding/json writes. addressable says that methods of
// a pointer to it are called.
func (b *builder) goType(t reflect.Type, to jsonschema.Direction, addressable bool, h hint) *Schema {
	if t.Kind() == reflect.Pointer {
		return jsonschema.Nullable(b.goType(t.Elem(), to, true, h))
	}
	if make := known[t]; make != nil {
		return make()
	}
	if s := marshaled(t, addressable); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array:
		if t.Name() != "" && t.PkgPath() != "" {
			s := b.types.Ref(typeKey{goType: t}, to, t.String(), func() *Schema { return b.goContainer(t, to, h) })
			if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
				return jsonschema.Nullable(s)
			}
			return s
		}
		s := b.goContainer(t, to, h)
		if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
			return jsonschema.Nullable(s)
		}
		return s
	}
	return jsonschema.GoScalar(t.Kind().String())
}

// marshaled returns the schema of a type that marshals itself, or nil. Of JSON that it writes
// nothing is known.
func marshaled(t reflect.Type, addressable bool) *Schema {
	pointer := reflect.PointerTo(t)
	switch {
	case t.Implements(jsonType), pointer.Implements(jsonType):
		return new(Schema)
	case t.Implements(textType), addressable && pointer.Implements(textType):
		return &Schema{Type: jsonschema.Types{jsonschema.String}, Sample: ownSample(t)}
	case pointer.Implements(textType):
		return new(Schema)
	}
	return nil
}

// ownSample returns the encoding of the zero value of a type that marshals itself, if it has one.
func ownSample(t reflect.Type) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	data, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return ""
	}
	return string(data)
}

// goContainer returns the schema of a struct, map, slice or array itself.
func (b *builder) goContainer(t reflect.Type, to jsonschema.Direction, h hint) *Schema {
	switch t.Kind() {
	case reflect.Map:
		return &Schema{Type: jsonschema.Types{jsonschema.Object}, PropertyNames: goKey(t.Key()), AdditionalProperties: b.goType(t.Elem(), to, false, h)}
	case reflect.Slice:
		if isBytes(t) {
			return &Schema{Type: jsonschema.Types{jsonschema.String}, ContentEncoding: "base64"}
		}
		return &Schema{Type: jsonschema.Types{jsonschema.Array}, Items: b.goType(t.Elem(), to, true, h)}
	case reflect.Array:
		n := jsonschema.Int(int64(t.Len()))
		return &Schema{Type: jsonschema.Types{jsonschema.Array}, Items: b.goType(t.Elem(), to, true, h), MinItems: n, MaxItems: n}
	}
	return b.goStruct(t, to, h)
}

// isBytes reports whether a slice is written as base64.
func isBytes(t reflect.Type) bool {
	e := t.Elem()
	return e.Kind() == reflect.Uint8 && !reflect.PointerTo(e).Implements(jsonType) && !reflect.PointerTo(e).Implements(textType)
}

// goKey returns the schema of the keys of a map, or nil for any.
func goKey(t reflect.Type) *Schema {
	if t.Kind() == reflect.String || t.Implements(textType) {
		return nil
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &Schema{Pattern: "^-?[0-9]+$", Sample: "1"}
	}
	return &Schema{Pattern: "^[0-9]+$", Sample: "1"}
}

func (b *builder) goStruct(t reflect.Type, to jsonschema.Direction, h hint) *Schema {
	s := &Schema{Type: jsonschema.Types{jsonschema.Object}}
	if h.message != nil {
		s.Description, s.Deprecated = h.message.Doc, h.message.Deprecated
	}
	for _, f := range goFields(t) {
		if f.locked && to == jsonschema.Request {
			continue
		}
		about, inner := h.field(f.name)
		value := b.goField(&f, to, inner)
		must := to == jsonschema.Reply && !f.omit && !f.maybe
		if about != nil {
			describe(value, about.Doc, about.Deprecated)
			must = must || about.Presence == contract.Required
		}
		s.Properties = append(s.Properties, jsonschema.Member{Name: f.name, Schema: value})
		if must {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

func (b *builder) goField(f *goField, to jsonschema.Direction, h hint) *Schema {
	t := f.typ
	if f.omit { // it is never null
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	s := b.goType(t, to, true, h)
	if f.omit && len(s.AnyOf) == 2 && len(s.AnyOf[1].Type) == 1 && s.AnyOf[1].Type[0] == jsonschema.Null {
		s = s.AnyOf[0]
	} else if n := len(s.Type); f.omit && n == 2 && s.Type[1] == jsonschema.Null {
		s.Type = s.Type[:1]
	}
	if f.quoted {
		return quoted(t, s)
	}
	return s
}

// quoted returns the schema of a value with the option "string".
func quoted(t reflect.Type, s *Schema) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	q := &Schema{Type: jsonschema.Types{jsonschema.String}, Description: "A value in JSON, in a string."}
	switch t.Kind() {
	case reflect.Bool:
		q.Enum, q.Sample = []string{"true", "false"}, `"true"`
	case reflect.String:
		q.Sample = `"\"string\""`
	case reflect.Float32, reflect.Float64:
		q.Sample = `"1"`
	default:
		q.Pattern, q.Sample = "^-?[0-9]+$", `"1"`
	}
	if n := len(s.Type); n > 1 && s.Type[n-1] == jsonschema.Null {
		return jsonschema.Nullable(q)
	}
	return q
}

// describe adds to the schema of a field what its contract says.
func describe(s *Schema, doc string, deprecated bool) {
	if doc != "" {
		s.Description = doc
	}
	s.Deprecated = s.Deprecated || deprecated
}
