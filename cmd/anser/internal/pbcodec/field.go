package pbcodec

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/gofeaturespb"
)

// presence says how a singular field that is not in a oneof records that it is set.
type presence uint8

const (
	implicit  presence = iota // it is not zero
	byPointer                 // it is a pointer to the value, or a message
	byNil                     // it is a byte slice and not nil
	byBit                     // its bit in XXX_presence
)

// field is a field with what the generated code needs to know.
type field struct {
	*protogen.Field
	number   int
	tag      uint32 // as it is encoded
	expr     string // the field of the struct
	goType   string // of a single value
	kind     protoreflect.Kind
	presence presence
	pointer  bool   // a scalar behind a pointer
	bit      int    // of byBit
	wrapper  string // the type in a oneof
	utf8     bool
}

func isOpaque(m *protogen.Message) bool { return m.APILevel == gofeaturespb.GoFeatures_API_OPAQUE }

// fields returns the fields of m in the order in which the standard library encodes them: by
// number, and those in oneofs last.
func (g *generator) fields(m *protogen.Message) []*field {
	list := make([]*field, 0, len(m.Fields))
	for _, f := range m.Fields {
		list = append(list, g.field(f))
	}
	slices.SortStableFunc(list, func(a, b *field) int {
		ai, bi := a.oneofIndex(), b.oneofIndex()
		if ai != bi {
			return ai - bi
		}
		return a.number - b.number
	})
	return list
}

func (f *field) inOneof() bool { return f.Oneof != nil && !f.Oneof.Desc.IsSynthetic() }

func (f *field) oneofIndex() int {
	if f.inOneof() {
		return f.Oneof.Desc.Index()
	}
	return -1
}

func (g *generator) field(p *protogen.Field) *field {
	f := &field{
		Field:  p,
		number: int(p.Desc.Number()),
		kind:   p.Desc.Kind(),
		expr:   "x." + p.GoName,
		utf8:   mustBeUTF8(p.Desc),
	}
	f.tag = tag(f.number, wireType(f.kind))
	if p.Desc.IsPacked() {
		f.tag = tag(f.number, protowire.BytesType)
	}
	f.goType = g.goType(p)
	opaque := isOpaque(p.Parent)
	hidden := ""
	if opaque {
		hidden = "xxx_hidden_"
		f.expr = "x." + hidden + p.GoName
	}
	switch {
	case f.inOneof():
		f.expr = "x." + hidden + p.Oneof.GoName
		f.wrapper = wrapperType(p, opaque)
	case p.Desc.IsMap(), p.Desc.IsList() && p.Message == nil:
	case p.Desc.IsList():
		if opaque {
			f.expr = "(*" + f.expr + ")"
		}
	case p.Message != nil:
		f.presence = byPointer
	case opaque && p.Desc.HasPresence():
		f.presence, f.bit = byBit, presenceBit(p)
		f.pointer = f.kind == protoreflect.StringKind
	case p.Desc.HasPresence() && f.kind == protoreflect.BytesKind:
		f.presence = byNil
	case p.Desc.HasPresence():
		f.presence, f.pointer = byPointer, true
	}
	return f
}

// wrapperType is opaqueFieldOneofType of protoc-gen-go.
func wrapperType(f *protogen.Field, opaque bool) string {
	name := f.Parent.GoIdent.GoName + "_" + f.GoName
	for slices.ContainsFunc(f.Parent.Messages, func(m *protogen.Message) bool { return m.GoIdent.GoName == name }) ||
		slices.ContainsFunc(f.Parent.Enums, func(e *protogen.Enum) bool { return e.GoIdent.GoName == name }) {
		name += "_"
	}
	if !opaque {
		return name
	}
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[n:]
}

// presenceBit is opaqueFieldPresenceIndex of protoc-gen-go: the index of the struct's field, where
// a oneof is one field.
func presenceBit(f *protogen.Field) int {
	index := 0
	for _, other := range f.Parent.Fields {
		if other == f {
			break
		}
		if o := other.Oneof; o == nil || other == o.Fields[len(o.Fields)-1] {
			index++
		}
	}
	return index
}

// presenceBits returns the size of a message's presence bitmap.
func presenceBits(m *protogen.Message) int { return presenceBit(m.Fields[len(m.Fields)-1]) + 1 }

// mustBeUTF8 follows the standard library.
func mustBeUTF8(f protoreflect.FieldDescriptor) bool {
	if f.Kind() != protoreflect.StringKind {
		return false
	}
	switch f.ParentFile().Syntax() {
	case protoreflect.Proto2:
		return false
	case protoreflect.Editions:
		if f, ok := f.(interface{ EnforceUTF8() bool }); ok {
			return f.EnforceUTF8()
		}
	}
	return true
}

func (g *generator) goType(f *protogen.Field) string {
	switch f.Desc.Kind() {
	case protoreflect.BoolKind:
		return "bool"
	case protoreflect.EnumKind:
		return g.QualifiedGoIdent(f.Enum.GoIdent)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return "int32"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return "uint32"
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return "int64"
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return "uint64"
	case protoreflect.FloatKind:
		return "float32"
	case protoreflect.DoubleKind:
		return "float64"
	case protoreflect.StringKind:
		return "string"
	case protoreflect.BytesKind:
		return "[]byte"
	}
	return g.QualifiedGoIdent(f.Message.GoIdent)
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return protowire.VarintType
}

func tag(number int, t protowire.Type) uint32 { return uint32(number)<<3 | uint32(t) }

// tagBytes returns the encoded tag as Go constants: "0xd0, 0x5".
func tagBytes(tag uint32) string {
	var list []string
	for _, c := range protowire.AppendVarint(nil, uint64(tag)) {
		list = append(list, fmt.Sprintf("%#x", c))
	}
	return strings.Join(list, ", ")
}

// packable reports whether a repeated field may be packed.
func (f *field) packable() bool {
	switch wireType(f.kind) {
	case protowire.BytesType, protowire.StartGroupType:
		return false
	}
	return f.Desc.IsList()
}

// slabbed reports whether the value is in the message's slab.
func (f *field) slabbed() bool {
	return f.pointer && !f.inOneof() && f.Desc.Cardinality() != protoreflect.Repeated
}
