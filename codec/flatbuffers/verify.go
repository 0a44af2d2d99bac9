package flatbuffers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/anser-rpc/anser/codec/internal/shape"
)

// MaxDepth is the maximum nesting depth of tables.
const MaxDepth = shape.MaxDepth

var (
	errBounds = errors.New("an offset in the buffer points beyond it")
	errText   = errors.New("a string in the buffer has no end, or is not UTF-8")
	errDepth  = fmt.Errorf("tables are nested deeper than %d levels", MaxDepth)
	errWork   = errors.New("the buffer refers to its parts too often: send fewer references to shared parts")
)

// workPerByte bounds the time of a verification, and the amplification by unpacking: a table,
// vector or string can be referred to many times, but in total not more often than the size of the
// buffer permits.
const workPerByte = 4

// verification visits everything that a program can reach from the root, according to the schema.
// Integers have 64 bits, so that sums of 32-bit values in the buffer do not overflow.
type verification struct {
	*Schema
	data []byte
	work int // remaining work
}

func (s *Schema) verify(data []byte, root *objectType) error {
	v := verification{s, data, workPerByte*len(data) + 64}
	at, err := v.follow(0)
	if err != nil {
		return err
	}
	return v.table(at, root, 1)
}

func (v *verification) spend(n int) error {
	if v.work -= n; v.work < 0 {
		return errWork
	}
	return nil
}

// has reports whether there are n bytes at a position.
func (v *verification) has(at, n uint64) bool {
	return at <= uint64(len(v.data)) && n <= uint64(len(v.data))-at
}

func (v *verification) uint16(at uint64) (uint64, error) {
	if !v.has(at, 2) {
		return 0, errBounds
	}
	return uint64(binary.LittleEndian.Uint16(v.data[at:])), nil
}

func (v *verification) uint32(at uint64) (uint64, error) {
	if !v.has(at, 4) {
		return 0, errBounds
	}
	return uint64(binary.LittleEndian.Uint32(v.data[at:])), nil
}

// follow returns the target of the offset at a position.
func (v *verification) follow(at uint64) (uint64, error) {
	off, err := v.uint32(at)
	if err == nil && (off == 0 || !v.has(at+off, 4)) {
		err = errBounds
	}
	return at + off, err
}

// layout is a table with its vtable.
type layout struct {
	at, size           uint64
	vtable, vtableSize uint64
}

func (v *verification) layout(at uint64) (l layout, err error) {
	back, err := v.uint32(at)
	if err != nil {
		return l, err
	}
	vtable := int64(at) - int64(int32(back))
	if vtable < 0 {
		return l, errBounds
	}
	l.at, l.vtable = at, uint64(vtable)
	if l.vtableSize, err = v.uint16(l.vtable); err != nil {
		return l, err
	}
	if l.size, err = v.uint16(l.vtable + 2); err != nil {
		return l, err
	}
	if l.vtableSize < 4 || l.vtableSize%2 != 0 || !v.has(l.vtable, l.vtableSize) || l.size < 4 || !v.has(at, l.size) {
		return l, errBounds
	}
	return l, nil
}

// field returns the position of a table's field of that size in bytes, 0 if it is absent.
func (v *verification) field(l layout, slot, size uint64) (uint64, error) {
	if slot+2 > l.vtableSize {
		return 0, nil
	}
	off, err := v.uint16(l.vtable + slot)
	if err != nil || off == 0 {
		return 0, err
	}
	if off < 4 || off+size > l.size {
		return 0, errBounds
	}
	return l.at + off, nil
}

func (v *verification) table(at uint64, o *objectType, depth int) error {
	if depth > MaxDepth {
		return errDepth
	}
	if err := v.spend(4); err != nil {
		return err
	}
	l, err := v.layout(at)
	if err != nil {
		return err
	}
	for i := range o.fields {
		f := &o.fields[i]
		at, err := v.field(l, f.slot, v.inline(f.fieldType))
		switch {
		case err != nil:
		case at != 0:
			err = v.value(l, at, f, depth)
		case f.required:
			err = errors.New("it is required but missing")
		}
		if err != nil {
			return fmt.Errorf("field %s of %s: %w", f.name, o.name, err)
		}
	}
	return nil
}

func (v *verification) value(l layout, at uint64, f *field, depth int) error {
	switch f.base {
	case typeVector:
		return v.vector(l, at, f, depth)
	case typeUnion:
		// The type is in the preceding slot.
		kind, err := v.field(l, f.slot-2, 1)
		if err != nil || kind == 0 {
			return err
		}
		return v.union(at, v.data[kind], f.index, depth)
	}
	return v.reference(at, f.fieldType, depth)
}

// reference verifies the target of a position, if its type is a reference.
func (v *verification) reference(at uint64, t fieldType, depth int) error {
	switch {
	case t.base == typeString:
		return v.text(at)
	case t.base == typeObject && !v.objects[t.index].fixed:
		to, err := v.follow(at)
		if err != nil {
			return err
		}
		return v.table(to, v.objects[t.index], depth+1)
	}
	return nil
}

// union verifies a member. One that is not in the schema is newer than it, and is not read.
func (v *verification) union(at uint64, kind byte, index, depth int) error {
	t, ok := v.enums[index].members[kind]
	if !ok {
		return nil
	}
	if t.base == typeObject && v.objects[t.index].fixed {
		to, err := v.follow(at)
		if err == nil && !v.has(to, v.objects[t.index].size) {
			err = errBounds
		}
		return err
	}
	return v.reference(at, t, depth)
}

func (v *verification) text(at uint64) error {
	to, err := v.follow(at)
	if err != nil {
		return err
	}
	n, err := v.uint32(to)
	if err != nil {
		return err
	}
	if !v.has(to+4, n+1) {
		return errBounds
	}
	if err := v.spend(int(n) + 1); err != nil {
		return err
	}
	if text := v.data[to+4:][:n+1]; text[n] != 0 || !utf8.Valid(text[:n]) {
		return errText
	}
	return nil
}

func (v *verification) vector(l layout, at uint64, f *field, depth int) error {
	to, err := v.follow(at)
	if err != nil {
		return err
	}
	n, err := v.uint32(to)
	if err != nil {
		return err
	}
	element := fieldType{base: f.element, index: f.index}
	size := v.inline(element)
	if !v.has(to+4, n*size) {
		return errBounds
	}
	first := to + 4
	if err := v.spend(int(n*size) + 1); err != nil {
		return err
	}
	if f.element == typeUnion {
		return v.unions(l, first, n, f, depth)
	}
	if f.element != typeString && f.element != typeObject {
		return nil
	}
	for i := range n {
		if err := v.reference(first+i*size, element, depth); err != nil {
			return err
		}
	}
	return nil
}

// unions verifies a vector of members, whose types are a vector in the preceding slot.
func (v *verification) unions(l layout, first, n uint64, f *field, depth int) error {
	at, err := v.field(l, f.slot-2, 4)
	if err != nil {
		return err
	}
	if at == 0 {
		return errors.New("the types of a vector of unions are missing")
	}
	kinds, err := v.follow(at)
	if err != nil {
		return err
	}
	if count, err := v.uint32(kinds); err != nil || count != n || !v.has(kinds+4, n) {
		return errBounds
	}
	for i := range n {
		if err := v.union(first+4*i, v.data[kinds+4+i], f.index, depth); err != nil {
			return err
		}
	}
	return nil
}
