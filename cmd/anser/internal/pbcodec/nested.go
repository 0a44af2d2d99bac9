package pbcodec

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// slabOf returns the type of the slab of a message whose functions are called by name, or "".
func (g *generator) slabOf(m *protogen.Message) string {
	if g.direct(m) && hasSlab(g.fields(m)) {
		return slabType(m)
	}
	return ""
}

// content reads the position of the content of a message: it is b[i:j]. For a group, the position
// behind it is n, otherwise j.
func (d *decoder) content(f *field) (end string) {
	if f.kind != protoreflect.GroupKind {
		d.length()
		return "j"
	}
	d.p("if j, n = %s(b, i, %#x); j < 0 {", d.rt("Group"), f.tag)
	d.p("return s.Fail()")
	d.p("}")
	return "n"
}

// call decodes b[i:j] into a message.
func (d *decoder) call(m *protogen.Message, into, slab string) {
	switch {
	case !d.direct(m):
		d.p("if !s.DecodeMessage(b[i:j], %s) {", into)
	case d.slabOf(m) == "":
		d.p("if !%s.anserDecode(b[i:j], s) {", into)
	default:
		d.p("if !%s.anserDecode(b[i:j], s, %s) {", into, slab)
	}
	d.p("return false")
	d.p("}")
}

// message decodes a singular message or group. It is allocated together with its slab, or with its
// wrapper in a oneof.
func (d *decoder) message(f *field) {
	end := d.content(f)
	d.p("{")
	typ, slab := f.goType, d.slabOf(f.Message)
	switch {
	case f.inOneof():
		d.p("w, _ := %s.(*%s)", f.expr, f.wrapper)
		d.p("if w == nil {")
		d.p("c := new(struct {")
		d.p("w %s", f.wrapper)
		d.p("m %s", typ)
		d.p("})")
		d.p("w = &c.w")
		d.p("w.%s = &c.m", f.GoName)
		d.p("} else if w.%s == nil {", f.GoName)
		d.p("w.%s = new(%s)", f.GoName, typ)
		d.p("}")
		d.call(f.Message, "w."+f.GoName, "nil")
		d.p("%s = w", f.expr)
	case slab == "":
		d.p("if %s == nil {", f.expr)
		d.p("%s = new(%s)", f.expr, typ)
		d.p("}")
		d.call(f.Message, f.expr, "")
	default:
		d.p("var slab *%s", slab)
		d.p("if %s == nil {", f.expr)
		d.p("if s.Mode != %s && j-i >= int(%s)/4 {", d.rt("Separate"), d.sizeof(slab))
		d.p("c := new(struct {")
		d.p("m %s", typ)
		d.p("s %s", slab)
		d.p("})")
		d.p("%s, slab = &c.m, &c.s", f.expr)
		d.p("} else {")
		d.p("%s = new(%s)", f.expr, typ)
		d.p("}")
		d.p("}")
		d.call(f.Message, f.expr, "slab")
	}
	d.p("}")
	d.p("i = %s", end)
}

// messages decodes an element of a repeated message or group. The elements that follow each other
// are counted, and then allocated in chunks.
func (d *decoder) messages(f *field) {
	typ, slab := f.goType, d.slabOf(f.Message)
	run, chunk, slabs := fmt.Sprintf("run%d", f.number), fmt.Sprintf("chunk%d", f.number), fmt.Sprintf("slabs%d", f.number)
	d.vars = append(d.vars, run+" "+d.rt("Elements"), chunk+" []"+typ)
	if slab != "" {
		d.vars = append(d.vars, slabs+" []"+slab)
	}
	if isOpaque(f.Parent) {
		d.p("if x.xxx_hidden_%s == nil {", f.GoName)
		d.p("x.xxx_hidden_%s = new([]*%s)", f.GoName, typ)
		d.p("}")
	}
	d.p("if %s.Left == 0 {", run)
	d.p("%s = %s(b, i, %#x)", run, d.rt("Count"), f.tag)
	d.p("%s = %s(%s, %s.Left)", f.expr, d.rt("Grow"), f.expr, run)
	d.p("}")
	end := d.content(f)
	d.p("if len(%s) == 0 {", chunk)
	d.p("%s = make([]%s, s.Chunk(%s, %s))", chunk, typ, run, d.sizeof(typ))
	if slab != "" {
		d.p("if %s = nil; %s.Average() >= int(%s)/4 && s.Mode != %s {", slabs, run, d.sizeof(slab), d.rt("Separate"))
		d.p("%s = make([]%s, len(%s))", slabs, slab, chunk)
		d.p("}")
	}
	d.p("}")
	d.p("{")
	d.p("m := &%s[0]", chunk)
	d.p("%s = %s[1:]", chunk, chunk)
	d.p("%s.Left--", run)
	if slab != "" {
		d.p("var slab *%s", slab)
		d.p("if len(%s) > 0 {", slabs)
		d.p("slab = &%s[0]", slabs)
		d.p("%s = %s[1:]", slabs, slabs)
		d.p("}")
	}
	d.p("%s = append(%s, m)", f.expr, f.expr)
	d.call(f.Message, "m", "slab")
	d.p("}")
	d.p("i = %s", end)
}

