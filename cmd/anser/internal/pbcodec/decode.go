package pbcodec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// decode writes the function that decodes a message. Its fields have labels, in the order in which
// they are usually encoded: behind each one is a comparison with the tag of the next, and only if
// that fails the tag is looked up.
func (g *generator) decode(m *protogen.Message, fields []*field) {
	d := &decoder{generator: g, m: m, fields: fields}
	for i, f := range fields {
		d.next = nil
		if i+1 < len(fields) {
			d.next = fields[i+1]
		}
		d.field(f)
	}
	for _, write := range d.later {
		write()
	}
	var c code
	parameter := ""
	if hasSlab(fields) {
		parameter = ", slab *" + slabType(m)
	}
	c.p("func (x *%s) anserDecode(b []byte, s *%s%s) bool {", m.GoIdent.GoName, g.rt("State"), parameter)
	c.p("if !s.Enter() {")
	c.p("return false")
	c.p("}")
	body := d.String()
	c.p("var (")
	names := []string{"i", "j", "n", "text"}
	used := []string{"i"}
	for _, name := range names[1:] {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(body) {
			used = append(used, name)
		}
	}
	extensions := m.Desc.ExtensionRanges().Len() > 0
	if extensions && len(used) > 0 {
		used = append(used, "first")
		if !slices.Contains(used, "j") {
			used = append(used, "j")
		}
	}
	c.p("%s int", strings.Join(used, ", "))
	if strings.Contains(body, "v, i = "+g.rt("Varint")) {
		c.p("v uint64")
	}
	c.p("t uint32")
	for _, v := range d.vars {
		c.p("%s", v)
	}
	c.p(")")
	if hasSlab(fields) {
		c.p("if slab == nil && s.Mode != %s && len(b) >= int(%s)/4 {", g.rt("Separate"), g.sizeof(slabType(m)))
		c.p("slab = new(%s)", slabType(m))
		c.p("}")
	}
	c.p("next:")
	c.p("if uint(i) >= uint(len(b)) {")
	c.p("goto done")
	c.p("}")
	if extensions {
		c.p("first = i")
	}
	c.p("t = uint32(b[i])")
	c.p("if t < 0x80 {")
	c.p("i++")
	c.p("} else if i+1 < len(b) && b[i+1] < 0x80 {")
	c.p("t = t&0x7f | uint32(b[i+1])<<7")
	c.p("i += 2")
	c.p("} else if t, i = %s(b, i); i < 0 {", g.rt("Tag"))
	c.p("return s.Fail()")
	c.p("}")
	c.p("switch t {")
	for _, t := range d.cases {
		c.p("case %#x:", t.tag)
		c.p("goto %s", t.label)
	}
	c.p("}")
	if extensions {
		d.extensions(&c)
	}
	c.p("if x.unknownFields, i = %s(x.unknownFields, b, i, t); i < 0 {", g.rt("Unknown"))
	c.p("return s.Fail()")
	c.p("}")
	c.p("goto next")
	c.WriteString(body)
	c.p("done:")
	c.p("if i != len(b) {")
	c.p("return s.Fail()")
	c.p("}")
	d.required(&c)
	if strings.Contains(body, "text += ") {
		c.p("s.Text += text")
	}
	c.p("s.Depth++")
	c.p("return true")
	c.p("}")
	g.P()
	g.P(c.String())
}

func (g *generator) sizeof(typ string) string {
	return g.QualifiedGoIdent(protogen.GoImportPath("unsafe").Ident("Sizeof")) + "(" + typ + "{})"
}

// decoder is the function that is being written.
type decoder struct {
	*generator
	code
	m      *protogen.Message
	fields []*field
	next   *field // follows the current one
	cases  []branch
	vars   []string
	later  []func() // the code of tags that no field falls through to
}

type branch struct {
	tag   uint32
	label string
}

// required writes the check for required fields, which can fail although they are present in
// another part of the message: then the whole message is checked at the end.
func (d *decoder) required(c *code) {
	var missing []string
	for _, f := range d.fields {
		if f.Desc.Cardinality() != protoreflect.Required {
			continue
		}
		if f.presence == byBit {
			missing = append(missing, "!"+d.present(f))
		} else {
			missing = append(missing, f.expr+" == nil")
		}
	}
	if len(missing) > 0 {
		c.p("if %s {", strings.Join(missing, " || "))
		c.p("s.Partial = true")
		c.p("}")
	}
}

