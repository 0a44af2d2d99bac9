package fbs

import (
	"math"
	"slices"
	"strings"
)

// maxFields is the number of fields that a vtable has place for.
const maxFields = (math.MaxUint16 - 4) / 2

// maxAlign is the largest alignment of a struct, in bytes.
const maxAlign = 32

// maxStruct is the size of the largest struct, in bytes.
const maxStruct = math.MaxInt32

// objectTypes looks up the types of the fields of an object, and lays it out.
func (c *checker) objectTypes(o *Object) {
	named := make(map[string]*Field)
	fields := make([]*Field, 0, len(o.Fields))
	ok := true
	add := func(f *Field) {
		if before := named[f.Name]; before != nil {
			c.wrong(f.At, "%s has two fields %s: rename one of them", o.Name, f.Name)
		}
		named[f.Name] = f
		fields = append(fields, f)
	}
	for _, f := range o.Fields {
		var found bool
		if f.Type, found = c.typeOf(f.ref); !found {
			ok = false
			c.attributes(f.Attributes)
			continue
		}
		if other := c.object(&reference{name: f.Name, namespace: o.Namespace}); other != nil && other.order <= o.order {
			c.wrong(f.At, "field %s has the name of a %s: rename one of them", f.Name, kindOf(other))
		}
		c.field(o, f)
		if f.Type.Base == Union || f.Type.Series() && f.Type.Element == Union {
			f.TypeField = &Field{Name: f.Name + "_type", Type: Type{Base: UType, Enum: f.Type.Enum}, At: f.At, Deprecated: f.Deprecated}
			if f.Type.Series() {
				f.TypeField.Type = Type{Base: Vector, Element: UType, Enum: f.Type.Enum}
				f.TypeField.Optional, f.TypeField.Required = f.Optional, f.Required
			}
			add(f.TypeField)
		}
		add(f)
	}
	o.Fields = fields
	if len(fields) > maxFields {
		c.wrong(o.At, "table %s has %d fields, more than %d", o.Name, len(fields), maxFields)
		return
	}
	switch {
	case !ok:
	case o.Struct:
		c.layStruct(o)
	default:
		c.ids(o)
		for i, f := range o.Fields {
			f.Offset = 4 + 2*i
		}
	}
	c.clashes(o, named)
}

func kindOf(o *Object) string {
	if o.Struct {
		return "struct"
	}
	return "table"
}

// field checks a field and takes over its attributes.
func (c *checker) field(o *Object, f *Field) {
	t := f.Type
	c.attributes(f.Attributes)
	has := func(name string) bool { return f.Attributes.Get(name) != nil }
	f.Deprecated, f.Key, f.Shared = has("deprecated"), has("key"), has("shared")
	if o.Struct {
		c.structField(o, f)
	} else {
		if t.Base == Array {
			c.wrong(f.position(), "field %s is an array of fixed length, which only structs have: remove the length, or use a struct", f.Name)
		}
		c.wide(f)
		c.assign(f)
		c.presence(f)
	}
	if f.Key {
		element := t
		if t.Base == Array {
			element = t.Of()
		}
		switch {
		case o.Key != nil:
			c.wrong(f.At, "%s has two keys, %s and %s: remove one", o.Name, o.Key.Name, f.Name)
		case !element.Base.Scalar() && t.Base != String && !element.Struct():
			c.wrong(f.At, "field %s cannot be a key: a key is a number, a string or a struct", f.Name)
		case f.Optional && t.Base.Scalar():
			c.wrong(f.At, "field %s is optional and cannot be a key", f.Name)
		}
		o.Key = f
	}
	c.special(f)
}

// structField checks a field of a struct.
func (c *checker) structField(o *Object, f *Field) {
	element := f.Type
	if element.Base == Array {
		element = element.Of()
	}
	switch {
	case element.Base.Scalar():
	case element.Base == Obj && element.Object == o:
		c.wrong(f.position(), "struct %s contains itself, and would have no end: use a table", o.Name)
	case element.Struct() && element.Object.order > o.order:
		c.wrong(f.position(), "struct %s is defined after its use, in line %d: move it up; structs cannot contain each other", element.Object.Name, element.Object.At.Line)
	case element.Struct():
	default:
		c.wrong(f.position(), "field %s of struct %s is %v: a struct has numbers, structs and arrays of them; use a table", f.Name, o.Name, f.Type)
	}
	for _, name := range []string{"deprecated", "required", "optional", "id"} {
		if a := f.Attributes.Get(name); a != nil {
			c.wrong(a.At, "field %s of a struct cannot be %s: all fields of a struct are always there, in their order", f.Name, name)
		}
	}
}

