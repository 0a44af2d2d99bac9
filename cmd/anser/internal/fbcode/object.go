package fbcode

import "github.com/anser-rpc/anser/cmd/anser/internal/fbs"

// table writes one table or struct.
type table struct {
	*writer
	o    *fbs.Object
	name string // of its type
}

func (w *writer) object(o *fbs.Object) {
	for _, f := range o.Fields {
		if w.refuse(f) {
			return
		}
		if f.Key && !o.Struct && f.Type.Struct() {
			w.wrong(f.At, "field %s is a struct and a key, for which Go has no code: make a number or a string the key", f.Name)
			return
		}
	}
	w.need("flatbuffers")
	t := &table{w, o, Type(o.Name)}
	methods, packed := []string{"Init", "Table", "UnPack", "UnPackTo"}, []string{"Pack"}
	if !o.Struct && !w.options.Bare {
		methods, packed = append(methods, described...), append(packed, described...)
	}
	t.goType(t.name, o.At, methods...)
	t.goType(Object(o.Name), o.At, packed...)
	w.doc(o.Doc)
	t.objectAPI()
	kind := "Table"
	if o.Struct {
		kind = "Struct"
	}
	t.f("type %s struct {\n_tab flatbuffers.%s\n}\n\n", t.name, kind)
	if !o.Struct {
		t.roots()
	}
	t.f("func (rcv *%s) Init(buf []byte, i flatbuffers.UOffsetT) {\nrcv._tab.Bytes = buf\nrcv._tab.Pos = i\n}\n\n", t.name)
	tab := "rcv._tab"
	if o.Struct {
		tab += ".Table"
	}
	t.f("func (rcv *%s) Table() flatbuffers.Table {\nreturn %s\n}\n\n", t.name, tab)
	for _, f := range o.Fields {
		if f.Deprecated {
			continue
		}
		t.accessors(f)
		t.mutator(f)
		if !o.Struct && f.Key {
			t.keys(f)
		}
	}
	if o.Struct {
		t.structBuilder()
	} else {
		t.builders()
	}
}

// roots writes the functions that read and finish buffers with the table as root.
func (t *table) roots() {
	identifier := ""
	if t.file.Root == t.o {
		identifier = t.file.Identifier
	}
	if identifier != "" {
		t.declare(t.name+"Identifier", t.o.At)
		t.f("const %sIdentifier = %q\n\n", t.name, identifier)
	}
	for _, p := range []struct{ name, read, more string }{
		{"", "offset", ""},
		{"SizePrefixed", "offset+flatbuffers.SizeUint32", "+flatbuffers.SizeUint32"},
	} {
		root, finish, has := "Get"+p.name+"RootAs"+t.name, "Finish"+p.name+t.name+"Buffer", p.name+t.name+"BufferHasIdentifier"
		t.declare(root, t.o.At)
		t.f("func %s(buf []byte, offset flatbuffers.UOffsetT) *%s {\n", root, t.name)
		t.f("n := flatbuffers.GetUOffsetT(buf[%s:])\nx := &%s{}\nx.Init(buf, n+offset%s)\nreturn x\n}\n\n", p.read, t.name, p.more)
		t.declare(finish, t.o.At)
		t.f("func %s(builder *flatbuffers.Builder, offset flatbuffers.UOffsetT) {\n", finish)
		if identifier == "" {
			t.f("builder.Finish%s(offset)\n}\n\n", p.name)
			continue
		}
		t.f("identifierBytes := []byte(%sIdentifier)\nbuilder.Finish%sWithFileIdentifier(offset, identifierBytes)\n}\n\n", t.name, p.name)
		t.declare(has, t.o.At)
		t.f("func %s(buf []byte) bool {\nreturn flatbuffers.%sBufferHasIdentifier(buf, %sIdentifier)\n}\n\n", has, p.name, t.name)
	}
}

// method begins a method of the table that is named after a field.
func (t *table) method(f *fbs.Field, name, signature string) {
	t.member(t.name, name, f.At)
	t.f("func (rcv *%s) %s%s {\n", t.name, name, signature)
}

// present begins the code for a field that is there; absent ends it.
func (t *table) present(f *fbs.Field) {
	t.f("o := flatbuffers.UOffsetT(rcv._tab.Offset(%d))\nif o != 0 {\n", f.Offset)
}

