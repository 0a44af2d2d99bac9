package flatbuffers

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/google/flatbuffers/go"
)

// FromJSON returns a buffer whose root is the table with the given full name, from JSON as ToJSON
// writes it. It also takes names of several values of an enum whose values are bits, numbers of
// enum values, and numbers in quotes. A field that is null is absent, and members that are no
// fields of the schema are ignored, so that schemas can grow. Vectors of tables with a key stay in
// their order.
func (s *Schema) FromJSON(table string, text []byte) ([]byte, error) {
	o := s.table(table)
	if o == nil {
		return nil, fmt.Errorf("the schema has no table %q", table)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is something behind the JSON text")
	}
	r := &jsonReader{Schema: s, b: flatbuffers.NewBuilder(max(64, len(text)))}
	root, err := r.table(v, o, 1)
	if err != nil {
		return nil, err
	}
	r.b.Finish(root)
	return r.b.FinishedBytes(), nil
}

// jsonReader builds a buffer.
type jsonReader struct {
	*Schema
	b *flatbuffers.Builder
}

// describeJSON names the kind of a JSON value.
func describeJSON(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case json.Number:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "an array"
	}
	return "an object"
}

func wanted(what string, v any) error { return fmt.Errorf("it is %s: want %s", describeJSON(v), what) }

