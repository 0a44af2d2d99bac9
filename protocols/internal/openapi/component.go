package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// direction is the side that writes a message. What a client may leave out, a server may always write.
type direction bool

const (
	request direction = false
	reply   direction = true
)

// typeKey identifies a type of messages.
type typeKey struct {
	goType reflect.Type
	proto  protoreflect.FullName
	fixed  string // of the package itself
}

// component is a schema with a name.
type component struct {
	key    typeKey
	to     direction
	short  string // the name of the type
	name   string // in the document
	schema *Schema
}

// components are those of all methods. The type of requests and replies is one component, if they
// do not differ.
type components struct {
	list []*component
	byID map[typeKey]*[2]*component
}

func newComponents() *components { return &components{byID: make(map[typeKey]*[2]*component)} }

// ref returns a reference to the schema of a type, which make returns when it is needed for the
// first time. make may ask for the same type.
func (c *components) ref(key typeKey, to direction, short string, make func() *Schema) *Schema {
	both := c.byID[key]
	if both == nil {
		both = new([2]*component)
		c.byID[key] = both
	}
	at := &both[btoi(bool(to))]
	if *at == nil {
		*at = &component{key: key, to: to, short: short}
		c.list = append(c.list, *at)
		(*at).schema = make()
	}
	return &Schema{of: *at}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// name names all components and sets the references to them. No type is added after that.
func (c *components) name() error {
	differ, err := c.differing()
	if err != nil {
		return err
	}
	taken := make(map[string]bool)
	for _, one := range c.list {
		both := c.byID[one.key]
		if both[0] != nil && both[1] != nil && both[0].name+both[1].name != "" {
			continue // the other one was first
		}
		name := cleanName(one.short)
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", cleanName(one.short), n)
		}
		taken[name] = true
		for _, each := range both {
			if each != nil {
				each.name = name
			}
		}
		if differ[one.key] {
			both[0].name += "-Input"
			taken[both[0].name] = true
		}
	}
	for _, one := range c.list {
		one.schema.walk(setRef)
	}
	return nil
}

func setRef(s *Schema) {
	if s.of != nil {
		s.Ref = "#/components/schemas/" + s.of.name
	}
}

// differing returns the types whose requests have another schema than their replies.
func (c *components) differing() (map[typeKey]bool, error) {
	ids := make(map[typeKey]string)
	for key := range c.byID {
		ids[key] = fmt.Sprintf("%p", c.byID[key])
	}
	text := func(one *component) ([]byte, error) {
		one.schema.walk(func(s *Schema) {
			if s.of != nil {
				s.Ref = ids[s.of.key]
			}
		})
		return json.Marshal(one.schema)
	}
	differ := make(map[typeKey]bool)
	for key, both := range c.byID {
		if both[0] == nil || both[1] == nil {
			continue
		}
		a, err := text(both[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", both[0].short, err)
		}
		b, err := text(both[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", both[1].short, err)
		}
		differ[key] = !bytes.Equal(a, b)
	}
	for again := true; again; { // what contains a type that differs, differs
		again = false
		for key, both := range c.byID {
			if differ[key] || both[0] == nil || both[1] == nil {
				continue
			}
			both[0].schema.walk(func(s *Schema) {
				if s.of != nil && differ[s.of.key] && !differ[key] {
					differ[key], again = true, true
				}
			})
		}
	}
	return differ, nil
}

// cleanName returns the name of a type in the characters that names of components have: of
// "main.Page[example.com/shop.Item]" it is "main.Page_shop.Item".
func cleanName(s string) string {
	var b strings.Builder
	word := 0 // where the path of a package begins
	for _, r := range s {
		switch {
		case r == '/':
			cut := b.String()[:word]
			b.Reset()
			b.WriteString(cut)
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		case r == ']' || r == '*' || r == ' ':
		default:
			b.WriteByte('_')
			word = b.Len()
		}
	}
	if b.Len() == 0 {
		return "Type"
	}
	return b.String()
}

// reachable returns the components that schemas refer to, by their names.
func reachable(from []*Schema) map[string]*Schema {
	found := make(map[string]*Schema)
	var visit func(s *Schema)
	visit = func(s *Schema) {
		if s.of == nil || found[s.of.name] != nil {
			return
		}
		found[s.of.name] = s.of.schema
		s.of.schema.walk(visit)
	}
	for _, s := range from {
		s.walk(visit)
	}
	return found
}

// names returns the keys in order.
func names[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
