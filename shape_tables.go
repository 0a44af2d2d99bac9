package anser

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/contract"
)

// tableShape describes a table of FlatBuffers by its schema.
func tableShape(s *contract.Schema, name string) Shape {
	e := &tableExample{schema: s, collected: make(map[string]bool)}
	e.message(s.Message(name), nil)
	slices.Sort(e.others)
	return Shape{Type: "table " + name, JSON: []byte(e.String()), Others: slices.Compact(e.others)}
}

// tableExample writes the JSON of a table in which all fields have their defaults.
type tableExample struct {
	strings.Builder
	schema *contract.Schema
	others []string // keys of members of unions that are not in the example

	collected map[string]bool // messages whose keys are among others
}

// message writes a table or struct. path holds the names of the messages that contain it.
func (e *tableExample) message(m *contract.Message, path []string) {
	path = append(slices.Clip(path), m.Name)
	e.WriteByte('{')
	first := true
	key := func(name string) {
		if !first {
			e.WriteByte(',')
		}
		first = false
		e.quote(name)
		e.WriteByte(':')
	}
	for i := range m.Fields {
		f := &m.Fields[i]
		if f.Deprecated {
			continue
		}
		inside := e.schema.Message(f.Type.Of)
		if inside != nil && inside.Form == contract.OneOf {
			members := e.members(inside, path)
			if len(members) == 0 {
				e.others = append(e.others, f.Name, f.Name+"_type")
				continue
			}
			key(f.Name + "_type")
			e.list(f.Type, func() { e.quote(members[0].Name) })
			key(f.Name)
			e.list(f.Type, func() { e.value(&members[0], path) })
			for _, other := range members[1:] {
				e.keys(other.Type.Of)
			}
			continue
		}
		key(f.Name)
		if e.endless(inside, path) {
			e.WriteString("null")
			continue
		}
		e.list(f.Type, func() { e.value(f, path) })
	}
	e.WriteByte('}')
}

// list writes a value, or an array with one.
func (e *tableExample) list(t contract.Type, value func()) {
	if !t.Repeated && t.Length == 0 {
		value()
		return
	}
	e.WriteByte('[')
	value()
	e.WriteByte(']')
}

// endless reports whether an example would not end with the message in it.
func (e *tableExample) endless(m *contract.Message, path []string) bool {
	return m != nil && (len(path) > exampleDepth || slices.Contains(path, m.Name))
}

// members returns the members of a union that can be in an example.
func (e *tableExample) members(union *contract.Message, path []string) []contract.Field {
	return slices.DeleteFunc(slices.Clone(union.Fields), func(f contract.Field) bool { return e.endless(e.schema.Message(f.Type.Of), path) })
}

// keys collects the keys of a message that is not in the example, and of those inside it.
func (e *tableExample) keys(name string) {
	m := e.schema.Message(name)
	if m == nil || e.collected[name] {
		return
	}
	e.collected[name] = true
	for i := range m.Fields {
		f := &m.Fields[i]
		if m.Form != contract.OneOf && !f.Deprecated {
			e.others = append(e.others, f.Name)
		}
		if inside := e.schema.Message(f.Type.Of); inside != nil && inside.Form == contract.OneOf {
			e.others = append(e.others, f.Name+"_type")
		}
		e.keys(f.Type.Of)
	}
}

// value writes the default of a field, or of a member of a union or an element of a vector.
func (e *tableExample) value(f *contract.Field, path []string) {
	t := f.Type
	switch t.Name {
	case "message":
		e.message(e.schema.Message(t.Of), path)
	case "enum":
		e.enum(e.schema.Enum(t.Of), f.Default)
	case "string":
		e.WriteString(`""`)
	case "bool":
		e.WriteString(or(f.Default, "false"))
	default:
		if text := or(f.Default, "0"); json.Valid([]byte(text)) {
			e.WriteString(text)
		} else {
			e.quote(strings.ToLower(text)) // such as "nan"
		}
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// enum writes the name of the default, or of the first value if the default has none.
func (e *tableExample) enum(of *contract.Enum, number string) {
	name := ""
	for _, v := range of.Values {
		if name == "" || strconv.FormatInt(v.Number, 10) == or(number, "0") {
			name = v.Name
		}
		if strconv.FormatInt(v.Number, 10) == or(number, "0") {
			break
		}
	}
	e.quote(name)
}

// quote writes a text, which has no characters that JSON must escape.
func (e *tableExample) quote(text string) { e.WriteString(strconv.Quote(text)) }