// extensions writes the case of a field number in an extension range.
func (d *decoder) extensions(c *code) {
	var conditions []string
	ranges := d.m.Desc.ExtensionRanges()
	for i := range ranges.Len() {
		r := ranges.Get(i)
		conditions = append(conditions, fmt.Sprintf("t>>3 >= %d && t>>3 < %d", r[0], r[1]))
	}
	c.p("if %s {", strings.Join(conditions, " || "))
	c.p("if j = %s(b, i, t); j < 0 || !s.DecodeFields(b[first:j], x) {", d.rt("Skip"))
	c.p("return s.Fail()")
	c.p("}")
	c.p("i = j")
	c.p("goto next")
	c.p("}")
}

// label begins the code of a tag.
func (d *decoder) label(tag uint32, name string) {
	d.cases = append(d.cases, branch{tag, name})
	d.p("%s:", name)
}

// follow ends the code of a field: it falls through to the next one if its tag follows.
func (d *decoder) follow() {
	if d.next == nil {
		d.p("goto next")
		return
	}
	d.p("if !(%s) {", at(d.next.tag))
	d.p("goto next")
	d.p("}")
	d.p("i += %d", protowire.SizeVarint(uint64(d.next.tag)))
}

// again repeats the code of a field if its tag follows.
func (d *decoder) again(f *field, label string) {
	d.p("if %s {", at(f.tag))
	d.p("i += %d", protowire.SizeVarint(uint64(f.tag)))
	d.p("goto %s", label)
	d.p("}")
}

func (d *decoder) field(f *field) {
	label := fmt.Sprintf("f%d", f.number)
	switch {
	case f.Desc.IsMap():
		d.label(f.tag, label)
		d.mapField(f)
		d.again(f, label)
	case f.packable():
		packed, single := tag(f.number, protowire.BytesType), tag(f.number, wireType(f.kind))
		if f.Desc.IsPacked() {
			d.label(packed, label)
			d.packed(f)
			d.later = append(d.later, func() {
				d.label(single, label+"single")
				d.single(f, single)
				d.p("goto next")
			})
		} else {
			d.label(single, label)
			d.single(f, single)
			d.again(f, label)
			d.later = append(d.later, func() {
				d.label(packed, label+"packed")
				d.packed(f)
				d.p("goto next")
			})
		}
	case f.Desc.IsList() && f.Message != nil:
		d.label(f.tag, label)
		d.messages(f)
		d.again(f, label)
	case f.Desc.IsList():
		d.label(f.tag, label)
		d.texts(f)
		d.again(f, label)
	case f.Message != nil:
		d.label(f.tag, label)
		d.message(f)
	default:
		d.label(f.tag, label)
		d.scalar(f)
	}
	d.follow()
}

// length reads the length of a field: its content is b[i:j].
func (d *decoder) length() { d.lengthOf("b", "i", "j") }

func (d *decoder) lengthOf(b, i, j string) {
	d.p("if uint(%s) < uint(len(%s)) && %s[%s] < 0x80 {", i, b, b, i)
	d.p("n = int(%s[%s])", b, i)
	d.p("%s++", i)
	d.p("} else {")
	d.p("n, %s = %s(%s, %s)", i, d.rt("Len"), b, i)
	d.p("}")
	d.p("%s = %s + n", j, i)
	d.p("if uint(%s) > uint(len(%s)) {", j, b)
	d.p("return s.Fail()")
	d.p("}")
}

// value reads a scalar other than text, and returns the expression of its value. An error leaves a
// negative i, which is found before the next tag.
func (d *decoder) value(f *field, b string) string {
	math := protogen.GoImportPath("math")
	switch wireType(f.kind) {
	case protowire.Fixed32Type:
		d.p("w, k := %s(%s, i)", d.rt("Fixed32"), b)
		d.p("i = k")
		if f.kind == protoreflect.FloatKind {
			return d.QualifiedGoIdent(math.Ident("Float32frombits")) + "(w)"
		}
		return f.goType + "(w)"
	case protowire.Fixed64Type:
		d.p("w, k := %s(%s, i)", d.rt("Fixed64"), b)
		d.p("i = k")
		if f.kind == protoreflect.DoubleKind {
			return d.QualifiedGoIdent(math.Ident("Float64frombits")) + "(w)"
		}
		return f.goType + "(w)"
	}
	d.p("if uint(i) < uint(len(%s)) && %s[i] < 0x80 {", b, b)
	d.p("v = uint64(%s[i])", b)
	d.p("i++")
	d.p("} else {")
	d.p("v, i = %s(%s, i)", d.rt("Varint"), b)
	d.p("}")
	switch f.kind {
	case protoreflect.BoolKind:
		return "v != 0"
	case protoreflect.Sint32Kind:
		return d.rt("UnZigZag32") + "(v)"
	case protoreflect.Sint64Kind:
		return d.rt("UnZigZag64") + "(v)"
	}
	return f.goType + "(v)"
}