func inField(name string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// part is a field of a table that is being built.
type part struct {
	f      *field
	offset flatbuffers.UOffsetT // of what is elsewhere
	bits   uint64               // of a number
	fixed  []byte               // of a struct
}

func (r *jsonReader) table(v any, o *objectType, depth int) (flatbuffers.UOffsetT, error) {
	members, ok := v.(map[string]any)
	switch {
	case !ok:
		return 0, wanted("an object for table "+o.name, v)
	case depth > MaxDepth:
		return 0, errDepth
	}
	var parts []part
	slots := 0
	for i := range o.fields {
		f := &o.fields[i]
		slots = max(slots, int(f.slot/2-1))
		value := members[f.name]
		if value == nil || f.retired {
			if f.required {
				return 0, inField(f.name, errors.New("it is required but missing"))
			}
			continue
		}
		p, err := r.part(members, value, f, depth)
		if err != nil {
			return 0, inField(f.name, err)
		}
		parts = append(parts, p)
	}
	// The largest first, so that little is lost to alignment.
	slices.SortStableFunc(parts, func(a, b part) int { return r.width(b.f) - r.width(a.f) })
	r.b.StartObject(slots)
	for _, p := range parts {
		n := int(p.f.slot/2 - 2)
		switch {
		case p.fixed != nil:
			r.fixed(p.fixed, r.objects[p.f.index].align)
		case p.f.base >= typeString:
			r.b.PrependUOffsetT(p.offset)
		case !p.f.optional && p.bits == p.f.standard():
			continue
		default:
			r.number(p.bits, scalars[p.f.base])
		}
		r.b.Slot(n)
	}
	return r.b.EndObject(), nil
}

func (r *jsonReader) width(f *field) int {
	if f.base == typeObject && r.objects[f.index].fixed {
		return r.objects[f.index].align
	}
	return int(r.inline(f.fieldType))
}

// standard returns the default of a number by its bits.
func (f *field) standard() uint64 {
	switch f.base {
	case typeFloat:
		return uint64(math.Float32bits(float32(f.real)))
	case typeDouble:
		return math.Float64bits(f.real)
	}
	return uint64(f.integer) & mask(f.base)
}

// number writes a number of the given size.
func (r *jsonReader) number(bits, size uint64) {
	switch size {
	case 1:
		r.b.PrependUint8(uint8(bits))
	case 2:
		r.b.PrependUint16(uint16(bits))
	case 4:
		r.b.PrependUint32(uint32(bits))
	default:
		r.b.PrependUint64(bits)
	}
}

// fixed writes the bytes of a struct.
func (r *jsonReader) fixed(data []byte, align int) {
	r.b.Prep(align, len(data))
	for i := len(data) - 1; i >= 0; i-- {
		r.b.PlaceByte(data[i])
	}
}

// part reads the value of a field, and builds what the table refers to.
func (r *jsonReader) part(members map[string]any, v any, f *field, depth int) (p part, err error) {
	p.f = f
	switch {
	case f.base == typeVector:
		p.offset, err = r.vector(members, v, f, depth)
	case f.base == typeUnion:
		var kind byte
		if kind, err = r.kind(members[f.name+"_type"], f); err == nil {
			p.offset, err = r.member(v, kind, f, depth)
		}
	case f.base == typeObject && r.objects[f.index].fixed:
		p.fixed = make([]byte, r.objects[f.index].size)
		err = r.object(p.fixed, v, r.objects[f.index])
	case f.base >= typeString:
		p.offset, err = r.reference(v, f.fieldType, depth)
	default:
		p.bits, err = r.scalar(v, f.fieldType)
	}
	return p, err
}

// reference builds a string or a table.
func (r *jsonReader) reference(v any, t fieldType, depth int) (flatbuffers.UOffsetT, error) {
	if t.base == typeObject {
		return r.table(v, r.objects[t.index], depth+1)
	}
	text, ok := v.(string)
	if !ok {
		return 0, wanted("a text", v)
	}
	return r.b.CreateString(text), nil
}

// kind reads the type of a union.
func (r *jsonReader) kind(v any, f *field) (byte, error) {
	e := r.enums[f.index]
	if v == nil {
		var names []string
		for _, v := range e.values[1:] {
			names = append(names, v.name)
		}
		return 0, fmt.Errorf("the member %s_type is missing: it is one of %s", f.name, strings.Join(names, ", "))
	}
	n, err := r.scalar(v, fieldType{base: typeUType, index: f.index})
	return byte(n), err
}

// member builds the value of a union.
func (r *jsonReader) member(v any, kind byte, f *field, depth int) (flatbuffers.UOffsetT, error) {
	t := r.enums[f.index].members[kind]
	switch {
	case t.base == typeNone:
		return 0, fmt.Errorf("union %s has no member %d", r.enums[f.index].name, kind)
	case t.base == typeObject && r.objects[t.index].fixed:
		o := r.objects[t.index]
		data := make([]byte, o.size)
		if err := r.object(data, v, o); err != nil {
			return 0, err
		}
		r.fixed(data, o.align)
		return r.b.Offset(), nil
	}
	return r.reference(v, t, depth)
}

func (r *jsonReader) vector(members map[string]any, v any, f *field, depth int) (flatbuffers.UOffsetT, error) {
	list, ok := v.([]any)
	if !ok {
		return 0, wanted("an array", v)
	}
	element := f.of()
	var kinds []any
	if element.base == typeUnion {
		if kinds, ok = members[f.name+"_type"].([]any); !ok || len(kinds) != len(list) {
			return 0, fmt.Errorf("want as many elements in the array %s_type: the types of the values", f.name)
		}
	}
	offsets, numbers, structs := []flatbuffers.UOffsetT(nil), []uint64(nil), [][]byte(nil)
	for i, v := range list {
		err := r.element(v, kinds, i, f, depth, &offsets, &numbers, &structs)
		if err != nil {
			return 0, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	switch {
	case structs != nil || element.base == typeObject && r.objects[element.index].fixed:
		o := r.objects[element.index]
		r.b.StartVector(int(o.size), len(list), o.align)
		for _, data := range slices.Backward(structs) {
			for i := len(data) - 1; i >= 0; i-- {
				r.b.PlaceByte(data[i])
			}
		}
	case element.base < typeString:
		size := scalars[element.base]
		r.b.StartVector(int(size), len(list), int(size))
		for _, n := range slices.Backward(numbers) {
			r.number(n, size)
		}
	default:
		r.b.StartVector(4, len(list), 4)
		for _, o := range slices.Backward(offsets) {
			r.b.PrependUOffsetT(o)
		}
	}
	return r.b.EndVector(len(list)), nil
}

// element reads an element of a vector.
func (r *jsonReader) element(v any, kinds []any, i int, f *field, depth int, offsets *[]flatbuffers.UOffsetT, numbers *[]uint64, structs *[][]byte) error {
	element := f.of()
	switch {
	case element.base == typeUnion:
		kind, err := r.kind(kinds[i], f)
		if err != nil {
			return err
		}
		o, err := r.member(v, kind, f, depth)
		*offsets = append(*offsets, o)
		return err
	case element.base < typeString:
		n, err := r.scalar(v, element)
		*numbers = append(*numbers, n)
		return err
	case element.base == typeObject && r.objects[element.index].fixed:
		data := make([]byte, r.objects[element.index].size)
		*structs = append(*structs, data)
		return r.object(data, v, r.objects[element.index])
	}
	o, err := r.reference(v, element, depth)
	*offsets = append(*offsets, o)
	return err
}

// object fills in a struct.
func (r *jsonReader) object(data []byte, v any, o *objectType) error {
	members, ok := v.(map[string]any)
	if !ok {
		return wanted("an object for struct "+o.name, v)
	}
	for i := range o.fields {
		f := &o.fields[i]
		if value := members[f.name]; value != nil {
			if err := r.place(data[f.slot:], value, f.fieldType); err != nil {
				return inField(f.name, err)
			}
		}
	}
	return nil
}

// place writes a value of a struct.
func (r *jsonReader) place(data []byte, v any, t fieldType) error {
	switch {
	case t.base == typeArray:
		list, ok := v.([]any)
		if !ok || len(list) != t.length {
			return fmt.Errorf("want an array of %d elements", t.length)
		}
		size := r.inline(t.of())
		for i, v := range list {
			if err := r.place(data[uint64(i)*size:], v, t.of()); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return nil
	case t.base == typeObject:
		o := r.objects[t.index]
		return r.object(data[:o.size], v, o)
	}
	n, err := r.scalar(v, t)
	if err != nil {
		return err
	}
	var bits [8]byte
	binary.LittleEndian.PutUint64(bits[:], n)
	copy(data, bits[:scalars[t.base]])
	return nil
}
