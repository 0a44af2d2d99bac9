package jsonschema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/anser-rpc/anser/contract"
)

// OfContract returns the schema of a message of a contract in JSON, with all schemas that it refers
// to in $defs. Objects of requests have the properties of their message and no others. An
// empty name is that of no message, {}. A message that is a single value, and not an object, is
// wrapped in an object with the property Value.
func OfContract(s *contract.Schema, message string, to Direction) (schema *Schema, wrapped bool, err error) {
	b := &contractBuilder{schema: s, types: NewComponents("#/$defs/"), to: to}
	root := b.message(message)
	if root.Of != nil {
		root = root.Of.Schema
	}
	if !slices.Equal(root.Type, Types{Object}) {
		wrapped = true
		root = &Schema{Type: Types{Object}, Properties: Members{{Value, root}}, Required: []string{Value}}
		b.close(root)
	}
	if err := b.types.Name(); err != nil {
		return nil, false, err
	}
	out := *root
	out.Walk(b.types.SetRef)
	defs := Reachable([]*Schema{&out})
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		out.Defs = append(out.Defs, Member{name, defs[name]})
	}
	return &out, wrapped, nil
}

// Value is the property of a message that is a single value.
const Value = "value"

// contractBuilder makes the schemas of the messages of a contract.
type contractBuilder struct {
	schema *contract.Schema
	types  *Components
	to     Direction
}

// close allows no further properties in an object of a request: a key that is misspelt would be
// ignored.
func (b *contractBuilder) close(s *Schema) {
	if b.to == Request {
		s.AdditionalProperties = &Schema{Not: new(Schema)}
	}
}

func (b *contractBuilder) protobuf() bool { return b.schema.Kind == contract.Protobuf }

func (b *contractBuilder) message(name string) *Schema {
	if make := WellKnown[protoreflect.FullName(name)]; make != nil && b.protobuf() {
		return make()
	}
	m := b.schema.Message(name)
	switch {
	case name == "":
		s := &Schema{Type: Types{Object}}
		b.close(s)
		return s
	case m == nil || m.Form == contract.Opaque || m.Form == contract.OneOf:
		return new(Schema) // a type that encodes itself
	case m.Form == contract.InOrder && !IsTuple(m):
		return b.field(&m.Fields[0])
	}
	return b.types.Ref(name, b.to, name, func() *Schema { return b.object(m) })
}

// IsTuple reports whether a message holds the arguments or the results of a method. Others in the
// form InOrder are single values.
func IsTuple(m *contract.Message) bool {
	return len(m.Fields) != 1 || strings.HasSuffix(m.Name, ".Args") || strings.HasSuffix(m.Name, ".Results")
}

// object returns the schema of a message that is an object with its fields.
func (b *contractBuilder) object(m *contract.Message) *Schema {
	s := &Schema{Type: Types{Object}, Description: m.Doc, Deprecated: m.Deprecated}
	b.close(s)
	choices := make(map[string][]string)
	var order []string
	for i := range m.Fields {
		f := &m.Fields[i]
		name := cmp.Or(f.JSON, f.Name)
		value := b.field(f)
		if f.Doc != "" {
			value.Description = f.Doc
		}
		value.Deprecated = value.Deprecated || f.Deprecated
		s.Properties = append(s.Properties, Member{name, value})
		if f.Presence == contract.Required {
			s.Required = append(s.Required, name)
		}
		if f.OneOf != "" {
			if choices[f.OneOf] == nil {
				order = append(order, f.OneOf)
			}
			choices[f.OneOf] = append(choices[f.OneOf], name)
		}
	}
	for _, name := range order {
		if len(choices[name]) > 1 {
			s.AllOf = append(s.AllOf, AtMostOne(name, choices[name]))
		}
	}
	return s
}