// presence finds out whether a field of a table may be absent.
func (c *checker) presence(f *Field) {
	t := f.Type
	required := f.Attributes.Get("required")
	if t.Base.Scalar() {
		if required != nil {
			c.wrong(required.At, "field %s is a number and cannot be required: it has a default when it is absent", f.Name)
		}
		if f.Optional && t.Enum != nil && t.Enum.Value("null") != nil {
			c.wrong(f.value.at, "%s has a value null, which as a default means that the field is optional: rename it", t.Enum.Name)
		}
		if t.Enum != nil && !t.Enum.Flags && !f.Optional && !slices.ContainsFunc(t.Enum.Values, func(v *EnumValue) bool { return v.Number == f.Default.Int }) {
			c.wrong(f.At, "the default %s of field %s is not a value of %s: write one behind the type, such as = %s", formatInt(f.Default.Int, t.Base), f.Name, t.Enum.Name, t.Enum.Values[0].Name)
		}
		return
	}
	f.Required = required != nil || t.Base == String && f.Key
	if f.Required && f.Default.Given {
		c.wrong(f.At, "field %s is required and has a default: remove one of them", f.Name)
	}
	f.Optional = !f.Required && !f.Default.Given
}

// wide checks vectors and strings with 64-bit offsets.
func (c *checker) wide(f *Field) {
	t := &f.Type
	a := f.Attributes.Get("vector64")
	if a != nil {
		if t.Base != Vector {
			c.wrong(a.At, "field %s is not a vector and cannot have the attribute vector64", f.Name)
			return
		}
		t.Base, f.Offset64 = Vector64, true
	}
	if b := f.Attributes.Get("offset64"); b != nil {
		a, f.Offset64 = b, true
	}
	if !f.Offset64 {
		return
	}
	element := t.Of()
	switch {
	case t.Base == String:
	case !t.Series():
		c.wrong(a.At, "field %s is neither a string nor a vector and cannot have the attribute %s", f.Name, a.Name)
	case !(element.Base.Scalar() && element.Enum == nil) && !element.Struct():
		c.wrong(a.At, "field %s cannot have the attribute %s: only vectors of numbers and structs can", f.Name, a.Name)
	}
}

// special checks attributes that are for some types only.
func (c *checker) special(f *Field) {
	t := f.Type
	bytes := (t.Base == Vector || t.Base == Vector64) && t.Element == UByte
	element := t
	if t.Series() {
		element = t.Of()
	}
	if a := f.Attributes.Get("hash"); a != nil {
		bits := ""
		switch element.Base {
		case Short, UShort:
			bits = "16"
		case Int, UInt:
			bits = "32"
		case Long, ULong:
			bits = "64"
		}
		switch {
		case bits == "":
			c.wrong(a.At, "field %s cannot have the attribute hash: only integers of 16, 32 and 64 bits can", f.Name)
		case a.Value != "fnv1_"+bits && a.Value != "fnv1a_"+bits:
			c.wrong(a.At, "field %s: the hash %q is unknown: use \"fnv1_%s\" or \"fnv1a_%s\"", f.Name, shorten(a.Value), bits, bits)
		}
	}
	if a := f.Attributes.Get("cpp_type"); a != nil {
		if f.Attributes.Get("hash") == nil {
			c.wrong(a.At, "field %s has the attribute cpp_type and must have hash, too", f.Name)
		}
		if f.Attributes.Get("cpp_ptr_type") == nil { // what flatc adds
			f.Attributes = append(f.Attributes, Attribute{Name: "cpp_ptr_type", Value: "naked", Text: true, At: a.At})
		}
	}
	if a := f.Attributes.Get("shared"); a != nil && t.Base != String {
		c.wrong(a.At, "field %s is not a string and cannot be shared", f.Name)
	}
	if a := f.Attributes.Get("native_custom_alloc"); a != nil {
		c.wrong(a.At, "native_custom_alloc is for tables and structs, not for field %s", f.Name)
	}
	if a := f.Attributes.Get("native_inline"); a != nil && !t.Struct() && !(t.Base == Vector && t.Element == Obj) {
		c.wrong(a.At, "field %s cannot have the attribute native_inline: only structs and vectors of them or of tables can", f.Name)
	}
	if a := f.Attributes.Get("nested_flatbuffer"); a != nil {
		if !a.Text {
			c.wrong(a.At, "field %s: nested_flatbuffer needs the name of a table in quotes", f.Name)
		}
		if !bytes {
			c.wrong(a.At, "field %s cannot have the attribute nested_flatbuffer: only [ubyte] can", f.Name)
		}
	}
	if a := f.Attributes.Get("flexbuffer"); a != nil && !bytes {
		c.wrong(a.At, "field %s cannot have the attribute flexbuffer: only [ubyte] can", f.Name)
	}
}

