package fbcode

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

func sorted(m map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// number writes the value of an enum.
func number(n int64, b fbs.Base) string {
	if b.Unsigned() {
		return strconv.FormatUint(uint64(n), 10)
	}
	return strconv.FormatInt(n, 10)
}

func (w *writer) enum(e *fbs.Enum) {
	if e.Union && e.Type != fbs.UType {
		w.wrong(e.At, "union %s has a type of its numbers, for which Go has no code: remove it", e.Name)
	}
	name := Type(e.Name)
	w.need("strconv")
	w.goType(name, e.At, "String")
	w.doc(e.Doc)
	w.f("type %s %s\n\nconst (\n", name, basics[e.Type])
	for _, v := range e.Values {
		w.declare(name+escaped(v.Name), v.At)
		w.doc(v.Doc)
		w.f("%s%s %s = %s\n", name, escaped(v.Name), name, number(v.Number, e.Type))
	}
	w.f(")\n\n")
	w.declare("EnumNames"+name, e.At)
	w.f("var EnumNames%s = map[%s]string{\n", name, name)
	for _, v := range e.Values {
		w.f("%s%s: %q,\n", name, escaped(v.Name), v.Name)
	}
	w.f("}\n\n")
	w.declare("EnumValues"+name, e.At)
	w.f("var EnumValues%s = map[string]%s{\n", name, name)
	for _, v := range e.Values {
		w.f("%q: %s%s,\n", v.Name, name, escaped(v.Name))
	}
	w.f("}\n\n")
	w.f("func (v %s) String() string {\nif s, ok := EnumNames%s[v]; ok {\nreturn s\n}\n", name, name)
	w.f("return %q + strconv.FormatInt(int64(v), 10) + \")\"\n}\n\n", e.Name+"(")
	if e.Union {
		w.union(e)
	}
}

// union writes the object of a union.
func (w *writer) union(e *fbs.Enum) {
	w.need("flatbuffers")
	name, object := Type(e.Name), Object(e.Name)
	w.member(name, "UnPack", e.At)
	w.goType(object, e.At, "Pack")
	w.f("type %s struct {\nType %s\nValue interface{}\n}\n\n", object, name)
	w.f("func (t *%s) Pack(builder *flatbuffers.Builder) flatbuffers.UOffsetT {\nif t == nil {\nreturn 0\n}\nswitch t.Type {\n", object)
	members := e.Values[1:] // without NONE
	for _, v := range members {
		if v.Type.Base != fbs.Obj || v.Type.Object.Struct {
			w.wrong(v.At, "member %s of union %s is not a table, and Go has code for tables only: put it into a table", v.Name, e.Name)
			return
		}
		w.f("case %s%s:\nreturn t.Value.(%s).Pack(builder)\n", name, escaped(v.Name), w.native(v.Type))
	}
	w.f("}\nreturn 0\n}\n\n")
	w.f("func (rcv %s) UnPack(table flatbuffers.Table) *%s {\nswitch rcv {\n", name, object)
	for _, v := range members {
		of := v.Type.Object
		w.f("case %s%s:\nvar x %s\nx.Init(table.Bytes, table.Pos)\n", name, escaped(v.Name), w.ref(&of.Definition, Type(of.Name)))
		w.f("return &%s{Type: %s%s, Value: x.UnPack()}\n", object, name, escaped(v.Name))
	}
	w.f("}\nreturn nil\n}\n\n")
}