// field returns the schema of the values of a field.
func (b *contractBuilder) field(f *contract.Field) *Schema {
	t := f.Type
	one := b.single(&t)
	switch {
	case t.Key != "":
		return b.maybeNull(&Schema{Type: Types{Object}, PropertyNames: b.key(t.Key), AdditionalProperties: one}, true)
	case t.Length > 0:
		return &Schema{Type: Types{Array}, Items: one, MinItems: Int(int64(t.Length)), MaxItems: Int(int64(t.Length))}
	case t.Repeated:
		return b.maybeNull(&Schema{Type: Types{Array}, Items: one}, true)
	}
	return b.maybeNull(one, f.Presence == contract.Explicit || t.Name == "bytes")
}

// maybeNull allows null for a value that is a nil slice, map or pointer of Go. JSON of protobuf
// takes null for every absent field, and never writes it.
func (b *contractBuilder) maybeNull(s *Schema, may bool) *Schema {
	if !may || b.protobuf() {
		return s
	}
	return Nullable(s)
}

// single returns the schema of one value.
func (b *contractBuilder) single(t *contract.Type) *Schema {
	switch t.Name {
	case "message", "group":
		return b.message(t.Of)
	case "enum":
		return b.enum(t.Of)
	}
	if b.protobuf() {
		k, ok := protoKinds[t.Name]
		if !ok {
			return new(Schema)
		}
		return b.number(ProtoScalar(k))
	}
	switch t.Name {
	case "time":
		return &Schema{Type: Types{String}, Format: "date-time"}
	case "bytes":
		return &Schema{Type: Types{String}, ContentEncoding: "base64"}
	case "byte":
		return GoScalar("uint8")
	case "rune":
		return GoScalar("int32")
	}
	return GoScalar(t.Name)
}

// number lets requests have numbers where protobuf's JSON has strings of digits: both are decoded,
// and models write numbers.
func (b *contractBuilder) number(s *Schema) *Schema {
	if b.to == Reply || s.Format != "int64" && s.Format != "uint64" {
		return s
	}
	return &Schema{AnyOf: []*Schema{{Type: Types{Integer}}, s}}
}

// protoKinds are the scalars of protobuf by their names.
var protoKinds = func() map[string]protoreflect.Kind {
	kinds := make(map[string]protoreflect.Kind)
	for k := protoreflect.DoubleKind; k <= protoreflect.Sint64Kind; k++ {
		kinds[k.String()] = k
	}
	return kinds
}()

// key returns the schema of the keys of a map, or nil for any.
func (b *contractBuilder) key(name string) *Schema {
	if k, ok := protoKinds[name]; ok && b.protobuf() {
		return ProtoKey(k)
	}
	switch {
	case strings.HasPrefix(name, "int"):
		return &Schema{Pattern: "^-?[0-9]+$"}
	case strings.HasPrefix(name, "uint"):
		return &Schema{Pattern: "^[0-9]+$"}
	}
	return nil
}

// enum returns the schema of an enum by its names. A reply can have a number for a value that the
// contract does not name.
func (b *contractBuilder) enum(name string) *Schema {
	e := b.schema.Enum(name)
	switch {
	case e == nil || !b.protobuf():
		return new(Schema)
	case name == "google.protobuf.NullValue":
		return &Schema{Type: Types{Null}}
	}
	named := &Schema{Type: Types{String}}
	var lines []string
	for _, v := range e.Values {
		named.Enum = append(named.Enum, v.Name)
		if v.Doc != "" {
			lines = append(lines, fmt.Sprintf("- %s: %s", v.Name, strings.Join(strings.Fields(v.Doc), " ")))
		}
	}
	about := strings.TrimSpace(e.Doc + "\n\n" + strings.Join(lines, "\n"))
	if e.Closed {
		named.Description = about
		return named
	}
	return &Schema{Description: about, AnyOf: []*Schema{named, {Type: Types{Integer}}}}
}

// AtMostOne returns a schema by which one of the properties of a oneof at most is there.
func AtMostOne(oneof string, properties []string) *Schema {
	one := &Schema{Description: fmt.Sprintf("At most one of the fields of %s.", oneof)}
	none := new(Schema)
	for _, name := range properties {
		has := &Schema{Required: []string{name}}
		one.OneOf = append(one.OneOf, has)
		none.AnyOf = append(none.AnyOf, has)
	}
	one.OneOf = append(one.OneOf, &Schema{Not: none})
	return one
}