// check checks the text in b[i:j].
func (d *decoder) check(f *field, text string) {
	if f.utf8 {
		d.p("if !%s(%s(%s)) {", d.rt("Valid"), d.rt("Alias"), text)
		d.p("return s.NotUTF8(%q)", f.Desc.FullName())
		d.p("}")
	}
}

func isText(f *field) bool {
	return f.kind == protoreflect.StringKind || f.kind == protoreflect.BytesKind
}

// scalar decodes a singular field that is not a message.
func (d *decoder) scalar(f *field) {
	d.p("{")
	var value string
	switch {
	case f.kind == protoreflect.StringKind:
		d.length()
		d.check(f, "b[i:j]")
		value = d.rt("Alias") + "(b[i:j])"
	case f.kind == protoreflect.BytesKind:
		d.length()
		value = "b[i:j:j]"
	default:
		value = d.value(f, "b")
	}
	switch {
	case f.inOneof():
		d.p("%s = &%s{%s: %s}", f.expr, f.wrapper, f.GoName, value)
	case f.slabbed():
		d.p("if slab != nil {")
		d.p("slab.f%d = %s", f.number, value)
		d.p("%s = &slab.f%d", f.expr, f.number)
		d.p("} else {")
		d.p("%s = %s(%s)", f.expr, d.rt("New"), value)
		d.p("}")
	case f.kind == protoreflect.BytesKind && f.presence == implicit:
		d.p("if %s = nil; n > 0 {", f.expr)
		d.p("%s = %s", f.expr, value)
		d.p("}")
	default:
		d.p("%s = %s", f.expr, value)
	}
	if f.presence == byBit {
		d.p("%s.SetPresentNonAtomic(&x.XXX_presence[%d], %d, %d)", d.QualifiedGoIdent(protoimpl.Ident("X")), f.bit/32, f.bit, presenceBits(d.m))
	}
	if isText(f) {
		d.p("text += n")
		d.p("i = j")
	}
	d.p("}")
}

// texts decodes a repeated string or byte slice.
func (d *decoder) texts(f *field) {
	d.p("%s = %s(%s, b, i, %#x)", f.expr, d.rt("Room"), f.expr, f.tag)
	d.length()
	d.check(f, "b[i:j]")
	if f.kind == protoreflect.StringKind {
		d.p("%s = append(%s, %s(b[i:j]))", f.expr, f.expr, d.rt("Alias"))
	} else {
		d.p("%s = append(%s, b[i:j:j])", f.expr, f.expr)
	}
	d.p("text += n")
	d.p("i = j")
}

// single decodes an element of a repeated scalar that is not packed.
func (d *decoder) single(f *field, tag uint32) {
	d.p("{")
	d.p("%s = %s(%s, b, i, %#x)", f.expr, d.rt("Room"), f.expr, tag)
	value := d.value(f, "b")
	d.p("%s = append(%s, %s)", f.expr, f.expr, value)
	d.p("}")
}

// packed decodes a packed field.
func (d *decoder) packed(f *field) {
	function := "Varints"
	switch f.kind {
	case protoreflect.BoolKind:
		function = "Bools"
	case protoreflect.Sint32Kind:
		function = "ZigZags32"
	case protoreflect.Sint64Kind:
		function = "ZigZags64"
	default:
		switch wireType(f.kind) {
		case protowire.Fixed32Type:
			function = "Fixed32s"
		case protowire.Fixed64Type:
			function = "Fixed64s"
		}
	}
	d.length()
	d.p("{")
	d.p("list, ok := %s(%s, b[i:j])", d.rt(function), f.expr)
	d.p("if %s = list; !ok {", f.expr)
	d.p("return s.Fail()")
	d.p("}")
	d.p("}")
	d.p("i = j")
}
