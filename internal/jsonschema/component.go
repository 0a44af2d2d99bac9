package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Direction is the side that writes a message. What a client may leave out, a server may always
// write.
type Direction bool

// The directions.
const (
	Request Direction = false
	Reply   Direction = true
)

// Component is a schema with a name.
type Component struct {
	Name   string // in the document
	Schema *Schema

	key   any
	to    Direction
	short string // the name of the type
}

// Components are the schemas of a document to which others refer. The type of requests and replies
// is one component, if they do not differ.
type Components struct {
	list   []*Component
	byID   map[any]*[2]*Component
	prefix string
}

// NewComponents returns an empty set. prefix is what references begin with, such as "#/$defs/".
func NewComponents(prefix string) *Components {
	return &Components{byID: make(map[any]*[2]*Component), prefix: prefix}
}

// Ref returns a reference to the schema of a type, which make returns when it is needed for the
// first time. make may ask for the same type. key identifies the type, and can be compared.
func (c *Components) Ref(key any, to Direction, short string, make func() *Schema) *Schema {
	both := c.byID[key]
	if both == nil {
		both = new([2]*Component)
		c.byID[key] = both
	}
	at := &both[btoi(bool(to))]
	if *at == nil {
		*at = &Component{key: key, to: to, short: short}
		c.list = append(c.list, *at)
		(*at).Schema = make()
	}
	return &Schema{Of: *at}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Name names all components and sets the references to them. No type is added after that.
func (c *Components) Name() error {
	differ, err := c.differing()
	if err != nil {
		return err
	}
	taken := make(map[string]bool)
	for _, one := range c.list {
		both := c.byID[one.key]
		if both[0] != nil && both[1] != nil && both[0].Name+both[1].Name != "" {
			continue // the other one was first
		}
		name := CleanName(one.short)
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", CleanName(one.short), n)
		}
		taken[name] = true
		for _, each := range both {
			if each != nil {
				each.Name = name
			}
		}
		if differ[one.key] {
			both[0].Name += "-Input"
			taken[both[0].Name] = true
		}
	}
	for _, one := range c.list {
		one.Schema.Walk(c.SetRef)
	}
	return nil
}

// SetRef sets the reference of a schema, after Name.
func (c *Components) SetRef(s *Schema) {
	if s.Of != nil {
		s.Ref = c.prefix + s.Of.Name
	}
}

// differing returns the types whose requests have another schema than their replies.
func (c *Components) differing() (map[any]bool, error) {
	ids := make(map[any]string)
	for key := range c.byID {
		ids[key] = fmt.Sprintf("%p", c.byID[key])
	}
	text := func(one *Component) ([]byte, error) {
		one.Schema.Walk(func(s *Schema) {
			if s.Of != nil {
				s.Ref = ids[s.Of.key]
			}
		})
		return json.Marshal(one.Schema)
	}
	differ := make(map[any]bool)
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
			both[0].Schema.Walk(func(s *Schema) {
				if s.Of != nil && differ[s.Of.key] && !differ[key] {
					differ[key], again = true, true
				}
			})
		}
	}
	return differ, nil
}

// CleanName returns the name of a type in the characters that names of components have: of
// "main.Page[example.com/shop.Item]" it is "main.Page_shop.Item".
func CleanName(s string) string {
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

// Reachable returns the components that schemas refer to, by their names.
func Reachable(from []*Schema) map[string]*Schema {
	found := make(map[string]*Schema)
	var visit func(s *Schema)
	visit = func(s *Schema) {
		if s.Of == nil || found[s.Of.Name] != nil {
			return
		}
		found[s.Of.Name] = s.Of.Schema
		s.Of.Schema.Walk(visit)
	}
	for _, s := range from {
		s.Walk(visit)
	}
	return found
}
