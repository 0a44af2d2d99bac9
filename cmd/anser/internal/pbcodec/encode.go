package pbcodec

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// append writes the function that encodes a message. The length of a message inside another is
// written after its content.
func (g *generator) append(m *protogen.Message, fields []*field) {
	var c code
	required := false
	for _, f := range fields {
		required = required || f.Desc.Cardinality() == protoreflect.Required
	}
	c.p("func (x *%s) anserAppend(b []byte, s *%s) []byte {", m.GoIdent.GoName, g.rt("State"))
	c.p("if x == nil {")
	if required {
		c.p("s.Partial = true")
	}
	c.p("return b")
	c.p("}")
	c.p("if !s.Enter() {")
	c.p("return b")
	c.p("}")
	if m.Desc.ExtensionRanges().Len() > 0 {
		c.p("if len(x.extensionFields) > 0 {")
		c.p("s.Depth++")
		c.p("return s.AppendStandard(b, x)")
		c.p("}")
	}
	seen := map[*protogen.Oneof]bool{}
	for _, f := range fields {
		if !f.inOneof() {
			g.appendField(&c, f)
			continue
		}
		if seen[f.Oneof] {
			continue
		}
		seen[f.Oneof] = true
		c.p("switch w := %s.(type) {", f.expr)
		for _, o := range fields {
			if o.Oneof == f.Oneof {
				c.p("case *%s:", o.wrapper)
				c.p("if w != nil {")
				g.appendValue(&c, o, "w."+o.GoName, o.tag)
				c.p("}")
			}
		}
		c.p("}")
	}
	c.p("s.Depth++")
	c.p("return append(b, x.unknownFields...)")
	c.p("}")
	g.P()
	g.P(c.String())
}

func (g *generator) appendField(c *code, f *field) {
	if f.Desc.Cardinality() == protoreflect.Repeated {
		g.appendRepeated(c, f)
		return
	}
	value := f.expr
	switch {
	case f.presence == byBit && f.pointer:
		c.p("if p := %s; p != nil && %s {", f.expr, g.present(f))
		value = "*p"
	case f.presence == byBit:
		c.p("if %s {", g.present(f))
	case f.pointer:
		c.p("if p := %s; p != nil {", f.expr)
		value = "*p"
	case f.Message != nil:
		c.p("if p := %s; p != nil {", f.expr)
		value = "p"
	case f.presence == byNil:
		c.p("if p := %s; p != nil {", f.expr)
		value = "p"
	default:
		c.p("if v := %s; %s {", f.expr, g.notZero(f, "v"))
		value = "v"
	}
	g.appendValue(c, f, value, f.tag)
	if f.Desc.Cardinality() == protoreflect.Required {
		c.p("} else {")
		c.p("s.Partial = true")
	}
	c.p("}")
}

func (g *generator) present(f *field) string {
	return fmt.Sprintf("%s.Present(&x.XXX_presence[%d], %d)", g.QualifiedGoIdent(protoimpl.Ident("X")), f.bit/32, f.bit)
}

// notZero returns the condition that an implicit value is encoded.
func (g *generator) notZero(f *field, v string) string {
	math := protogen.GoImportPath("math")
	switch f.kind {
	case protoreflect.BoolKind:
		return v
	case protoreflect.StringKind, protoreflect.BytesKind:
		return "len(" + v + ") > 0"
	case protoreflect.FloatKind:
		return g.QualifiedGoIdent(math.Ident("Float32bits")) + "(" + v + ") != 0"
	case protoreflect.DoubleKind:
		return g.QualifiedGoIdent(math.Ident("Float64bits")) + "(" + v + ") != 0"
	}
	return v + " != 0"
}

