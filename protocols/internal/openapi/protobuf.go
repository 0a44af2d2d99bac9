package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/jsonschema"
)

// docs are the comments of messages and enums, which the descriptors in a program lack.
type docs struct {
	messages map[string]*contract.Message
	enums    map[string]*contract.Enum
}

func (d *docs) add(s *contract.Schema) {
	if s == nil || s.Kind != contract.Protobuf {
		return
	}
	for i := range s.Messages {
		d.messages[s.Messages[i].Name] = &s.Messages[i]
	}
	for i := range s.Enums {
		d.enums[s.Enums[i].Name] = &s.Enums[i]
	}
}

// comment returns the comment of a descriptor whose file was compiled with comments.
func comment(d protoreflect.Descriptor) string {
	return strings.TrimSpace(d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments)
}

// message returns the schema of a message.
func (b *builder) message(d protoreflect.MessageDescriptor, to jsonschema.Direction) *Schema {
	if make := jsonschema.WellKnown[d.FullName()]; make != nil {
		return make()
	}
	return b.types.Ref(typeKey{proto: d.FullName()}, to, string(d.FullName()), func() *Schema { return b.object(d, to) })
}

// object returns the schema of a message that is an object with its fields.
func (b *builder) object(d protoreflect.MessageDescriptor, to jsonschema.Direction) *Schema {
	options, _ := d.Options().(*descriptorpb.MessageOptions)
	about := b.docs.messages[string(d.FullName())]
	s := &Schema{Type: jsonschema.Types{jsonschema.Object}, Description: comment(d), Deprecated: options.GetDeprecated()}
	if about != nil && s.Description == "" {
		s.Description = about.Doc
	}
	for _, f := range fieldsOf(d) {
		value := b.field(f, to)
		doc := comment(f)
		if about != nil && doc == "" {
			for i := range about.Fields {
				if about.Fields[i].Name == string(f.Name()) {
					doc = about.Fields[i].Doc
				}
			}
		}
		options, _ := f.Options().(*descriptorpb.FieldOptions)
		describe(value, doc, options.GetDeprecated())
		behaviour := behaviourOf(f)
		value.ReadOnly, value.WriteOnly = behaviour[outputOnly], behaviour[inputOnly]
		if f.HasDefault() && f.Message() == nil {
			value.Default = defaultOf(f)
		}
		name := f.JSONName()
		if f.IsExtension() {
			name = "[" + string(f.FullName()) + "]"
		}
		s.Properties = append(s.Properties, jsonschema.Member{Name: name, Schema: value})
		// An empty field is left out of a reply, whatever the annotation says.
		if f.Cardinality() == protoreflect.Required || to == jsonschema.Request && behaviour[required] {
			s.Required = append(s.Required, name)
		}
	}
	for i := range d.Oneofs().Len() {
		if o := d.Oneofs().Get(i); !o.IsSynthetic() && o.Fields().Len() > 1 {
			s.AllOf = append(s.AllOf, atMostOne(o))
		}
	}
	return s
}

