package protoprint

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// optionLines writes options, each on a line.
func (p *printer) optionLines(options proto.Message, apart bool) {
	list := p.options(options)
	if apart && len(list) > 0 {
		p.line("")
	}
	for _, o := range list {
		p.line("option %s;", o)
	}
}

// inline returns options behind a field, a value or a range.
func (p *printer) inline(options proto.Message, more []string) string {
	list := append(more, p.options(options)...)
	if len(list) == 0 {
		return ""
	}
	return " [" + strings.Join(list, ", ") + "]"
}

// options returns each option as "name = value".
func (p *printer) options(options proto.Message) []string {
	m := p.resolved(options)
	if !m.IsValid() {
		return nil
	}
	var list []string
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(f.Name())
		if f.IsExtension() {
			name = "(." + string(f.FullName()) + ")"
		}
		if f.Name() == "map_entry" || f.Name() == "uninterpreted_option" {
			return true
		}
		if f.IsList() {
			for i := range v.List().Len() {
				list = append(list, name+" = "+p.value(f, v.List().Get(i)))
			}
			return true
		}
		list = append(list, name+" = "+p.value(f, v))
		return true
	})
	// By name only: the values of a repeated option stay in their order.
	slices.SortStableFunc(list, func(a, b string) int {
		a, _, _ = strings.Cut(a, " = ")
		b, _, _ = strings.Cut(b, " = ")
		return strings.Compare(a, b)
	})
	return list
}

func (p *printer) value(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		text, err := prototext.MarshalOptions{AllowPartial: true, Resolver: p.types}.Marshal(v.Message().Interface())
		if err != nil {
			p.err = err
		}
		return "{ " + string(text) + " }"
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
			return string(e.Name())
		}
	case protoreflect.StringKind:
		return quote(v.String())
	case protoreflect.BytesKind:
		return quote(string(v.Bytes()))
	}
	return fmt.Sprint(v.Interface())
}
