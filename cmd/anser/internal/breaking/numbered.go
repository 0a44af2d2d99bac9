package breaking

import (
	"cmp"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/contract"
)

// byNumber compares messages of protobuf, and tables and unions of FlatBuffers.
func (c *comparison) byNumber(old, now *contract.Message) {
	fields := make(map[int32]*contract.Field)
	for i := range now.Fields {
		fields[now.Fields[i].Number] = &now.Fields[i]
	}
	before := make(map[int32]bool) // what fields are compared with
	for i := range old.Fields {
		a := &old.Fields[i]
		switch b := fields[a.Number]; {
		case c.shifted(old, now, a):
		case b != nil:
			before[a.Number] = true
			c.field(old, now, a, b)
		default:
			c.removed(old, now, a)
		}
	}
	for i := range now.Fields {
		if f := &now.Fields[i]; !before[f.Number] && !c.shifted(now, old, f) {
			c.added(old, now, f)
		}
	}
	for _, r := range old.Reserved {
		if !covered(now.Reserved, r) && !slices.ContainsFunc(now.Fields, func(f contract.Field) bool { return r.From <= f.Number && f.Number <= r.To }) {
			c.found(Wire, old.Name, now.At, "the numbers %d to %d are no longer reserved: a new field could get one, which old programs misread; keep them reserved", r.From, r.To)
		}
	}
}

func covered(ranges []contract.Range, r contract.Range) bool {
	return slices.ContainsFunc(ranges, func(x contract.Range) bool { return x.From <= r.From && r.To <= x.To })
}

// removed reports a field that is gone.
func (c *comparison) removed(old, now *contract.Message, a *contract.Field) {
	path := old.Name + "." + a.Name
	switch {
	case old.Form == contract.OneOf:
		c.found(Wire, path, now.At, "the member of the union was removed: old programs may send it; keep it")
	case c.old.Kind == contract.FlatBuffers:
		c.found(Wire, path, now.At, "the field was removed: a field behind it, or a new one, gets its place; keep it, and mark it as deprecated")
	case a.Presence == contract.Required:
		c.found(Wire, path, now.At, "the required field was removed: old programs refuse messages without it; keep it")
	case !covered(now.Reserved, contract.Range{From: a.Number, To: a.Number}):
		c.found(Wire, path, now.At, "the field was removed, and its number %d is not reserved: a new field with it would be misread; add \"reserved %d;\"", a.Number, a.Number)
	case !slices.Contains(now.Retired, a.Name):
		c.found(JSON, path, now.At, "the field was removed, and its name is not reserved: a new field with it would be misread in JSON; add \"reserved %q;\"", a.Name)
	default:
		c.found(Source, path, now.At, "the field was removed: old programs read it as absent, and code that uses it must be changed")
	}
}

// added reports a new field.
func (c *comparison) added(old, now *contract.Message, f *contract.Field) {
	path := now.Name + "." + f.Name
	switch {
	case covered(old.Reserved, contract.Range{From: f.Number, To: f.Number}):
		c.found(Wire, path, f.At, "the number %d was reserved: old messages may have something else in it; use a new number", f.Number)
	case f.Presence == contract.Required:
		c.found(Wire, path, f.At, "the new field is required: messages of old programs, which do not have it, are refused; make it optional")
	case slices.Contains(old.Retired, f.Name):
		c.found(JSON, path, f.At, "the name %s was reserved: old JSON may have something else in it; use a new name", f.Name)
	case old.Form == contract.OneOf:
		c.found(Fine, path, f.At, "the member of the union is new: old programs see a value that they do not know")
	default:
		c.found(Fine, path, f.At, "the field is new: old programs ignore it, and send none")
	}
}

// field compares two fields with the same number.
func (c *comparison) field(old, now *contract.Message, a, b *contract.Field) {
	path := old.Name + "." + a.Name
	if a.Name != b.Name {
		c.found(JSON, path, b.At, "the field is called %s now: JSON has the name, and code that uses it must be changed; keep the name", b.Name)
	} else if x, y := cmp.Or(a.JSON, a.Name), cmp.Or(b.JSON, b.Name); x != y {
		c.found(JSON, path, b.At, "the field is called %s in JSON, and was called %s", y, x)
	}
	c.presence(path, old, now, a, b)
	if c.old.Kind == contract.FlatBuffers {
		c.deprecation(path, a, b)
	}
	if a.Default != b.Default && (c.old.Kind == contract.FlatBuffers || a.Presence != contract.Implicit) {
		c.found(Wire, path, b.At, "the default is %s, and was %s: old and new programs read an absent field differently; keep it", shown(b.Default), shown(a.Default))
	}
	c.numbered(path, a, b)
}

