package record

import "reflect"

// openType takes the place of the schema of a type with interfaces, which depends on the values.
var openType = new(schema)

// maxVisits bounds the values that are looked at to find the types in interfaces.
const maxVisits = 100_000

// schemaOfValue returns the schema of a value whose type has interfaces. In what is in an interface
// a field is secret if a type that is in any of them marks one with its name: a reply can have
// values of any type there, whose tags its own type does not know.
func schemaOfValue(v reflect.Value) (*schema, error) {
	types := newGoSchemas()
	root := types.of(v.Type())
	in := openValues{types: types, found: make(map[reflect.Type]*schema)}
	in.visit(v, false)
	if in.visits > maxVisits {
		return nil, errUnreadable
	}
	open := types.open
	open.fields, open.elem = make(map[string]fieldSchema), open
	for _, s := range in.found {
		for name, f := range s.fields {
			open.fields[name] = fieldSchema{secret: f.secret || open.fields[name].secret, of: open}
		}
	}
	return root, nil
}

// openValues finds the structs in interfaces.
type openValues struct {
	types  *goSchemas
	visits int
	found  map[reflect.Type]*schema
}

// visit looks at a value, and at those in it. inside says that an interface led to it.
func (o *openValues) visit(v reflect.Value, inside bool) {
	if o.visits++; o.visits > maxVisits {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			o.visit(v.Elem(), true)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			o.visit(v.Elem(), inside)
		}
	case reflect.Struct:
		if inside {
			o.found[v.Type()] = o.types.of(v.Type())
		}
		for f, value := range v.Fields() {
			if f.IsExported() || f.Anonymous {
				o.visit(value, inside)
			}
		}
	case reflect.Slice, reflect.Array:
		if isPlain(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			o.visit(v.Index(i), inside)
		}
	case reflect.Map:
		for iter := v.MapRange(); !isPlain(v.Type().Elem()) && iter.Next(); {
			o.visit(iter.Value(), inside)
		}
	}
}

// isPlain reports whether a type has no other types in it.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		return false
	}
	return true
}
