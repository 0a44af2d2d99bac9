package fbcode

import (
	"strconv"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

func itoa(n int) string { return strconv.Itoa(n) }

// builders writes the functions that build a table.
func (t *table) builders() {
	t.declare(t.name+"Start", t.o.At)
	t.f("func %sStart(builder *flatbuffers.Builder) {\nbuilder.StartObject(%d)\n}\n", t.name, len(t.o.Fields))
	for _, f := range t.o.Fields {
		if f.Deprecated {
			continue
		}
		name, v, ty := Exported(f.Name), variable(f.Name), f.Type
		param, value := "flatbuffers.UOffsetT", "flatbuffers.UOffsetT("+v+")"
		if ty.Base.Scalar() {
			param, value = t.basic(ty), t.toBasic(ty, v)
		}
		t.declare(t.name+"Add"+name, f.At)
		t.f("func %sAdd%s(builder *flatbuffers.Builder, %s %s) {\n", t.name, name, v, param)
		zero := "0"
		if ty.Base.Scalar() {
			zero = t.constant(f)
		}
		if ty.Base.Scalar() && f.Optional {
			t.f("builder.Prepend%s(%s)\nbuilder.Slot(%d)\n}\n", kind(ty), value, f.Slot())
		} else {
			t.f("builder.Prepend%sSlot(%d, %s, %s)\n}\n", kind(ty), f.Slot(), value, zero)
		}
		if ty.Base == fbs.Vector {
			t.declare(t.name+"Start"+name+"Vector", f.At)
			t.f("func %sStart%sVector(builder *flatbuffers.Builder, numElems int) flatbuffers.UOffsetT {\n", t.name, name)
			t.f("return builder.StartVector(%d, numElems, %d)\n}\n", ty.Of().Size(), ty.Of().Align())
		}
	}
	t.declare(t.name+"End", t.o.At)
	t.f("func %sEnd(builder *flatbuffers.Builder) flatbuffers.UOffsetT {\nreturn builder.EndObject()\n}\n\n", t.name)
}

// structBuilder writes the function that builds a struct.
func (t *table) structBuilder() {
	t.declare("Create"+t.name, t.o.At)
	t.f("func Create%s(builder *flatbuffers.Builder", t.name)
	seen := make(map[string]bool)
	t.structArgs(t.o, "", func(v string, f *fbs.Field) {
		if seen[v] {
			t.wrong(f.At, "the parameter %s of Create%s would occur twice in Go: rename a field", v, t.name)
		}
		seen[v] = true
		t.f(", %s %s", v, t.basic(f.Type))
	})
	t.f(") flatbuffers.UOffsetT {\n")
	t.structBody(t.o, "")
	t.f("return builder.Offset()\n}\n\n")
}

// structArgs calls each for the numbers in a struct and the structs in it.
func (t *table) structArgs(o *fbs.Object, prefix string, each func(name string, f *fbs.Field)) {
	for _, f := range o.Fields {
		if f.Type.Struct() {
			t.structArgs(f.Type.Object, prefix+f.Name+"_", each)
		} else {
			each(prefix+variable(f.Name), f)
		}
	}
}

func (t *table) structBody(o *fbs.Object, prefix string) {
	t.f("builder.Prep(%d, %d)\n", o.Align, o.Size)
	for i := len(o.Fields) - 1; i >= 0; i-- {
		f := o.Fields[i]
		if f.Padding > 0 {
			t.f("builder.Pad(%d)\n", f.Padding)
		}
		if f.Type.Struct() {
			t.structBody(f.Type.Object, prefix+f.Name+"_")
		} else {
			t.f("builder.Prepend%s(%s)\n", accessor(f.Type.Base), t.toBasic(f.Type, prefix+variable(f.Name)))
		}
	}
}