func shown(value string) string {
	if value == "" {
		return "the zero value"
	}
	return value
}

func (c *comparison) presence(path string, old, now *contract.Message, a, b *contract.Field) {
	switch {
	case a.Presence != contract.Required && b.Presence == contract.Required:
		c.found(Wire, path, b.At, "the field is required now: messages of old programs without it are refused; leave it optional")
		return
	case a.Presence == contract.Required && b.Presence != contract.Required:
		c.found(Wire, path, b.At, "the field is no longer required: old programs refuse messages without it; keep it required until there are none")
		return
	case a.Presence != b.Presence && c.old.Kind == contract.FlatBuffers:
		c.found(Wire, path, b.At, "the default is %s, and was %s: old and new programs read an absent field differently; keep it", tableDefault(b), tableDefault(a))
		return
	case a.Presence != b.Presence:
		c.found(Source, path, b.At, "whether the field is absent can be told %s: code that uses it must be changed", map[bool]string{true: "now", false: "no longer"}[b.Presence == contract.Explicit])
	}
	if a.OneOf == b.OneOf {
		return
	}
	// A oneof that has this field alone is like an optional field.
	alone := func(m *contract.Message, name string) bool {
		n := 0
		for _, f := range m.Fields {
			if f.OneOf == name {
				n++
			}
		}
		return name == "" || n == 1
	}
	if alone(old, a.OneOf) && alone(now, b.OneOf) {
		c.found(Source, path, b.At, "the field moved %s: code that uses it must be changed", moved(a.OneOf, b.OneOf))
		return
	}
	if sameGroup(old, now, a.OneOf, b.OneOf) {
		c.found(Source, path, b.At, "the oneof is called %s, and was called %s: code that uses it must be changed", b.OneOf, a.OneOf)
		return
	}
	c.found(Wire, path, b.At, "the field moved %s: of several that an old program sets, a new one keeps the last; add another field", moved(a.OneOf, b.OneOf))
}

// sameGroup reports whether two oneofs have the same fields.
func sameGroup(old, now *contract.Message, a, b string) bool {
	numbers := func(m *contract.Message, name string) []int32 {
		var list []int32
		for _, f := range m.Fields {
			if f.OneOf == name {
				list = append(list, f.Number)
			}
		}
		slices.Sort(list)
		return list
	}
	return a != "" && b != "" && slices.Equal(numbers(old, a), numbers(now, b))
}

func moved(from, to string) string {
	switch {
	case from == "":
		return "into the oneof " + to
	case to == "":
		return "out of the oneof " + from
	}
	return "from the oneof " + from + " to " + to
}

// sameShape reports whether both are single, repeated, maps with the same keys, or arrays of the
// same length.
func sameShape(a, b contract.Type) bool {
	return a.Repeated == b.Repeated && a.Key == b.Key && a.Length == b.Length
}

// inner compares what two types of the same shape and name consist of.
func (c *comparison) inner(path string, a, b contract.Type) {
	if a.Of == b.Of {
		return
	}
	switch a.Name {
	case "message", "group":
		c.referred(path, "contains", a.Of, b.Of, contract.Position{})
	case "enum":
		x, y := c.old.Enum(a.Of), c.new.Enum(b.Of)
		c.found(Source, path, contract.Position{}, "the type is %s in place of %s: code that uses it must be changed", b.Of, a.Of)
		if x != nil && y != nil {
			c.enums(x, y)
		}
	}
}

var integer = map[string]bool{
	"int": true, "int8": true, "int16": true, "int32": true, "int64": true,
	"uint": true, "uint8": true, "uint16": true, "uint32": true, "uint64": true, "byte": true,
}

// wider reports whether every value of the integer type a fits into b.
func wider(a, b string) bool {
	bits := func(name string) (n int, signed bool) {
		signed = strings.HasPrefix(name, "int")
		switch strings.TrimLeft(name, "uint") {
		case "8":
			return 8, signed
		case "16":
			return 16, signed
		case "32":
			return 32, signed
		}
		if name == "byte" {
			return 8, false
		}
		return 64, signed
	}
	n, s := bits(a)
	m, t := bits(b)
	return s == t && m >= n || !s && t && m > n
}

// The types of protobuf that have the same encoding, so that one can be read as another.
var interchangeable = []map[string]bool{
	{"int32": true, "uint32": true, "int64": true, "uint64": true, "bool": true, "enum": true},
	{"sint32": true, "sint64": true},
	{"fixed32": true, "sfixed32": true},
	{"fixed64": true, "sfixed64": true},
	{"string": true, "bytes": true},
}

