package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// goField is a member of the JSON object of a struct.
type goField struct {
	name   string
	tagged bool
	index  []int
	field  reflect.StructField
	typ    reflect.Type
	omit   bool // it is left out if it is empty or zero
	maybe  bool // it is in an embedded struct that can be nil
	quoted bool // the value is in a string
	locked bool // it cannot be decoded
}

// embedded is a struct that contributes its fields.
type embedded struct {
	typ   reflect.Type
	index []int
	maybe bool
	// locked says that it is behind a pointer to a type that is not exported, which encoding/json
	// does not set.
	locked bool
}

// goFields returns the members that encoding/json writes for a struct, in its order. The rules for
// embedded structs and equal names are those of encoding/json.
func goFields(t reflect.Type) []goField {
	var fields []goField
	visited := make(map[reflect.Type]bool)
	next := []embedded{{typ: t}}
	count := map[reflect.Type]int{}
	for len(next) > 0 {
		current := next
		next = nil
		nextCount := make(map[reflect.Type]int)
		for _, e := range current {
			if visited[e.typ] {
				continue
			}
			visited[e.typ] = true
			for i := range e.typ.NumField() {
				f, inner := e.field(i)
				switch {
				case f != nil:
					fields = append(fields, *f)
					if count[e.typ] > 1 { // two of them exclude each other
						fields = append(fields, *f)
					}
				case inner != nil:
					if nextCount[inner.typ]++; nextCount[inner.typ] == 1 {
						next = append(next, *inner)
					}
				}
			}
		}
		count = nextCount
	}
	return dominant(fields)
}

// field returns a field of the struct as a member, or as a further struct to look into, or neither.
func (e *embedded) field(i int) (*goField, *embedded) {
	sf := e.typ.Field(i)
	if sf.Anonymous {
		t := sf.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if !sf.IsExported() && t.Kind() != reflect.Struct {
			return nil, nil
		}
	} else if !sf.IsExported() {
		return nil, nil
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return nil, nil
	}
	name, rest, _ := strings.Cut(tag, ",")
	if !isTagName(name) {
		name = ""
	}
	options := strings.Split(rest, ",")
	inside := sf.Type
	if inside.Name() == "" && inside.Kind() == reflect.Pointer {
		inside = inside.Elem()
	}
	index := append(slices.Clone(e.index), i)
	if name == "" && sf.Anonymous && inside.Kind() == reflect.Struct {
		pointer := sf.Type.Kind() == reflect.Pointer
		return nil, &embedded{inside, index, e.maybe || pointer, e.locked || pointer && !sf.IsExported()}
	}
	f := &goField{
		name: cmp.Or(name, sf.Name), tagged: name != "", index: index, field: sf, typ: sf.Type, maybe: e.maybe, locked: e.locked,
		omit: slices.Contains(options, "omitempty") && canBeEmpty(sf.Type) || slices.Contains(options, "omitzero"),
	}
	if slices.Contains(options, "string") {
		switch inside.Kind() {
		case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
			reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
			f.quoted = true
		}
	}
	return f, nil
}

// canBeEmpty reports whether a value can be empty in the sense of omitempty.
func canBeEmpty(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return false
	case reflect.Array:
		return t.Len() == 0
	}
	return true
}

func isTagName(s string) bool {
	for _, r := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return s != ""
}

// dominant leaves one field of each name: the one in the fewest embedded structs, with a tag before
// one without. Where several are left, there is none.
func dominant(fields []goField) []goField {
	slices.SortStableFunc(fields, func(a, b goField) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), btoi(b.tagged)-btoi(a.tagged), slices.Compare(a.index, b.index))
	})
	var out []goField
	for i := 0; i < len(fields); {
		n := i + 1
		for n < len(fields) && fields[n].name == fields[i].name {
			n++
		}
		if n == i+1 || len(fields[i].index) != len(fields[i+1].index) || fields[i].tagged != fields[i+1].tagged {
			out = append(out, fields[i])
		}
		i = n
	}
	slices.SortFunc(out, func(a, b goField) int { return slices.Compare(a.index, b.index) })
	return out
}
