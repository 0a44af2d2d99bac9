// Package protocontract describes protobuf services as contracts.
package protocontract

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser/contract"
)

// FromFiles returns the schema of protobuf files: all their services, messages and enums, and
// those of other files that they use. Comments and positions are there if the files were compiled
// with them; those linked into a program have neither.
func FromFiles(files ...protoreflect.FileDescriptor) *contract.Schema {
	r := &protoReader{schema: &contract.Schema{Kind: contract.Protobuf}, seen: map[protoreflect.FullName]bool{}}
	for _, f := range files {
		for i := range f.Messages().Len() {
			r.message(f.Messages().Get(i))
		}
		for i := range f.Enums().Len() {
			r.enum(f.Enums().Get(i))
		}
		for i := range f.Services().Len() {
			r.service(f.Services().Get(i))
		}
	}
	return r.schema
}

// FromService returns the schema of a protobuf service and of all that it uses.
func FromService(d protoreflect.ServiceDescriptor) *contract.Schema {
	r := &protoReader{schema: &contract.Schema{Kind: contract.Protobuf}, seen: map[protoreflect.FullName]bool{}}
	r.service(d)
	return r.schema
}

// protoReader adds descriptors to a schema, each once.
type protoReader struct {
	schema *contract.Schema
	seen   map[protoreflect.FullName]bool
}

func (r *protoReader) service(d protoreflect.ServiceDescriptor) {
	options, _ := d.Options().(*descriptorpb.ServiceOptions)
	s := contract.Service{Name: string(d.FullName()), Doc: protoDoc(d), At: protoPosition(d), Deprecated: options.GetDeprecated()}
	for i := range d.Methods().Len() {
		m := d.Methods().Get(i)
		options, _ := m.Options().(*descriptorpb.MethodOptions)
		s.Methods = append(s.Methods, contract.Method{
			Name:         string(m.Name()),
			Doc:          protoDoc(m),
			At:           protoPosition(m),
			Request:      string(m.Input().FullName()),
			Reply:        string(m.Output().FullName()),
			ClientStream: m.IsStreamingClient(),
			ServerStream: m.IsStreamingServer(),
			Oneway:       Oneway(m),
			Idempotent:   !m.IsStreamingClient() && !m.IsStreamingServer() && options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN,
			Deprecated:   options.GetDeprecated(),
		})
		r.message(m.Input())
		r.message(m.Output())
	}
	r.schema.Services = append(r.schema.Services, s)
}

// OnewayOption is the number of the extension of google.protobuf.MethodOptions that makes a method
// oneway; see anser/options.proto, which "anser gen" finds without an import path.
const OnewayOption = 51974

// Oneway reports whether the method has the option (anser.oneway). It is read from the
// encoded options too, since a program need not know the extension.
func Oneway(m protoreflect.MethodDescriptor) bool {
	options := m.Options().ProtoReflect()
	found := false
	options.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.IsExtension() && f.Number() == OnewayOption && f.Kind() == protoreflect.BoolKind {
			found = v.Bool()
			return false
		}
		return true
	})
	for b := options.GetUnknown(); len(b) > 0; {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		if number == OnewayOption && wireType == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(b[n:])
			found = v != 0
		}
		size := protowire.ConsumeFieldValue(number, wireType, b[n:])
		if size < 0 {
			break
		}
		b = b[n+size:]
	}
	return found
}

// message adds the message, its fields, and all types inside it.
func (r *protoReader) message(d protoreflect.MessageDescriptor) {
	if r.seen[d.FullName()] {
		return
	}
	r.seen[d.FullName()] = true
	options, _ := d.Options().(*descriptorpb.MessageOptions)
	m := contract.Message{Name: string(d.FullName()), Doc: protoDoc(d), At: protoPosition(d), Deprecated: options.GetDeprecated()}
	for i := range d.ReservedRanges().Len() {
		pair := d.ReservedRanges().Get(i)
		m.Reserved = append(m.Reserved, contract.Range{From: int32(pair[0]), To: int32(pair[1] - 1)})
	}
	for i := range d.ExtensionRanges().Len() {
		pair := d.ExtensionRanges().Get(i)
		m.Extensions = append(m.Extensions, contract.Range{From: int32(pair[0]), To: int32(pair[1] - 1)})
	}
	for i := range d.ReservedNames().Len() {
		m.Retired = append(m.Retired, string(d.ReservedNames().Get(i)))
	}
	place := len(r.schema.Messages)
	r.schema.Messages = append(r.schema.Messages, m)
	for i := range d.Fields().Len() {
		m.Fields = append(m.Fields, r.field(d.Fields().Get(i)))
	}
	r.schema.Messages[place] = m
	for i := range d.Messages().Len() {
		if inner := d.Messages().Get(i); !inner.IsMapEntry() {
			r.message(inner)
		}
	}
	for i := range d.Enums().Len() {
		r.enum(d.Enums().Get(i))
	}
}