// numbered compares the types of two fields with the same number.
func (c *comparison) numbered(path string, a, b *contract.Field) {
	x, y := a.Type, b.Type
	if c.old.Kind == contract.FlatBuffers {
		switch {
		case sameShape(x, y) && x.Name == y.Name:
			c.inner(path, x, y)
			return
		case sameShape(x, y) && c.underlying(c.old, x) == c.underlying(c.new, y):
			c.found(JSON, path, b.At, "the type is %s, and was %s: the numbers are the same, but JSON has names in place of numbers or the reverse, and code that uses it must be changed", y, x)
			return
		}
		c.found(Wire, path, b.At, "the type is %s, and was %s: old and new programs misread each other; deprecate the field and add another one", y, x)
		return
	}
	pointer := func(t contract.Type) bool { return t.Name == "string" || t.Name == "bytes" || t.Name == "message" }
	switch {
	case sameShape(x, y) && x.Name == y.Name:
		c.inner(path, x, y)
	case sameShape(x, y) && slices.ContainsFunc(interchangeable, func(set map[string]bool) bool { return set[x.Name] && set[y.Name] }):
		c.found(JSON, path, b.At, "the type is %s, and was %s: the encodings are the same, but values that do not fit are cut off, JSON may differ, and code that uses it must be changed", y, x)
	case x.Name == y.Name && x.Key == "" && y.Key == "" && !x.Repeated && y.Repeated && pointer(x):
		c.found(JSON, path, b.At, "the field is repeated now: old programs read the last value, JSON has an array, and code that uses it must be changed")
		c.inner(path, x, y)
	case x.Repeated != y.Repeated && x.Name == y.Name:
		c.found(Wire, path, b.At, "the field is %s: %s; add another field", map[bool]string{true: "repeated now", false: "no longer repeated"}[y.Repeated],
			map[bool]string{true: "old programs cannot read packed numbers", false: "new programs keep one value of those that old ones send"}[y.Repeated])
	default:
		c.found(Wire, path, b.At, "the type is %s, and was %s: old and new programs misread each other; add another field, and reserve the number %d", y, x, a.Number)
	}
}

// enums compares two enums, which may have different names.
func (c *comparison) enums(old, now *contract.Enum) {
	pair := [2]string{"enum " + old.Name, now.Name}
	if c.pairs[pair] {
		return
	}
	c.pairs[pair] = true
	if old.Type != now.Type {
		c.found(Wire, old.Name, now.At, "the underlying type is %s, and was %s: old and new programs misread each other", shown(now.Type), shown(old.Type))
	}
	if old.Flags != now.Flags {
		c.found(Wire, old.Name, now.At, "the values are bits in one of both contracts, and numbers in the other")
	}
	if old.Closed != now.Closed {
		c.found(Wire, old.Name, now.At, "the enum is %s: programs treat values without a name differently", map[bool]string{true: "closed now", false: "no longer closed"}[now.Closed])
	}
	byNumber, byName := make(map[int64][]string), make(map[string]int64)
	for _, v := range now.Values {
		byNumber[v.Number] = append(byNumber[v.Number], v.Name)
		byName[v.Name] = v.Number
	}
	before := make(map[string]bool)
	for _, v := range old.Values {
		before[v.Name] = true
		path := old.Name + "." + v.Name
		n, there := byName[v.Name]
		switch {
		case there && n != v.Number:
			c.found(Wire, path, now.At, "the value is %d, and was %d: old and new programs mean different things; keep the number", n, v.Number)
		case there:
		case len(byNumber[v.Number]) > 0:
			c.found(JSON, path, now.At, "the value %d is called %s now: JSON has the name, and code that uses it must be changed", v.Number, byNumber[v.Number][0])
		case covered(now.Reserved, contract.Range{From: int32(v.Number), To: int32(v.Number)}):
			c.found(Source, path, now.At, "the value was removed: new programs do not know it, and code that uses it must be changed")
		case c.old.Kind == contract.FlatBuffers:
			c.found(Wire, path, now.At, "the value was removed: old programs may send it, and a new value could get its number; keep it")
		default:
			c.found(Wire, path, now.At, "the value was removed, and its number %d is not reserved: a new value with it would be misunderstood; add \"reserved %d;\"", v.Number, v.Number)
		}
	}
	for _, v := range now.Values {
		if !before[v.Name] && !slices.ContainsFunc(old.Values, func(o contract.EnumValue) bool { return o.Number == v.Number }) {
			c.found(Fine, now.Name+"."+v.Name, v.At, "the value is new: old programs get a value that they do not know")
		}
	}
}
