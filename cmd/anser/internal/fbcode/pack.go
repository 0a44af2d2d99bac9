package fbcode

import (
	"strings"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

// objectAPI writes the struct with all values of a table, and the functions between both.
func (t *table) objectAPI() {
	object := Object(t.o.Name)
	t.f("type %s struct {\n", object)
	for _, f := range t.o.Fields {
		if f.Deprecated || isUnionType(f) {
			continue
		}
		pointer := ""
		if f.Type.Base.Scalar() && f.Optional {
			pointer = "*"
		}
		t.member(object, Exported(f.Name), f.At)
		t.f("%s %s%s `json:\"%s\"`\n", Exported(f.Name), pointer, t.native(f.Type), f.Name)
	}
	t.f("}\n\n")
	if t.o.Struct {
		t.packStruct(object)
		t.f("func (rcv *%s) UnPackTo(t *%s) {\n", t.name, object)
		for _, f := range t.o.Fields {
			if f.Type.Struct() {
				t.f("t.%s = rcv.%s(nil).UnPack()\n", Exported(f.Name), Exported(f.Name))
			} else {
				t.f("t.%s = rcv.%s()\n", Exported(f.Name), Exported(f.Name))
			}
		}
	} else {
		t.pack(object)
		t.f("func (rcv *%s) UnPackTo(t *%s) {\n", t.name, object)
		for _, f := range t.o.Fields {
			if !f.Deprecated && !isUnionType(f) {
				t.unpack(f)
			}
		}
	}
	t.f("}\n\nfunc (rcv *%s) UnPack() *%s {\nif rcv == nil {\nreturn nil\n}\nt := &%s{}\nrcv.UnPackTo(t)\nreturn t\n}\n\n", t.name, object, object)
}

func (t *table) packStruct(object string) {
	t.f("func (t *%s) Pack(builder *flatbuffers.Builder) flatbuffers.UOffsetT {\nif t == nil {\nreturn 0\n}\nreturn Create%s(builder", object, t.name)
	t.packArgs(t.o, "")
	t.f(")\n}\n\n")
}

func (t *table) packArgs(o *fbs.Object, prefix string) {
	for _, f := range o.Fields {
		if f.Type.Struct() {
			t.packArgs(f.Type.Object, prefix+Exported(f.Name)+".")
		} else {
			t.f(", t.%s%s", prefix, Exported(f.Name))
		}
	}
}

func (t *table) pack(object string) {
	t.f("func (t *%s) Pack(builder *flatbuffers.Builder) flatbuffers.UOffsetT {\nif t == nil {\nreturn 0\n}\n", object)
	for _, f := range t.o.Fields {
		if !f.Deprecated && !f.Type.Base.Scalar() {
			t.packPart(f)
		}
	}
	t.f("%sStart(builder)\n", t.name)
	for _, f := range t.o.Fields {
		if f.Deprecated || isUnionType(f) {
			continue
		}
		name, offset := Exported(f.Name), local(f.Name)+"Offset"
		switch ty := f.Type; {
		case ty.Base.Scalar() && f.Optional:
			t.f("if t.%s != nil {\n%sAdd%s(builder, *t.%s)\n}\n", name, t.name, name, name)
		case ty.Base.Scalar():
			t.f("%sAdd%s(builder, t.%s)\n", t.name, name, name)
		case ty.Struct():
			t.f("%s := t.%s.Pack(builder)\n%sAdd%s(builder, %s)\n", offset, name, t.name, name, offset)
		case ty.Base == fbs.Union:
			t.f("if t.%s != nil {\n%sAdd%s(builder, t.%s.Type)\n}\n", name, t.name, Exported(f.Name+"_type"), name)
			t.f("%sAdd%s(builder, %s)\n", t.name, name, offset)
		default:
			t.f("%sAdd%s(builder, %s)\n", t.name, name, offset)
		}
	}
	t.f("return %sEnd(builder)\n}\n\n", t.name)
}

// packPart writes what a table refers to, before the table.
func (t *table) packPart(f *fbs.Field) {
	name, v, ty := Exported(f.Name), local(f.Name), f.Type
	offset := v + "Offset"
	switch {
	case ty.Struct(): // in the table itself
	case ty.Base == fbs.String && f.Required:
		t.f("%s := builder.CreateString(t.%s)\n", offset, name)
	case ty.Base == fbs.String:
		t.f("%s := flatbuffers.UOffsetT(0)\nif t.%s != \"\" {\n%s = builder.CreateString(t.%s)\n}\n", offset, name, offset, name)
	case bytesOnly(ty):
		t.f("%s := flatbuffers.UOffsetT(0)\nif t.%s != nil {\n%s = builder.CreateByteString(t.%s)\n}\n", offset, name, offset, name)
	case ty.Base == fbs.Obj:
		t.f("%s := t.%s.Pack(builder)\n", offset, name)
	case ty.Base == fbs.Union:
		t.f("%s := t.%s.Pack(builder)\n\n", offset, name)
	default:
		t.packVector(f, name, v)
	}
}

func (t *table) packVector(f *fbs.Field, name, v string) {
	element := f.Type.Of()
	offset, length, offsets := v+"Offset", v+"Length", v+"Offsets"
	t.f("%s := flatbuffers.UOffsetT(0)\nif t.%s != nil {\n%s := len(t.%s)\n", offset, name, length, name)
	put := "builder.PrependUOffsetT(" + offsets + "[j])"
	each := ""
	switch {
	case element.Base == fbs.String:
		each = offsets + "[j] = builder.CreateString(t." + name + "[j])"
	case element.Struct():
		put = t.packElement("", name, element)
	case element.Base == fbs.Obj:
		each = t.packElement(offsets+"[j] = ", name, element)
	default:
		put = "builder.Prepend" + accessor(element.Base) + "(" + t.toBasic(element, "t."+name+"[j]") + ")"
	}
	if each != "" {
		t.f("%s := make([]flatbuffers.UOffsetT, %s)\nfor j := 0; j < %s; j++ {\n%s\n}\n", offsets, length, length, each)
	}
	t.f("%sStart%sVector(builder, %s)\nfor j := %s - 1; j >= 0; j-- {\n%s\n}\n%s = builder.EndVector(%s)\n}\n", t.name, name, length, length, put, offset, length)
}

// packElement returns the statements that write a table or struct of a vector. For nil flatc's code
// writes nothing, and so a vector that lacks elements; here nil is an empty one, as in protobuf.
func (t *table) packElement(assign, name string, element fbs.Type) string {
	if t.options.Bare {
		return assign + "t." + name + "[j].Pack(builder)"
	}
	return "x := t." + name + "[j]\nif x == nil {\nx = new(" + strings.TrimPrefix(t.native(element), "*") + ")\n}\n" + assign + "x.Pack(builder)"
}

// unpack writes what takes a field over from a table.
func (t *table) unpack(f *fbs.Field) {
	name, v, ty := Exported(f.Name), local(f.Name), f.Type
	switch {
	case ty.Base.Scalar():
		t.f("t.%s = rcv.%s()\n", name, name)
	case ty.Base == fbs.String:
		t.f("t.%s = string(rcv.%s())\n", name, name)
	case bytesOnly(ty):
		t.f("t.%s = rcv.%sBytes()\n", name, name)
	case ty.Base == fbs.Obj:
		t.f("t.%s = rcv.%s(nil).UnPack()\n", name, name)
	case ty.Base == fbs.Union:
		t.f("%sTable := flatbuffers.Table{}\nif rcv.%s(&%sTable) {\n", v, name, v)
		t.f("t.%s = rcv.%s().UnPack(%sTable)\n}\n", name, Exported(f.Name+"_type"), v)
	default:
		length := v + "Length"
		t.f("%s := rcv.%sLength()\nt.%s = make(%s, %s)\nfor j := 0; j < %s; j++ {\n", length, name, name, t.native(ty), length, length)
		switch ty.Element {
		case fbs.Obj:
			t.f("x := %s{}\nrcv.%s(&x, j)\nt.%s[j] = x.UnPack()\n}\n", t.objectType(ty.Object), name, name)
		case fbs.String:
			t.f("t.%s[j] = string(rcv.%s(j))\n}\n", name, name)
		default:
			t.f("t.%s[j] = rcv.%s(j)\n}\n", name, name)
		}
	}
}
