package flatbuffers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/google/flatbuffers/go"
)

// A Schema is a binary schema, the output of flatc with -b --schema. It is safe for concurrent
// use.
type Schema struct {
	objects []*objectType
	enums   []*enumType
}

// objectType is a table or struct.
type objectType struct {
	name   string
	fixed  bool // it is a struct
	size   uint64
	align  int // of a struct
	fields []field
}

type field struct {
	name     string
	slot     uint64 // of the vtable; in a struct the place of the field
	required bool
	optional bool // a number that may be absent
	retired  bool // it is deprecated
	integer  int64
	real     float64 // the defaults
	fieldType
}

type fieldType struct {
	base, element baseType
	index         int // of an object or enum
	length        int // of an array
}

// of returns the type of the elements of a vector or array.
func (t fieldType) of() fieldType { return fieldType{base: t.element, index: t.index} }

// enumType is an enum or union.
type enumType struct {
	name    string
	flags   bool
	values  []enumValue
	members map[byte]fieldType // of a union
}

type enumValue struct {
	name   string
	number int64
}

type baseType uint8

// The base types of FlatBuffers' reflection.
const (
	typeNone   baseType = 0
	typeUType  baseType = 1
	typeBool   baseType = 2
	typeByte   baseType = 3
	typeUByte  baseType = 4
	typeShort  baseType = 5
	typeUShort baseType = 6
	typeInt    baseType = 7
	typeUInt   baseType = 8
	typeLong   baseType = 9
	typeULong  baseType = 10
	typeFloat  baseType = 11
	typeDouble baseType = 12
	typeString baseType = 13
	typeVector baseType = 14
	typeObject baseType = 15
	typeUnion  baseType = 16
	typeArray  baseType = 17
)

// scalars holds the sizes in bytes of the numeric base types.
var scalars = [typeString]uint64{0, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8}

// ParseSchema parses a binary schema. It does not keep bfbs. The schema is trusted: it is part of
// the program.
func ParseSchema(bfbs []byte) (s *Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("the schema is broken: pass what flatc -b --schema wrote: %v", p)
		}
	}()
	if len(bfbs) < 8 || string(bfbs[4:8]) != "BFBS" {
		return nil, fmt.Errorf("this is not a binary schema: pass what flatc -b --schema wrote")
	}
	root := reflected{flatbuffers.Table{Bytes: bfbs, Pos: flatbuffers.GetUOffsetT(bfbs)}}
	s = new(Schema)
	for o := range root.tables(0) {
		s.objects = append(s.objects, o.object())
	}
	for e := range root.tables(1) {
		s.enums = append(s.enums, e.enum())
	}
	return s, s.check()
}

// check validates the properties that the verifier relies on.
func (s *Schema) check() error {
	types := func(yield func(fieldType) bool) {
		for _, o := range s.objects {
			for _, f := range o.fields {
				if !yield(f.fieldType) {
					return
				}
			}
		}
		for _, e := range s.enums {
			for _, t := range e.members {
				if !yield(t) {
					return
				}
			}
		}
	}
	for t := range types {
		inner := t.base
		if inner == typeVector || inner == typeArray {
			inner = t.element
		}
		switch {
		case inner == typeObject && (t.index < 0 || t.index >= len(s.objects)), inner == typeUnion && (t.index < 0 || t.index >= len(s.enums)):
			return fmt.Errorf("the schema is broken: it has no type %d", t.index)
		case t.base > typeArray || t.base == typeArray && inner >= typeString && inner != typeObject || t.base == typeVector && inner >= typeVector && inner != typeObject && inner != typeUnion:
			return fmt.Errorf("the schema has the base type %d, which is newer than this package: do not use 64-bit offsets and vectors", t.base)
		}
	}
	return nil
}

// Table returns the verifier of buffers whose root is the table with the given full name, such as
// "example.Person".
func (s *Schema) Table(name string) (Verifier, error) {
	names := make(map[string]bool)
	for _, o := range s.objects {
		names[o.name] = !o.fixed
	}
	if o := s.table(name); o != nil {
		return func(data []byte) error { return s.verify(data, o) }, nil
	}
	maps.DeleteFunc(names, func(_ string, table bool) bool { return !table })
	return nil, fmt.Errorf("the schema has no table %q: it has %q", name, slices.Sorted(maps.Keys(names)))
}

// table returns the table with the full name, or nil.
func (s *Schema) table(name string) *objectType {
	for _, o := range s.objects {
		if o.name == name && !o.fixed {
			return o
		}
	}
	return nil
}

// reflected is a table of a binary schema, whose own schema is FlatBuffers' reflection.fbs.
type reflected struct{ flatbuffers.Table }

// slot returns the offset of the field with that id in a vtable.
func slot(id int) flatbuffers.VOffsetT { return flatbuffers.VOffsetT(4 + 2*id) }

func (r reflected) table(id int) (reflected, bool) {
	off := flatbuffers.UOffsetT(r.Offset(slot(id)))
	if off == 0 {
		return reflected{}, false
	}
	return reflected{flatbuffers.Table{Bytes: r.Bytes, Pos: r.Indirect(off + r.Pos)}}, true
}

func (r reflected) tables(id int) func(yield func(reflected) bool) {
	return func(yield func(reflected) bool) {
		off := flatbuffers.UOffsetT(r.Offset(slot(id)))
		if off == 0 {
			return
		}
		first := r.Vector(off)
		for i := range r.VectorLen(off) {
			if !yield(reflected{flatbuffers.Table{Bytes: r.Bytes, Pos: r.Indirect(first + flatbuffers.UOffsetT(4*i))}}) {
				return
			}
		}
	}
}

// text returns the name, which is the first field of all tables that have one, and of attributes.
func (r reflected) text() string {
	if off := flatbuffers.UOffsetT(r.Offset(slot(0))); off != 0 {
		return string(r.ByteVector(off + r.Pos))
	}
	return ""
}

func (r reflected) object() *objectType {
	o := &objectType{
		name: r.text(), fixed: r.GetBoolSlot(slot(2), false),
		align: int(r.GetInt32Slot(slot(3), 1)), size: uint64(r.GetInt32Slot(slot(4), 0)),
	}
	for f := range r.tables(1) {
		t, _ := f.table(1)
		o.fields = append(o.fields, field{
			name: f.text(), slot: uint64(f.GetUint16Slot(slot(3), 0)), required: f.GetBoolSlot(slot(7), false), fieldType: t.fieldType(),
			optional: f.GetBoolSlot(slot(11), false), retired: f.GetBoolSlot(slot(6), false),
			integer: f.GetInt64Slot(slot(4), 0), real: f.GetFloat64Slot(slot(5), 0),
		})
	}
	slices.SortFunc(o.fields, func(a, b field) int { return cmp.Compare(a.slot, b.slot) })
	return o
}

func (r reflected) fieldType() fieldType {
	return fieldType{
		base:    baseType(r.GetByteSlot(slot(0), 0)),
		element: baseType(r.GetByteSlot(slot(1), 0)),
		index:   int(r.GetInt32Slot(slot(2), -1)),
		length:  int(r.GetUint16Slot(slot(3), 0)),
	}
}

func (r reflected) enum() *enumType {
	e := &enumType{name: r.text(), members: make(map[byte]fieldType)}
	for a := range r.tables(4) {
		e.flags = e.flags || a.text() == "bit_flags"
	}
	for v := range r.tables(1) {
		n := v.GetInt64Slot(slot(1), 0)
		e.values = append(e.values, enumValue{v.text(), n})
		if t, ok := v.table(3); ok {
			e.members[byte(n)] = t.fieldType()
		}
	}
	return e
}