func (t *table) absent(result string) { t.f("}\nreturn %s\n}\n\n", result) }

// accessors writes the methods that read a field.
func (t *table) accessors(f *fbs.Field) {
	name, ty := Exported(f.Name), f.Type
	t.doc(f.Doc)
	switch {
	case ty.Base.Scalar():
		t.scalar(f, name)
	case ty.Base == fbs.Obj && t.o.Struct:
		of := t.objectType(ty.Object)
		t.method(f, name, "(obj *"+of+") *"+of)
		t.f("if obj == nil {\nobj = new(%s)\n}\nobj.Init(rcv._tab.Bytes, rcv._tab.Pos+%d)\nreturn obj\n}\n\n", of, f.Offset)
	case ty.Base == fbs.Obj:
		of := t.objectType(ty.Object)
		t.method(f, name, "(obj *"+of+") *"+of)
		t.present(f)
		if ty.Struct() {
			t.f("x := o + rcv._tab.Pos\n")
		} else {
			t.f("x := rcv._tab.Indirect(o + rcv._tab.Pos)\n")
		}
		t.f("if obj == nil {\nobj = new(%s)\n}\nobj.Init(rcv._tab.Bytes, x)\nreturn obj\n", of)
		t.absent("nil")
	case ty.Base == fbs.String:
		t.method(f, name, "() []byte")
		t.present(f)
		t.f("return rcv._tab.ByteVector(o + rcv._tab.Pos)\n")
		t.absent("nil")
	case ty.Base == fbs.Union:
		t.method(f, name, "(obj *flatbuffers.Table) bool")
		t.present(f)
		t.f("rcv._tab.Union(obj, o)\nreturn true\n")
		t.absent("false")
	case ty.Element == fbs.Obj:
		t.objects(f, name)
	default:
		t.elements(f, name)
	}
	if ty.Base != fbs.Vector {
		return
	}
	t.method(f, name+"Length", "() int")
	t.present(f)
	t.f("return rcv._tab.VectorLen(o)\n")
	t.absent("0")
	if ty.Element == fbs.UByte {
		t.method(f, name+"Bytes", "() []byte")
		t.present(f)
		t.f("return rcv._tab.ByteVector(o + rcv._tab.Pos)\n")
		t.absent("nil")
	}
}

func (t *table) scalar(f *fbs.Field, name string) {
	ty := f.Type
	get := "rcv._tab.Get" + accessor(ty.Base)
	if t.o.Struct {
		t.method(f, name, "() "+t.basic(ty))
		t.f("return %s\n}\n", t.toEnum(ty, get+"(rcv._tab.Pos + flatbuffers.UOffsetT("+itoa(f.Offset)+"))"))
		return
	}
	value := t.toEnum(ty, get+"(o + rcv._tab.Pos)")
	if f.Optional {
		t.method(f, name, "() *"+t.basic(ty))
		t.present(f)
		t.f("v := %s\nreturn &v\n", value)
	} else {
		t.method(f, name, "() "+t.basic(ty))
		t.present(f)
		t.f("return %s\n", value)
	}
	t.absent(t.constant(f))
}

// objects writes the accessors of a vector of tables or structs.
func (t *table) objects(f *fbs.Field, name string) {
	of := t.objectType(f.Type.Object)
	t.method(f, name, "(obj *"+of+", j int) bool")
	t.present(f)
	t.f("x := rcv._tab.Vector(o)\nx += flatbuffers.UOffsetT(j) * %d\n", f.Type.Of().Size())
	if !f.Type.Object.Struct {
		t.f("x = rcv._tab.Indirect(x)\n")
	}
	t.f("obj.Init(rcv._tab.Bytes, x)\nreturn true\n")
	t.absent("false")
	if key := f.Type.Object.Key; key != nil && !f.Type.Object.Struct {
		t.method(f, name+"ByKey", "(obj *"+of+", key "+t.native(key.Type)+") bool")
		t.present(f)
		t.f("x := rcv._tab.Vector(o)\nreturn obj.LookupByKey(key, x, rcv._tab.Bytes)\n")
		t.absent("false")
	}
}

