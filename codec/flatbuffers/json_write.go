package flatbuffers

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/flatbuffers/go"
)

// ToJSON appends the JSON of a buffer whose root is the table with the given full name, after it
// verified the buffer. It is the JSON of FlatBuffers: names of fields as in the schema, a union in
// two fields of which the first one, NAME_type, has the name of the member, names of enum values,
// bytes as numbers, and no fields that are absent. Other than flatc's, it has numbers that are not
// finite in quotes: "nan", "inf" and "-inf".
func (s *Schema) ToJSON(dst []byte, table string, data []byte) ([]byte, error) {
	o := s.table(table)
	if o == nil {
		return dst, fmt.Errorf("the schema has no table %q", table)
	}
	if err := s.verify(data, o); err != nil {
		return dst, err
	}
	w := &jsonWriter{s, dst}
	w.table(flatbuffers.Table{Bytes: data, Pos: flatbuffers.GetUOffsetT(data)}, o)
	return w.out, nil
}

// jsonWriter writes verified data.
type jsonWriter struct {
	*Schema
	out []byte
}

func (w *jsonWriter) text(s string) { w.out = append(w.out, s...) }

// list writes n elements between brackets.
func (w *jsonWriter) list(n int, each func(i int)) {
	w.text("[")
	for i := range n {
		if i > 0 {
			w.text(",")
		}
		each(i)
	}
	w.text("]")
}

// key begins a member of an object.
func (w *jsonWriter) key(name string) {
	if w.out[len(w.out)-1] != '{' {
		w.text(",")
	}
	w.quoted(name)
	w.text(":")
}

func (w *jsonWriter) table(t flatbuffers.Table, o *objectType) {
	w.text("{")
	for i := range o.fields {
		f := &o.fields[i]
		off := flatbuffers.UOffsetT(t.Offset(flatbuffers.VOffsetT(f.slot)))
		if off == 0 || f.retired {
			continue
		}
		if f.base == typeUnion || f.base == typeVector && f.element == typeUnion {
			w.union(t, off, f)
			continue
		}
		w.key(f.name)
		if f.base != typeVector {
			w.value(t, t.Pos+off, f.fieldType)
			continue
		}
		element := f.of()
		first, size := t.Vector(off), flatbuffers.UOffsetT(w.inline(element))
		w.list(t.VectorLen(off), func(i int) { w.value(t, first+flatbuffers.UOffsetT(i)*size, element) })
	}
	w.text("}")
}

// inline is the size of a value in its table or vector.
func (s *Schema) inline(t fieldType) uint64 {
	switch {
	case t.base < typeString:
		return scalars[t.base]
	case t.base == typeArray:
		return uint64(t.length) * s.inline(t.of())
	case t.base == typeObject && s.objects[t.index].fixed:
		return s.objects[t.index].size
	}
	return 4
}

// union writes a union or a vector of them. One without a value that is known is left out.
func (w *jsonWriter) union(t flatbuffers.Table, off flatbuffers.UOffsetT, f *field) {
	kinds := flatbuffers.UOffsetT(t.Offset(flatbuffers.VOffsetT(f.slot - 2)))
	if kinds == 0 {
		return
	}
	if f.base == typeUnion {
		if kind := t.GetByte(t.Pos + kinds); kind != 0 && w.knows(f, kind) {
			w.key(f.name)
			w.member(t, t.Pos+off, f, kind)
		}
		return
	}
	w.key(f.name)
	first, of := t.Vector(off), t.Vector(kinds)
	w.list(t.VectorLen(off), func(i int) {
		w.member(t, first+flatbuffers.UOffsetT(4*i), f, t.GetByte(of+flatbuffers.UOffsetT(i)))
	})
}

func (w *jsonWriter) knows(f *field, kind byte) bool {
	_, ok := w.enums[f.index].members[kind]
	return ok
}