// fieldsOf returns the fields of a message, and the extensions of proto2 that the program knows:
// the server takes no others.
func fieldsOf(d protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var list, more []protoreflect.FieldDescriptor
	for i := range d.Fields().Len() {
		list = append(list, d.Fields().Get(i))
	}
	if d.ExtensionRanges().Len() > 0 {
		protoregistry.GlobalTypes.RangeExtensionsByMessage(d.FullName(), func(t protoreflect.ExtensionType) bool {
			more = append(more, t.TypeDescriptor())
			return true
		})
		slices.SortFunc(more, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	}
	return append(list, more...)
}

// atMostOne returns a schema by which one field of a oneof at most is there.
func atMostOne(o protoreflect.OneofDescriptor) *Schema {
	var names []string
	for i := range o.Fields().Len() {
		names = append(names, o.Fields().Get(i).JSONName())
	}
	return jsonschema.AtMostOne(string(o.Name()), names)
}

// field returns the schema of the values of a field.
func (b *builder) field(f protoreflect.FieldDescriptor, to jsonschema.Direction) *Schema {
	switch {
	case f.IsMap():
		return &Schema{Type: jsonschema.Types{jsonschema.Object}, PropertyNames: jsonschema.ProtoKey(f.MapKey().Kind()), AdditionalProperties: b.single(f.MapValue(), to)}
	case f.IsList():
		return &Schema{Type: jsonschema.Types{jsonschema.Array}, Items: b.single(f, to)}
	}
	return b.single(f, to)
}

// single returns the schema of one value of a field.
func (b *builder) single(f protoreflect.FieldDescriptor, to jsonschema.Direction) *Schema {
	switch {
	case f.Message() != nil:
		return b.message(f.Message(), to)
	case f.Enum() != nil:
		return b.enum(f.Enum(), to)
	}
	return jsonschema.ProtoScalar(f.Kind())
}

// enum returns the schema of an enum. The names are shown: a server takes numbers too.
func (b *builder) enum(d protoreflect.EnumDescriptor, to jsonschema.Direction) *Schema {
	if d.FullName() == "google.protobuf.NullValue" {
		return &Schema{Type: jsonschema.Types{jsonschema.Null}}
	}
	return b.types.Ref(typeKey{proto: d.FullName()}, to, string(d.FullName()), func() *Schema {
		options, _ := d.Options().(*descriptorpb.EnumOptions)
		s := &Schema{Type: jsonschema.Types{jsonschema.String}, Description: comment(d), Deprecated: options.GetDeprecated()}
		about := b.docs.enums[string(d.FullName())]
		if about != nil && s.Description == "" {
			s.Description = about.Doc
		}
		var lines []string
		for i := range d.Values().Len() {
			v := d.Values().Get(i)
			s.Enum = append(s.Enum, string(v.Name()))
			doc := comment(v)
			if about != nil && doc == "" && i < len(about.Values) && about.Values[i].Name == string(v.Name()) {
				doc = about.Values[i].Doc
			}
			if doc != "" {
				lines = append(lines, fmt.Sprintf("- %s: %s", v.Name(), strings.Join(strings.Fields(doc), " ")))
			}
		}
		s.Description = strings.TrimSpace(s.Description + "\n\n" + strings.Join(lines, "\n"))
		if n := min(1, len(s.Enum)-1); n >= 0 { // the first one means often that there is none
			s.Sample = fmt.Sprintf("%q", s.Enum[n])
		}
		return s
	})
}

// defaultOf returns the default of a field in JSON, or nil.
func defaultOf(f protoreflect.FieldDescriptor) json.RawMessage {
	v := f.Default().Interface()
	switch f.Kind() {
	case protoreflect.EnumKind:
		v = string(f.DefaultEnumValue().Name())
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		v = fmt.Sprint(v)
	}
	data, err := json.Marshal(v)
	if err != nil { // NaN and the infinities
		return nil
	}
	return data
}

// The values of google.api.FieldBehavior that a schema can say, and its extension of FieldOptions.
const (
	required   = 2
	outputOnly = 3
	inputOnly  = 4

	fieldBehaviour = 1052
)

// behaviourOf returns the annotation google.api.field_behavior of a field. It is read from the
// encoded options, since a program need not know the extension.
func behaviourOf(f protoreflect.FieldDescriptor) map[uint64]bool {
	data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(f.Options())
	if err != nil {
		return nil
	}
	var found map[uint64]bool
	add := func(v uint64) {
		if found == nil {
			found = make(map[uint64]bool)
		}
		found[v] = true
	}
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return found
		}
		value := data[size:]
		rest := protowire.ConsumeFieldValue(n, kind, value)
		if rest < 0 {
			return found
		}
		data = value[rest:]
		switch {
		case n != fieldBehaviour:
		case kind == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(value)
			add(v)
		case kind == protowire.BytesType:
			packed, _ := protowire.ConsumeBytes(value)
			for len(packed) > 0 {
				v, size := protowire.ConsumeVarint(packed)
				if size < 0 {
					break
				}
				add(v)
				packed = packed[size:]
			}
		}
	}
	return found
}