func (r *protoReader) field(d protoreflect.FieldDescriptor) contract.Field {
	options, _ := d.Options().(*descriptorpb.FieldOptions)
	f := contract.Field{
		Name: string(d.Name()), Doc: protoDoc(d), At: protoPosition(d), Number: int32(d.Number()),
		Deprecated: options.GetDeprecated(), Packed: d.IsPacked(),
	}
	if d.JSONName() != f.Name {
		f.JSON = d.JSONName()
	}
	value := d
	if d.IsMap() {
		f.Type.Key = d.MapKey().Kind().String()
		value = d.MapValue()
	} else if d.IsList() {
		f.Type.Repeated = true
	}
	f.Type.Name = value.Kind().String()
	switch value.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		f.Type.Of = string(value.Message().FullName())
		r.message(value.Message())
	case protoreflect.EnumKind:
		f.Type.Of = string(value.Enum().FullName())
		r.enum(value.Enum())
	}
	switch {
	case d.Cardinality() == protoreflect.Required:
		f.Presence = contract.Required
	case d.HasPresence() && d.ContainingOneof() == nil && value.Message() == nil,
		d.HasOptionalKeyword():
		f.Presence = contract.Explicit
	}
	if o := d.ContainingOneof(); o != nil && !o.IsSynthetic() {
		f.OneOf = string(o.Name())
	}
	if d.HasDefault() {
		f.Default = fmt.Sprint(d.Default().Interface())
		if v := d.DefaultEnumValue(); v != nil {
			f.Default = string(v.Name())
		}
	}
	return f
}

func (r *protoReader) enum(d protoreflect.EnumDescriptor) {
	if r.seen[d.FullName()] {
		return
	}
	r.seen[d.FullName()] = true
	e := contract.Enum{Name: string(d.FullName()), Doc: protoDoc(d), At: protoPosition(d), Closed: d.IsClosed()}
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		options, _ := v.Options().(*descriptorpb.EnumValueOptions)
		e.Values = append(e.Values, contract.EnumValue{Name: string(v.Name()), Number: int64(v.Number()), Doc: protoDoc(v), At: protoPosition(v), Deprecated: options.GetDeprecated()})
	}
	for i := range d.ReservedRanges().Len() {
		pair := d.ReservedRanges().Get(i)
		e.Reserved = append(e.Reserved, contract.Range{From: int32(pair[0]), To: int32(pair[1])})
	}
	for i := range d.ReservedNames().Len() {
		e.Retired = append(e.Retired, string(d.ReservedNames().Get(i)))
	}
	r.schema.Enums = append(r.schema.Enums, e)
}

// protoDoc returns the comment of a declaration, with neither the space after its slashes nor empty
// lines at its ends.
func protoDoc(d protoreflect.Descriptor) string {
	if strings.HasPrefix(d.ParentFile().Path(), "google/protobuf/") { // known to all readers
		return ""
	}
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	text := at.LeadingComments
	if text == "" {
		text = at.TrailingComments
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, " "), " \t\r")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

func protoPosition(d protoreflect.Descriptor) contract.Position {
	file := d.ParentFile()
	at := file.SourceLocations().ByDescriptor(d)
	p := contract.Position{File: file.Path()}
	if at.Path != nil {
		p.Line, p.Column = at.StartLine+1, at.StartColumn+1
	}
	return p
}

// Source returns the source of a contract whose services are in the file: the JSON text of the
// schema, with the descriptors of the file. Generated code uses it. The file is set when packages
// are initialized, after their variables, so a pointer is taken.
func Source(text string, file *protoreflect.FileDescriptor) *contract.Source {
	return contract.NewSource(text).WithDescriptors(func() []byte { return Descriptors(*file) })
}

// Descriptors returns a google.protobuf.FileDescriptorSet with the file and all that it imports,
// each after its imports. It returns nil if they cannot be encoded.
func Descriptors(file protoreflect.FileDescriptor) []byte {
	set := new(descriptorpb.FileDescriptorSet)
	addFiles(set, file, make(map[string]bool))
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return nil
	}
	return out
}

func addFiles(set *descriptorpb.FileDescriptorSet, f protoreflect.FileDescriptor, seen map[string]bool) {
	if seen[f.Path()] || f.IsPlaceholder() {
		return
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		addFiles(set, f.Imports().Get(i).FileDescriptor, seen)
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
}