// member writes the value of a union, null if it has none that is known.
func (w *jsonWriter) member(t flatbuffers.Table, at flatbuffers.UOffsetT, f *field, kind byte) {
	of := w.enums[f.index].members[kind]
	switch {
	case of.base == typeNone:
		w.text("null")
	case of.base == typeObject && w.objects[of.index].fixed:
		w.fixed(t, t.Indirect(at), w.objects[of.index])
	default:
		w.value(t, at, of)
	}
}

// value writes the value at a position.
func (w *jsonWriter) value(t flatbuffers.Table, at flatbuffers.UOffsetT, of fieldType) {
	switch {
	case of.base == typeString:
		w.quoted(string(t.ByteVector(at)))
	case of.base == typeArray:
		element := of.of()
		size := flatbuffers.UOffsetT(w.inline(element))
		w.list(of.length, func(i int) { w.value(t, at+flatbuffers.UOffsetT(i)*size, element) })
	case of.base != typeObject:
		w.number(t, at, of)
	case w.objects[of.index].fixed:
		w.fixed(t, at, w.objects[of.index])
	default:
		w.table(flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}, w.objects[of.index])
	}
}

// fixed writes a struct.
func (w *jsonWriter) fixed(t flatbuffers.Table, at flatbuffers.UOffsetT, o *objectType) {
	w.text("{")
	for i := range o.fields {
		f := &o.fields[i]
		w.key(f.name)
		w.value(t, at+flatbuffers.UOffsetT(f.slot), f.fieldType)
	}
	w.text("}")
}

// number writes a number, a bool or the value of an enum.
func (w *jsonWriter) number(t flatbuffers.Table, at flatbuffers.UOffsetT, of fieldType) {
	var n int64
	switch of.base {
	case typeBool:
		w.out = strconv.AppendBool(w.out, t.GetByte(at) != 0)
		return
	case typeFloat:
		w.real(float64(t.GetFloat32(at)), 32)
		return
	case typeDouble:
		w.real(t.GetFloat64(at), 64)
		return
	case typeByte:
		n = int64(t.GetInt8(at))
	case typeShort:
		n = int64(t.GetInt16(at))
	case typeUShort:
		n = int64(t.GetUint16(at))
	case typeInt:
		n = int64(t.GetInt32(at))
	case typeUInt:
		n = int64(t.GetUint32(at))
	case typeLong, typeULong:
		n = t.GetInt64(at)
	default:
		n = int64(t.GetByte(at))
	}
	if of.index >= 0 {
		if name := w.enums[of.index].text(n); name != "" {
			w.quoted(name)
			return
		}
	}
	if of.base == typeULong {
		w.out = strconv.AppendUint(w.out, uint64(n), 10)
		return
	}
	w.out = strconv.AppendInt(w.out, n, 10)
}

// text returns the name of a value, several for flags, or "" if it has none.
func (e *enumType) text(n int64) string {
	for _, v := range e.values {
		if v.number == n {
			return v.name
		}
	}
	if !e.flags || n == 0 {
		return ""
	}
	var names []string
	for _, v := range e.values {
		if v.number != 0 && n&v.number == v.number {
			names, n = append(names, v.name), n&^v.number
		}
	}
	if n != 0 {
		return ""
	}
	return strings.Join(names, " ")
}

func (w *jsonWriter) real(n float64, bits int) {
	switch {
	case math.IsNaN(n):
		w.text(`"nan"`)
	case math.IsInf(n, 1):
		w.text(`"inf"`)
	case math.IsInf(n, -1):
		w.text(`"-inf"`)
	default:
		w.out = strconv.AppendFloat(w.out, n, 'g', -1, bits)
	}
}

// quoted writes a text, which is valid UTF-8.
func (w *jsonWriter) quoted(s string) {
	w.text(`"`)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.out = append(w.out, '\\', c)
		case c == '\n':
			w.text(`\n`)
		case c < 0x20 || c == 0x7f:
			w.out = fmt.Appendf(w.out, `\u%04x`, c)
		default:
			w.out = append(w.out, c)
		}
	}
	w.text(`"`)
}