// elements writes the accessor of a vector of numbers or strings.
func (t *table) elements(f *fbs.Field, name string) {
	element := f.Type.Of()
	result, get, zero := "[]byte", "rcv._tab.ByteVector", "nil"
	if element.Base.Scalar() {
		result, get, zero = t.basic(element), "rcv._tab.Get"+accessor(element.Base), "0"
		if element.Base == fbs.Bool {
			zero = "false"
		}
	}
	t.method(f, name, "(j int) "+result)
	t.present(f)
	t.f("a := rcv._tab.Vector(o)\nreturn %s\n", t.toEnum(element, get+"(a + flatbuffers.UOffsetT(j*"+itoa(element.Size())+"))"))
	t.absent(zero)
}

// mutator writes the method that changes a number in its place.
func (t *table) mutator(f *fbs.Field) {
	ty, name := f.Type, "Mutate"+Exported(f.Name)
	switch {
	case ty.Base.Scalar() && t.o.Struct:
		t.doc(f.Doc)
		t.method(f, name, "(n "+t.basic(ty)+") bool")
		t.f("return rcv._tab.Mutate%s(rcv._tab.Pos+flatbuffers.UOffsetT(%d), %s)\n}\n\n", accessor(ty.Base), f.Offset, t.toBasic(ty, "n"))
	case ty.Base.Scalar():
		t.doc(f.Doc)
		t.method(f, name, "(n "+t.basic(ty)+") bool")
		t.f("return rcv._tab.Mutate%sSlot(%d, %s)\n}\n\n", accessor(ty.Base), f.Offset, t.toBasic(ty, "n"))
	case ty.Series() && ty.Element.Scalar():
		element := ty.Of()
		t.doc(f.Doc)
		t.method(f, name, "(j int, n "+t.basic(element)+") bool")
		t.present(f)
		t.f("a := rcv._tab.Vector(o)\nreturn rcv._tab.Mutate%s(a+flatbuffers.UOffsetT(j*%d), %s)\n", accessor(element.Base), element.Size(), t.toBasic(element, "n"))
		t.absent("false")
	}
}

// keys writes what finds a table by its key in a sorted vector.
func (t *table) keys(f *fbs.Field) {
	name := Exported(f.Name)
	text := f.Type.Base == fbs.String
	t.declare(t.name+"KeyCompare", t.o.At)
	t.f("func %sKeyCompare(o1, o2 flatbuffers.UOffsetT, buf []byte) bool {\nobj1 := &%s{}\nobj2 := &%s{}\n", t.name, t.name, t.name)
	t.f("obj1.Init(buf, flatbuffers.UOffsetT(len(buf))-o1)\nobj2.Init(buf, flatbuffers.UOffsetT(len(buf))-o2)\n")
	switch {
	case text:
		t.f("return string(obj1.%s()) < string(obj2.%s())\n}\n\n", name, name)
	case f.Type.Base == fbs.Bool: // flatc compares them with <, which Go does not have
		t.f("return !obj1.%s() && obj2.%s()\n}\n\n", name, name)
	default:
		t.f("return obj1.%s() < obj2.%s()\n}\n\n", name, name)
	}
	t.method(f, "LookupByKey", "(key "+t.native(f.Type)+", vectorLocation flatbuffers.UOffsetT, buf []byte) bool")
	t.f("span := flatbuffers.GetUOffsetT(buf[vectorLocation-4:])\nstart := flatbuffers.UOffsetT(0)\n")
	if text {
		t.f("bKey := []byte(key)\n")
	}
	t.f("for span != 0 {\nmiddle := span / 2\ntableOffset := flatbuffers.GetIndirectOffset(buf, vectorLocation+4*(start+middle))\n")
	t.f("obj := &%s{}\nobj.Init(buf, tableOffset)\n", t.name)
	switch {
	case text:
		t.need("bytes")
		t.f("comp := bytes.Compare(obj.%s(), bKey)\n", name)
	case f.Type.Base == fbs.Bool:
		t.f("val := obj.%s()\ncomp := 0\nif val && !key {\ncomp = 1\n} else if !val && key {\ncomp = -1\n}\n", name)
	default:
		t.f("val := obj.%s()\ncomp := 0\nif val > key {\ncomp = 1\n} else if val < key {\ncomp = -1\n}\n", name)
	}
	t.f("if comp > 0 {\nspan = middle\n} else if comp < 0 {\nmiddle += 1\nstart += middle\nspan -= middle\n} else {\nrcv.Init(buf, tableOffset)\nreturn true\n}\n}\nreturn false\n}\n\n")
}
