package pbcodec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// code is the text of a function.
type code struct{ strings.Builder }

func (c *code) p(format string, args ...any) {
	if len(args) == 0 {
		c.WriteString(format)
	} else {
		fmt.Fprintf(c, format, args...)
	}
	c.WriteByte('\n')
}

func (g *generator) rt(name string) string { return g.QualifiedGoIdent(runtime.Ident(name)) }

// message writes the functions of a message.
func (g *generator) message(m *protogen.Message) {
	fields := g.fields(m)
	name := m.GoIdent.GoName
	g.P()
	g.P("// ", method, " performs the operation s.Op: see package pbrt.")
	g.P("func (x *", name, ") ", method, "(s *", runtime.Ident("State"), ", b []byte) []byte {")
	g.P("switch s.Op {")
	g.P("case ", runtime.Ident("OpAppend"), ":")
	g.P("return x.anserAppend(b, s)")
	g.P("case ", runtime.Ident("OpDecode"), ":")
	if hasSlab(fields) {
		g.P("x.anserDecode(b, s, nil)")
	} else {
		g.P("x.anserDecode(b, s)")
	}
	if g.hasText(m) {
		g.P("case ", runtime.Ident("OpOwn"), ":")
		g.P("x.anserOwn(s)")
	}
	g.P("}")
	g.P("return b")
	g.P("}")
	g.slab(m, fields)
	g.append(m, fields)
	g.decode(m, fields)
	for _, f := range fields {
		if f.Desc.IsMap() {
			g.entry(m, f)
		}
	}
	if g.hasText(m) {
		g.own(m, fields)
	}
}

func hasSlab(fields []*field) bool { return slices.ContainsFunc(fields, (*field).slabbed) }

func slabType(m *protogen.Message) string { return "anserSlab_" + m.GoIdent.GoName }

// slab writes the type for the optional scalars of a message, the largest first.
func (g *generator) slab(m *protogen.Message, fields []*field) {
	if !hasSlab(fields) {
		return
	}
	list := slices.DeleteFunc(slices.Clone(fields), func(f *field) bool { return !f.slabbed() })
	slices.SortStableFunc(list, func(a, b *field) int { return cmp.Compare(b.size(), a.size()) })
	g.P()
	g.P("type ", slabType(m), " struct {")
	for _, f := range list {
		g.P("f", f.number, " ", f.goType)
	}
	g.P("}")
}

func (f *field) size() int {
	switch {
	case f.kind == protoreflect.StringKind:
		return 16
	case f.kind == protoreflect.BoolKind:
		return 1
	}
	switch f.goType {
	case "int64", "uint64", "float64":
		return 8
	}
	return 4
}

// own writes the function that copies text.
func (g *generator) own(m *protogen.Message, fields []*field) {
	var c code
	c.p("func (x *%s) anserOwn(s *%s) {", m.GoIdent.GoName, g.rt("State"))
	oneofs := map[*protogen.Oneof][]*field{}
	for _, f := range fields {
		if !g.fieldHasText(f.Field, map[*protogen.Message]bool{}) {
			continue
		}
		if f.inOneof() {
			oneofs[f.Oneof] = append(oneofs[f.Oneof], f)
			continue
		}
		g.ownField(&c, f)
	}
	for _, o := range m.Oneofs {
		if len(oneofs[o]) == 0 {
			continue
		}
		c.p("switch w := %s.(type) {", oneofs[o][0].expr)
		for _, f := range oneofs[o] {
			c.p("case *%s:", f.wrapper)
			switch {
			case f.Message != nil:
				g.ownMessage(&c, "w."+f.GoName, f.Message)
			case f.kind == protoreflect.StringKind:
				c.p("w.%s = s.Own(w.%s)", f.GoName, f.GoName)
			default:
				c.p("w.%s = s.OwnBytes(w.%s)", f.GoName, f.GoName)
			}
		}
		c.p("}")
	}
	c.p("}")
	g.P()
	g.P(c.String())
}

func (g *generator) ownField(c *code, f *field) {
	switch {
	case f.Desc.IsMap():
		c.p("for _, m := range %s {", f.expr)
		g.ownMessage(c, "m", f.Message.Fields[1].Message)
		c.p("}")
	case f.Desc.IsList() && f.Message != nil:
		if isOpaque(f.Parent) {
			c.p("if x.xxx_hidden_%s != nil {", f.GoName)
		}
		c.p("for _, m := range %s {", f.expr)
		g.ownMessage(c, "m", f.Message)
		c.p("}")
		if isOpaque(f.Parent) {
			c.p("}")
		}
	case f.Desc.IsList() && f.kind == protoreflect.StringKind:
		c.p("s.OwnAll(%s)", f.expr)
	case f.Desc.IsList():
		c.p("s.OwnAllBytes(%s)", f.expr)
	case f.Message != nil:
		c.p("if m := %s; m != nil {", f.expr)
		g.ownMessage(c, "m", f.Message)
		c.p("}")
	case f.pointer:
		c.p("if p := %s; p != nil {", f.expr)
		c.p("*p = s.Own(*p)")
		c.p("}")
	case f.kind == protoreflect.StringKind:
		c.p("if len(%s) > 0 {", f.expr)
		c.p("%s = s.Own(%s)", f.expr, f.expr)
		c.p("}")
	default:
		c.p("if %s != nil {", f.expr)
		c.p("%s = s.OwnBytes(%s)", f.expr, f.expr)
		c.p("}")
	}
}

func (g *generator) ownMessage(c *code, expr string, m *protogen.Message) {
	if g.direct(m) {
		c.p("%s.anserOwn(s)", expr)
	} else {
		c.p("s.OwnMessage(%s)", expr)
	}
}

// at returns the condition that a tag is at b[i:].
func at(tag uint32) string {
	list := protowire.AppendVarint(nil, uint64(tag))
	if len(list) == 1 {
		return fmt.Sprintf("uint(i) < uint(len(b)) && b[i] == %#x", list[0])
	}
	s := fmt.Sprintf("uint(i)+%d < uint(len(b)) && b[i] == %#x", len(list)-1, list[0])
	for k, c := range list[1:] {
		s += fmt.Sprintf(" && b[i+%d] == %#x", k+1, c)
	}
	return s
}
