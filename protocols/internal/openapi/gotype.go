package openapi

import (
	"encoding"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/contract"
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
	timeType:   func() *Schema { return &Schema{Type: types{tString}, Format: "date-time"} },
	bigType:    func() *Schema { return &Schema{Type: types{tInteger}} },
	rawType:    func() *Schema { return new(Schema) },
	numberType: func() *Schema { return &Schema{Type: types{tNumber}} },
	elapsedType: func() *Schema {
		return &Schema{Type: types{tInteger}, Format: "int64", Description: "Nanoseconds.", sample: "1000000000"}
	},
}

// goType returns the schema of a value that encoding/json writes. addressable says that methods of a
// pointer to it are called.
func (b *builder) goType(t reflect.Type, to direction, addressable bool, h hint) *Schema {
	if t.Kind() == reflect.Pointer {
		return nullable(b.goType(t.Elem(), to, true, h))
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
			s := b.types.ref(typeKey{goType: t}, to, t.String(), func() *Schema { return b.goContainer(t, to, h) })
			if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
				return nullable(s)
			}
			return s
		}
		s := b.goContainer(t, to, h)
		if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
			return nullable(s)
		}
		return s
	}
	return goScalar(t)
}

// marshaled returns the schema of a type that marshals itself, or nil. Of JSON that it writes
// nothing is known.
func marshaled(t reflect.Type, addressable bool) *Schema {
	pointer := reflect.PointerTo(t)
	switch {
	case t.Implements(jsonType), pointer.Implements(jsonType):
		return new(Schema)
	case t.Implements(textType), addressable && pointer.Implements(textType):
		return &Schema{Type: types{tString}, sample: ownSample(t)}
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

func goScalar(t reflect.Type) *Schema {
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: types{tBoolean}}
	case reflect.String:
		return &Schema{Type: types{tString}}
	case reflect.Float32:
		return &Schema{Type: types{tNumber}, Format: "float"}
	case reflect.Float64:
		return &Schema{Type: types{tNumber}, Format: "double"}
	case reflect.Int, reflect.Int64:
		return &Schema{Type: types{tInteger}, Format: "int64"}
	case reflect.Int32:
		return &Schema{Type: types{tInteger}, Format: "int32", Minimum: "-2147483648", Maximum: "2147483647"}
	case reflect.Int8, reflect.Int16:
		most := int64(1)<<(t.Bits()-1) - 1
		return &Schema{Type: types{tInteger}, Minimum: number(-most - 1), Maximum: number(most)}
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return &Schema{Type: types{tInteger}, Minimum: "0"}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return &Schema{Type: types{tInteger}, Minimum: "0", Maximum: number(int64(1)<<t.Bits() - 1)}
	}
	return new(Schema) // an interface
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// goContainer returns the schema of a struct, map, slice or array itself.
func (b *builder) goContainer(t reflect.Type, to direction, h hint) *Schema {
	switch t.Kind() {
	case reflect.Map:
		return &Schema{Type: types{tObject}, PropertyNames: goKey(t.Key()), AdditionalProperties: b.goType(t.Elem(), to, false, h)}
	case reflect.Slice:
		if isBytes(t) {
			return &Schema{Type: types{tString}, ContentEncoding: "base64"}
		}
		return &Schema{Type: types{tArray}, Items: b.goType(t.Elem(), to, true, h)}
	case reflect.Array:
		n := number(int64(t.Len()))
		return &Schema{Type: types{tArray}, Items: b.goType(t.Elem(), to, true, h), MinItems: n, MaxItems: n}
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
		return &Schema{Pattern: "^-?[0-9]+$", sample: "1"}
	}
	return &Schema{Pattern: "^[0-9]+$", sample: "1"}
}

func (b *builder) goStruct(t reflect.Type, to direction, h hint) *Schema {
	s := &Schema{Type: types{tObject}}
	if h.message != nil {
		s.Description, s.Deprecated = h.message.Doc, h.message.Deprecated
	}
	for _, f := range goFields(t) {
		if f.locked && to == request {
			continue
		}
		about, inner := h.field(f.name)
		value := b.goField(&f, to, inner)
		must := to == reply && !f.omit && !f.maybe
		if about != nil {
			describe(value, about.Doc, about.Deprecated)
			must = must || about.Presence == contract.Required
		}
		s.Properties = append(s.Properties, member{f.name, value})
		if must {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

func (b *builder) goField(f *goField, to direction, h hint) *Schema {
	t := f.typ
	if f.omit { // it is never null
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	s := b.goType(t, to, true, h)
	if f.omit && len(s.AnyOf) == 2 && len(s.AnyOf[1].Type) == 1 && s.AnyOf[1].Type[0] == tNull {
		s = s.AnyOf[0]
	} else if n := len(s.Type); f.omit && n == 2 && s.Type[1] == tNull {
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
	q := &Schema{Type: types{tString}, Description: "A value in JSON, in a string."}
	switch t.Kind() {
	case reflect.Bool:
		q.Enum, q.sample = []string{"true", "false"}, `"true"`
	case reflect.String:
		q.sample = `"\"string\""`
	case reflect.Float32, reflect.Float64:
		q.sample = `"1"`
	default:
		q.Pattern, q.sample = "^-?[0-9]+$", `"1"`
	}
	if n := len(s.Type); n > 1 && s.Type[n-1] == tNull {
		return nullable(q)
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