// mapField decodes an entry of a map.
func (d *decoder) mapField(f *field) {
	key, value := d.entryField(f, 0), d.entryField(f, 1)
	d.p("if %s == nil {", f.expr)
	d.p("n = %s(b, i, %#x)", d.rt("Entries"), f.tag)
	d.p("%s = make(map[%s]%s, n)", f.expr, key.goType, mapValueType(value))
	if isText(key) || isText(value) {
		d.p("s.Reserve(%s(b, i, %#x, %v, %v))", d.rt("EntryText"), f.tag, isText(key), isText(value))
	}
	d.p("}")
	d.length()
	d.p("if !x.anserEntry%d(b[i:j], s) {", f.number)
	d.p("return false")
	d.p("}")
	d.p("i = j")
}

func mapValueType(value *field) string {
	if value.Message != nil {
		return "*" + value.goType
	}
	return value.goType
}

// entry writes the function that decodes an entry of a map.
func (g *generator) entry(m *protogen.Message, f *field) {
	key, value := g.entryField(f, 0), g.entryField(f, 1)
	d := &decoder{generator: g, m: m}
	d.p("func (x *%s) anserEntry%d(b []byte, s *%s) bool {", m.GoIdent.GoName, f.number, g.rt("State"))
	d.p("if !s.Enter() {")
	d.p("return false")
	d.p("}")
	d.p("var (")
	d.p("key %s", key.goType)
	switch {
	case value.kind == protoreflect.EnumKind:
		d.p("value %s = %d", value.goType, value.Enum.Values[0].Desc.Number())
	default:
		d.p("value %s", mapValueType(value))
	}
	d.p("i int")
	if isText(key) || isText(value) || value.Message != nil {
		d.p("j, n int")
	}
	if !isText(key) && wireType(key.kind) == 0 || !isText(value) && value.Message == nil && wireType(value.kind) == 0 {
		d.p("v uint64")
	}
	d.p("t uint32")
	d.p(")")
	d.p("for uint(i) < uint(len(b)) {")
	d.p("if t, i = %s(b, i); i < 0 {", g.rt("Tag"))
	d.p("return s.Fail()")
	d.p("}")
	d.p("switch t {")
	d.p("case %#x:", key.tag)
	d.entryValue(key, "key")
	d.p("case %#x:", value.tag)
	if value.Message != nil {
		d.length()
		d.p("if value == nil {")
		d.p("value = new(%s)", value.goType)
		d.p("}")
		d.call(value.Message, "value", "nil")
		d.p("i = j")
	} else {
		d.entryValue(value, "value")
	}
	d.p("default:")
	d.p("i = %s(b, i, t)", g.rt("Skip"))
	d.p("}")
	d.p("}")
	d.p("if i != len(b) {")
	d.p("return s.Fail()")
	d.p("}")
	if value.Message != nil {
		d.p("if value == nil {")
		d.p("value = new(%s)", value.goType)
		if hasRequired(value.Message) {
			d.p("s.Partial = true")
		}
		d.p("}")
	}
	d.p("%s[key] = value", f.expr)
	d.p("s.Depth++")
	d.p("return true")
	d.p("}")
	g.P()
	g.P(d.String())
}

func (d *decoder) entryValue(f *field, into string) {
	switch f.kind {
	case protoreflect.StringKind:
		d.length()
		d.check(f, "b[i:j]")
		d.p("%s = s.Key(b[i:j])", into)
		d.p("i = j")
	case protoreflect.BytesKind:
		d.length()
		d.p("%s = s.KeyBytes(b[i:j])", into)
		d.p("i = j")
	default:
		value := d.value(f, "b")
		d.p("%s = %s", into, value)
	}
}

func hasRequired(m *protogen.Message) bool {
	for _, f := range m.Fields {
		if f.Desc.Cardinality() == protoreflect.Required {
			return true
		}
	}
	return false
}