// appendValue writes the tag and the value v.
func (g *generator) appendValue(c *code, f *field, v string, tag uint32) {
	switch f.kind {
	case protoreflect.MessageKind:
		c.p("b = append(b, %s, 0)", tagBytes(tag))
		c.p("start := len(b)")
		g.appendMessage(c, f.Message, v)
		c.p("b = %s(b, start)", g.rt("Close"))
	case protoreflect.GroupKind:
		c.p("b = append(b, %s)", tagBytes(tag))
		g.appendMessage(c, f.Message, v)
		c.p("b = append(b, %s)", tagBytes(tag&^7|uint32(protowire.EndGroupType)))
	default:
		c.p("b = append(b, %s)", tagBytes(tag))
		g.appendScalar(c, f, v)
	}
}

func (g *generator) appendMessage(c *code, m *protogen.Message, v string) {
	if g.direct(m) {
		c.p("b = %s.anserAppend(b, s)", v)
	} else {
		c.p("b = s.AppendMessage(b, %s)", v)
	}
}

// appendScalar writes the value without a tag.
func (g *generator) appendScalar(c *code, f *field, v string) {
	math := protogen.GoImportPath("math")
	switch f.kind {
	case protoreflect.BoolKind:
		c.p("b = %s(b, %s)", g.rt("AppendBool"), v)
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		c.p("b = %s(b, %s(int64(%s)))", g.rt("AppendVarint"), g.rt("ZigZag"), v)
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		c.p("b = %s(b, uint32(%s))", g.rt("AppendFixed32"), v)
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		c.p("b = %s(b, uint64(%s))", g.rt("AppendFixed64"), v)
	case protoreflect.FloatKind:
		c.p("b = %s(b, %s(%s))", g.rt("AppendFixed32"), g.QualifiedGoIdent(math.Ident("Float32bits")), v)
	case protoreflect.DoubleKind:
		c.p("b = %s(b, %s(%s))", g.rt("AppendFixed64"), g.QualifiedGoIdent(math.Ident("Float64bits")), v)
	case protoreflect.StringKind:
		if f.utf8 {
			c.p("if !%s(%s) {", g.rt("Valid"), v)
			c.p("s.NotUTF8(%q)", f.Desc.FullName())
			c.p("}")
		}
		c.p("b = %s(b, %s)", g.rt("AppendText"), v)
	case protoreflect.BytesKind:
		c.p("b = %s(b, %s)", g.rt("AppendText"), v)
	default:
		c.p("b = %s(b, uint64(%s))", g.rt("AppendVarint"), v)
	}
}

func (g *generator) appendRepeated(c *code, f *field) {
	switch {
	case f.Desc.IsMap():
		g.appendMap(c, f)
	case f.Desc.IsPacked():
		c.p("if len(%s) > 0 {", f.expr)
		c.p("b = append(b, %s, 0)", tagBytes(f.tag))
		c.p("start := len(b)")
		c.p("for _, v := range %s {", f.expr)
		g.appendScalar(c, f, "v")
		c.p("}")
		c.p("b = %s(b, start)", g.rt("Close"))
		c.p("}")
	default:
		hidden := isOpaque(f.Parent) && f.Message != nil
		if hidden {
			c.p("if x.xxx_hidden_%s != nil {", f.GoName)
		}
		c.p("for _, v := range %s {", f.expr)
		g.appendValue(c, f, "v", f.tag)
		c.p("}")
		if hidden {
			c.p("}")
		}
	}
}

func (g *generator) appendMap(c *code, f *field) {
	key, value := g.entryField(f, 0), g.entryField(f, 1)
	c.p("if len(%s) > 0 {", f.expr)
	c.p("if !s.Enter() {")
	c.p("return b")
	c.p("}")
	c.p("for k, v := range %s {", f.expr)
	c.p("b = append(b, %s, 0)", tagBytes(f.tag))
	c.p("entry := len(b)")
	g.appendValue(c, key, "k", key.tag)
	g.appendValue(c, value, "v", value.tag)
	c.p("b = %s(b, entry)", g.rt("Close"))
	c.p("}")
	c.p("s.Depth++")
	c.p("}")
}

// entryField returns the key or the value of a map.
func (g *generator) entryField(f *field, i int) *field {
	e := g.field(f.Message.Fields[i])
	e.presence, e.pointer = implicit, false
	return e
}
