package protocontract

import (
	"fmt"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser/contract"
)

// scalars are the types of protobuf for those of Go and of kiss-rpc.
var scalars = map[string]descriptorpb.FieldDescriptorProto_Type{
	"bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	"int8": descriptorpb.FieldDescriptorProto_TYPE_INT32, "int16": descriptorpb.FieldDescriptorProto_TYPE_INT32,
	"int32": descriptorpb.FieldDescriptorProto_TYPE_INT32, "rune": descriptorpb.FieldDescriptorProto_TYPE_INT32,
	"int": descriptorpb.FieldDescriptorProto_TYPE_INT64, "int64": descriptorpb.FieldDescriptorProto_TYPE_INT64,
	"byte":  descriptorpb.FieldDescriptorProto_TYPE_UINT32,
	"uint8": descriptorpb.FieldDescriptorProto_TYPE_UINT32, "uint16": descriptorpb.FieldDescriptorProto_TYPE_UINT32,
	"uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32,
	"uint":   descriptorpb.FieldDescriptorProto_TYPE_UINT64, "uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	"uintptr": descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	"float32": descriptorpb.FieldDescriptorProto_TYPE_FLOAT, "float64": descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING, "bytes": descriptorpb.FieldDescriptorProto_TYPE_BYTES,
}

// fields adds the fields of a message.
func (w *fileWriter) fields(s *contract.Schema, m *contract.Message, d *descriptorpb.DescriptorProto) {
	taken := make(map[string]bool)   // names, as far as JSON tells them apart
	keys := make(map[string]bool)    // in JSON
	entries := make(map[string]bool) // names of the messages of maps
	message := w.full(d.GetName())
	for i := range m.Fields {
		f := &m.Fields[i]
		key := f.JSON
		if key == "" {
			key = f.Name
		}
		if keys[key] {
			continue // encoding/json sends neither of two fields with the same key
		}
		keys[key] = true
		number := f.Number
		if number == 0 {
			number = int32(i + 1)
		}
		p := &descriptorpb.FieldDescriptorProto{
			Name:     proto.String(fieldName(f.Name, number, taken)),
			JsonName: proto.String(key),
			Number:   proto.Int32(number),
		}
		w.docs[message.Append(protoName(p.GetName()))] = f.Doc
		if f.Deprecated {
			p.Options = &descriptorpb.FieldOptions{Deprecated: proto.Bool(true)}
		}
		if key := scalars[f.Type.Key]; f.Type.Key != "" && mapKey(key) {
			w.mapField(s, f, p, d, unused(entries, entryName(p.GetName())))
		} else {
			w.setType(s, f, p)
			if p.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL && p.TypeName == nil && f.Presence == contract.Explicit {
				p.Proto3Optional, p.OneofIndex = proto.Bool(true), proto.Int32(int32(len(d.OneofDecl)))
				d.OneofDecl = append(d.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + p.GetName())})
			}
		}
		d.Field = append(d.Field, p)
	}
}

// mapKey reports whether JSON can have keys of the type.
func mapKey(t descriptorpb.FieldDescriptorProto_Type) bool {
	switch t {
	case 0, descriptorpb.FieldDescriptorProto_TYPE_BOOL, descriptorpb.FieldDescriptorProto_TYPE_FLOAT, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		return false
	}
	return true
}

// mapField makes the field a map.
func (w *fileWriter) mapField(s *contract.Schema, f *contract.Field, p *descriptorpb.FieldDescriptorProto, in *descriptorpb.DescriptorProto, entry string) {
	key := &descriptorpb.FieldDescriptorProto{
		Name: proto.String("key"), JsonName: proto.String("key"), Number: proto.Int32(1),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: scalars[f.Type.Key].Enum(),
	}
	value := &descriptorpb.FieldDescriptorProto{Name: proto.String("value"), JsonName: proto.String("value"), Number: proto.Int32(2)}
	of := *f
	of.Type.Key = ""
	w.setType(s, &of, value)
	in.NestedType = append(in.NestedType, &descriptorpb.DescriptorProto{
		Name: proto.String(entry), Field: []*descriptorpb.FieldDescriptorProto{key, value},
		Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
	})
	p.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	p.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	p.TypeName = proto.String("." + string(w.full(in.GetName())) + "." + entry)
}

// setType sets the type and label of a field.
func (w *fileWriter) setType(s *contract.Schema, f *contract.Field, p *descriptorpb.FieldDescriptorProto) {
	list := f.Type.Repeated || f.Type.Length > 0
	p.Label = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
	p.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	scalar, isScalar := scalars[f.Type.Name]
	m := s.Message(f.Type.Of)
	name := ""
	switch {
	case f.Type.Key != "":
		name = w.known(valueType)
	case f.Type.Repeated && (f.Type.Name == "uint8" || f.Type.Name == "byte"): // []byte in Go
		p.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
		return
	case isScalar:
		p.Type = scalar.Enum()
	case f.Type.Name == "time":
		name = w.known(timeType)
	case m != nil && m.Form == contract.ByName:
		name = w.of(s, m)
	case list: // a nil slice is null, which a list of Values cannot be
		p.TypeName = proto.String(w.known(listType))
		return
	default:
		name = w.known(valueType)
	}
	if name != "" {
		p.TypeName = proto.String(name)
	}
	if list {
		p.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
}

// fieldName returns the name of a field in protobuf's style, such as post_type for PostType.
func fieldName(name string, number int32, taken map[string]bool) string {
	snake := snakeCase(name)
	if snake == "" {
		snake = fmt.Sprintf("field_%d", number)
	}
	for {
		same := strings.ReplaceAll(snake, "_", "")
		if !taken[same] {
			taken[same] = true
			return snake
		}
		snake += fmt.Sprintf("_%d", number)
	}
}

// snakeCase returns "" for a name of which nothing is left.
func snakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		upper := 'A' <= r && r <= 'Z'
		switch {
		case upper:
			after := i > 0 && !unicode.IsUpper(runes[i-1]) && runes[i-1] != '_'
			before := i > 0 && i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])
			if (after || before) && b.Len() > 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r + 'a' - 'A')
		case 'a' <= r && r <= 'z', r == '_', '0' <= r && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
		case r == '-' || r == '.' || r == ' ':
			b.WriteByte('_')
		}
	}
	return strings.Trim(b.String(), "_")
}

// camel returns the name of a message, such as StockMove for stock.Move.
func camel(name string) string {
	var b strings.Builder
	upper := true
	for _, r := range name {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		switch {
		case letter && upper:
			b.WriteRune(unicode.ToUpper(r))
			upper = false
		case letter, '0' <= r && r <= '9' && b.Len() > 0, r == '_' && b.Len() > 0:
			b.WriteRune(r)
		default:
			upper = true
		}
	}
	if b.Len() == 0 {
		return "Message"
	}
	return b.String()
}

// entryName returns the name that protobuf demands for the message of a map's entries.
func entryName(field string) string {
	var b strings.Builder
	upper := true
	for _, r := range field {
		switch {
		case r == '_':
			upper = true
		case upper:
			b.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "Entry"
}