// layStruct computes the offsets of a struct's fields, its alignment and its size.
func (c *checker) layStruct(o *Object) {
	var last *Field
	pad := func(align int) {
		padding := -o.Size & (align - 1)
		o.Size += padding
		if last != nil {
			last.Padding = padding
		}
	}
	for _, f := range o.Fields {
		if element := f.Type; element.Base != Array && element.Size() == 0 || element.Base == Array && element.Of().Size() == 0 {
			return // a mistake that is reported
		}
		align := f.Type.Align()
		o.Align = max(o.Align, align)
		pad(align)
		if f.Offset = o.Size; f.Offset > math.MaxUint16 {
			c.wrong(f.At, "field %s is %d bytes behind the start of struct %s, more than %d: use a table", f.Name, f.Offset, o.Name, math.MaxUint16)
			return
		}
		o.Size += f.Type.Size()
		last = f
		if o.Size > maxStruct {
			c.wrong(o.At, "struct %s is larger than 2 GiB: use a table", o.Name)
			o.Size = 0
			return
		}
	}
	if a := o.Attributes.Get("force_align"); a != nil {
		n, wrong := parseInt(a.Value, UByte)
		if wrong != "" || n < int64(o.Align) || n > maxAlign || n&(n-1) != 0 {
			c.wrong(a.At, "struct %s: force_align is %s: want a power of two from %d to %d", o.Name, shorten(a.Value), o.Align, maxAlign)
			return
		}
		o.Align = int(n)
	}
	if o.Size == 0 {
		c.wrong(o.At, "struct %s has no fields: add one, or use a table", o.Name)
		return
	}
	pad(o.Align)
}

// ids sorts the fields of a table by their attributes id, if they have any.
func (c *checker) ids(o *Object) {
	with, without := 0, (*Field)(nil)
	typeFields := make(map[*Field]bool)
	for _, f := range o.Fields {
		typeFields[f.TypeField] = true
	}
	for _, f := range o.Fields {
		if typeFields[f] {
			continue
		}
		a := f.Attributes.Get("id")
		if a == nil {
			without = f
			continue
		}
		with++
		n, wrong := parseInt(a.Value, UShort)
		switch {
		case wrong != "":
			c.wrong(a.At, "field %s: the id %q %s", f.Name, shorten(a.Value), wrong)
			return
		case f.TypeField != nil && n == 0:
			c.wrong(a.At, "field %s: the id of a union is 1 or more, because its type has the id before it", f.Name)
			return
		}
		f.id = int(n)
		if f.TypeField != nil {
			f.TypeField.id = f.id - 1
			f.TypeField.Attributes = Attributes{{Name: "id", Value: itoa(f.id - 1), At: a.At}}
		}
	}
	switch {
	case with == 0:
		return
	case without != nil:
		c.wrong(without.At, "field %s has no id, and other fields of %s have one: give one to all of them", without.Name, o.Name)
		return
	}
	slices.SortStableFunc(o.Fields, func(a, b *Field) int { return a.id - b.id })
	for i, f := range o.Fields {
		switch {
		case f.id == i:
			continue
		case i > 0 && o.Fields[i-1].id == f.id:
			c.wrong(f.At, "field %s has the id %d, which field %s has already", f.Name, f.id, o.Fields[i-1].Name)
		default:
			c.wrong(f.At, "table %s has no field with the id %d: ids are 0, 1, 2 and so on, and a union has two", o.Name, i)
		}
		return
	}
}

// clashes reports fields whose generated code would have the same names.
func (c *checker) clashes(o *Object, named map[string]*Field) {
	for _, f := range o.Fields {
		for _, s := range []struct {
			suffix string
			base   Base
		}{{"_type", Union}, {"Type", Union}, {"_length", Vector}, {"Length", Vector}, {"_byte_vector", String}, {"ByteVector", String}} {
			if name, cut := strings.CutSuffix(f.Name, s.suffix); cut && f.Type.Base != UType {
				if other := named[name]; other != nil && other.Type.Base == s.base {
					c.wrong(f.At, "field %s has the name of generated code of field %s: rename one of them", f.Name, other.Name)
				}
			}
		}
	}
}
