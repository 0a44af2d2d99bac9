package protoprint

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func (p *printer) message(head string, m protoreflect.MessageDescriptor) {
	p.block(head, " {}", func() {
		p.optionLines(m.Options(), false)
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			switch o := f.ContainingOneof(); {
			case o == nil || o.IsSynthetic():
				p.field(f)
			case o.Fields().Get(0) == f:
				p.oneof(o)
			}
		}
		p.reserved(m.ReservedRanges(), m.ReservedNames())
		for i := range m.ExtensionRanges().Len() {
			r := m.ExtensionRanges().Get(i)
			p.line("extensions %s%s;", numbers(int64(r[0]), int64(r[1])-1, int64(protowire.MaxValidNumber)), p.inline(m.ExtensionRangeOptions(i), nil))
		}
		p.declarations(m, m.Fields().Len() > 0)
	})
}

func (p *printer) oneof(o protoreflect.OneofDescriptor) {
	p.comment(o)
	p.block("oneof "+string(o.Name()), " {}", func() {
		p.optionLines(o.Options(), false)
		for i := range o.Fields().Len() {
			p.field(o.Fields().Get(i))
		}
	})
}

// reserved writes what a message may not use.
func (p *printer) reserved(ranges protoreflect.FieldRanges, names protoreflect.Names) {
	var list []string
	for i := range ranges.Len() {
		r := ranges.Get(i)
		list = append(list, numbers(int64(r[0]), int64(r[1])-1, int64(protowire.MaxValidNumber)))
	}
	p.reservedLines(list, names)
}

func (p *printer) reservedLines(ranges []string, names protoreflect.Names) {
	if len(ranges) > 0 {
		p.line("reserved %s;", strings.Join(ranges, ", "))
	}
	var list []string
	for i := range names.Len() {
		name := string(names.Get(i))
		if p.file.Syntax() != protoreflect.Editions {
			name = strconv.Quote(name)
		}
		list = append(list, name)
	}
	if len(list) > 0 {
		p.line("reserved %s;", strings.Join(list, ", "))
	}
}

// numbers writes a range with both ends.
func numbers(from, to, most int64) string {
	switch {
	case from == to:
		return strconv.FormatInt(from, 10)
	case to >= most:
		return fmt.Sprintf("%d to max", from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

func (p *printer) field(f protoreflect.FieldDescriptor) {
	p.comment(f)
	if p.group(f) {
		p.message(fmt.Sprintf("%sgroup %s = %d%s", label(f), f.Message().Name(), f.Number(), p.inline(f.Options(), p.extras(f))), f.Message())
		return
	}
	p.line("%s%s %s = %d%s;", label(f), p.typeOf(f), f.Name(), f.Number(), p.inline(f.Options(), p.extras(f)))
}

func label(f protoreflect.FieldDescriptor) string {
	o := f.ContainingOneof()
	switch {
	case f.IsMap(), o != nil && !o.IsSynthetic():
		return ""
	case f.IsList():
		return "repeated "
	case f.ParentFile().Syntax() == protoreflect.Editions:
		return ""
	case f.Cardinality() == protoreflect.Required:
		return "required "
	case f.HasOptionalKeyword():
		return "optional "
	}
	return ""
}

func (p *printer) typeOf(f protoreflect.FieldDescriptor) string {
	scope := f.Parent()
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s, %s>", f.MapKey().Kind(), p.element(f.MapValue(), scope))
	}
	return p.element(f, scope)
}

func (p *printer) element(f protoreflect.FieldDescriptor, scope protoreflect.Descriptor) string {
	switch {
	case f.Message() != nil:
		return p.ref(f.Message(), scope)
	case f.Enum() != nil:
		return p.ref(f.Enum(), scope)
	}
	return f.Kind().String()
}

// extras returns what is written like options of a field, and is none.
func (p *printer) extras(f protoreflect.FieldDescriptor) []string {
	var list []string
	if f.HasDefault() {
		list = append(list, "default = "+defaultOf(f))
	}
	if !f.IsExtension() && f.JSONName() != jsonName(string(f.Name())) {
		list = append(list, "json_name = "+quote(f.JSONName()))
	}
	return list
}

func defaultOf(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.StringKind:
		return quote(f.Default().String())
	case protoreflect.BytesKind:
		return quote(string(f.Default().Bytes()))
	case protoreflect.EnumKind:
		return string(f.DefaultEnumValue().Name())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		switch v := f.Default().Float(); {
		case math.IsInf(v, 1):
			return "inf"
		case math.IsInf(v, -1):
			return "-inf"
		case math.IsNaN(v):
			return "nan"
		}
	}
	return f.Default().String()
}

// quote returns a string of protobuf.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// jsonName returns the key in JSON that a field has if nothing else is said.
func jsonName(name string) string {
	var b strings.Builder
	upper := false
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '_':
			upper = true
			continue
		case upper && 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		}
		upper = false
		b.WriteByte(c)
	}
	return b.String()
}

func (p *printer) enum(e protoreflect.EnumDescriptor) {
	p.comment(e)
	p.block("enum "+string(e.Name()), " {}", func() {
		p.optionLines(e.Options(), false)
		for i := range e.Values().Len() {
			v := e.Values().Get(i)
			p.comment(v)
			p.line("%s = %d%s;", v.Name(), v.Number(), p.inline(v.Options(), nil))
		}
		var list []string
		for _, r := range protodesc.ToEnumDescriptorProto(e).GetReservedRange() {
			list = append(list, numbers(int64(r.GetStart()), int64(r.GetEnd()), math.MaxInt32))
		}
		p.reservedLines(list, e.ReservedNames())
	})
}
