package breaking

import (
	"slices"

	"github.com/anser-rpc/anser/contract"
)

// What FlatBuffers has in addition to the rules for messages whose fields have numbers. The number
// of a field is its place in the schema, unless all fields have an id, so a field that is added in
// front of others changes their numbers.

// shifted reports whether a table or union of FlatBuffers in the other schema has a field with the
// same name and another number. The change is reported once, for the old field.
func (c *comparison) shifted(of, other *contract.Message, f *contract.Field) bool {
	if c.old.Kind != contract.FlatBuffers {
		return false
	}
	i := slices.IndexFunc(other.Fields, func(g contract.Field) bool { return g.Name == f.Name })
	if i < 0 || other.Fields[i].Number == f.Number {
		return false
	}
	if now := &other.Fields[i]; c.old.Message(of.Name) == of {
		what := "the field"
		if of.Form == contract.OneOf {
			what = "the member of the union"
		}
		c.found(Wire, of.Name+"."+f.Name, now.At, "%s has the number %d, and had %d: old and new programs misread each other; add new ones at the end, or give all of them numbers", what, now.Number, f.Number)
	}
	return true
}

// tableDefault writes the default of a field.
func tableDefault(f *contract.Field) string {
	if f.Presence == contract.Explicit {
		return "null"
	}
	return shown(f.Default)
}

// deprecation compares whether a field is deprecated: generated code has none that is.
func (c *comparison) deprecation(path string, a, b *contract.Field) {
	switch {
	case !a.Deprecated && b.Deprecated:
		c.found(Source, path, b.At, "the field is deprecated: new programs neither read nor send it, and code that uses it must be changed")
	case a.Deprecated && !b.Deprecated:
		c.found(Fine, path, b.At, "the field is no longer deprecated: old programs ignore it")
	}
}

// underlying returns the name of the type that is on the wire.
func (c *comparison) underlying(s *contract.Schema, t contract.Type) string {
	if e := s.Enum(t.Of); e != nil && t.Name == "enum" {
		return e.Type
	}
	return t.Name
}
