package openapi

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/tuple"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/jsonschema"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/plain"
)

// entry is an operation with its path.
type entry struct {
	method *exchange.Method
	verb   string
	path   string       // "" for that of a route
	route  *plain.Route // or nil
	op     *operation
	own    []*Schema // what the operation has schemas of
}

// builder describes all methods of a server.
type builder struct {
	types   *jsonschema.Components
	docs    docs
	entries []*entry
	ids     map[string]bool // of operations
	medias  []madeMedia     // get their examples at the end
	problem *Schema
	failed  *Schema // of a stream, after its first message
}

type madeMedia struct {
	media *media
	to    jsonschema.Direction
}

// catalog is what all methods of a server are described by.
type catalog struct {
	version  uint64
	entries  []*entry
	services map[string]tag
	problem  *Schema
}

// build describes the methods of a server.
func build(methods *exchange.Directory, routes *plain.Routes) (*catalog, error) {
	server := methods.Server()
	c := &catalog{version: server.MethodsVersion(), services: make(map[string]tag)}
	b := &builder{
		types: jsonschema.NewComponents("#/components/schemas/"), ids: make(map[string]bool),
		docs: docs{make(map[string]*contract.Message), make(map[string]*contract.Enum)},
	}
	b.addProblem()
	var list []*exchange.Method
	for _, t := range server.Methods() {
		m := methods.FindName(t.Name)
		if m == nil || !callable(m) {
			continue
		}
		list = append(list, m)
		c.services[serviceOf(m.Name)] = tag{Name: serviceOf(m.Name)}
		if m.Contract != nil {
			schema, _ := m.Contract.Schema() // a method with a broken contract is not served
			b.docs.add(schema)
		}
	}
	for _, m := range list {
		b.add(m)
		c.describe(m)
	}
	for _, r := range routes.List() {
		if slices.Contains(list, r.Method) {
			b.addRoute(r)
		}
	}
	for _, m := range b.medias {
		m.media.Example = exampleOf(m.media.Schema, m.to)
	}
	if err := b.types.Name(); err != nil {
		return nil, err
	}
	for _, e := range b.entries {
		for _, s := range e.own {
			s.Walk(b.types.SetRef)
		}
	}
	b.problem.Walk(b.types.SetRef)
	c.entries, c.problem = b.entries, b.problem
	return c, nil
}

// describe adds the comment of the service of a method.
func (c *catalog) describe(m *exchange.Method) {
	if m.Contract == nil {
		return
	}
	name := serviceOf(m.Name)
	if schema, err := m.Contract.Schema(); err == nil && schema.Service(name) != nil {
		c.services[name] = tag{name, schema.Service(name).Doc}
	}
}

// callable reports whether a method is called in JSON, by a path.
func callable(m *exchange.Method) bool {
	path := "/" + m.Name
	return m.InJSON() && !strings.Contains(m.Name, "/") && (&url.URL{Path: path}).EscapedPath() == path
}

// serviceOf returns the service of a method.
func serviceOf(method string) string {
	if i := strings.LastIndexByte(method, '.'); i > 0 {
		return method[:i]
	}
	return method
}

// id returns a name for an operation that no other one has.
func (b *builder) id(name string) string {
	unique := name
	for n := 2; b.ids[unique]; n++ {
		unique = fmt.Sprintf("%s_%d", name, n)
	}
	b.ids[unique] = true
	return unique
}

// schemaOf returns the schema of the requests or replies of a method.
func (b *builder) schemaOf(m *exchange.Method, to jsonschema.Direction) *Schema {
	t, elements := m.Request, m.Arguments
	if to == jsonschema.Reply {
		t, elements = m.Reply, m.Results
	}
	about := hintOf(m, to)
	if m.Forwarded {
		return b.forwarded(m, to)
	}
	switch v := reflect.New(t).Interface().(type) {
	case proto.Message:
		return b.message(v.ProtoReflect().Descriptor(), to)
	case *anser.Tuple:
		return b.tuple(elements, to, about)
	case tuple.Message:
		layout, values := v.Tuple()
		var elements []anser.TupleElement
		for i, value := range values {
			elements = append(elements, anser.TupleElement{Name: layout.Names[i], Type: reflect.TypeOf(value).Elem()})
		}
		return b.tuple(elements, to, about)
	}
	return b.goType(t, to, true, about)
}

// forwarded returns the schema of encoded messages, of which only the contract is known.
func (b *builder) forwarded(m *exchange.Method, to jsonschema.Direction) *Schema {
	d := m.Input()
	if to == reply {
		d = m.Output()
	}
	if d == nil {
		return &Schema{Description: "Any value."}
	}
	return b.message(d, to)
}

// hintOf returns what the contract of a method says of its messages.
func hintOf(m *exchange.Method, to jsonschema.Direction) hint {
	if m.Contract == nil {
		return hint{}
	}
	schema, err := m.Contract.Schema()
	if err != nil || schema.Service(serviceOf(m.Name)) == nil {
		return hint{}
	}
	about := schema.Service(serviceOf(m.Name)).Method(m.Name[strings.LastIndexByte(m.Name, '.')+1:])
	if about == nil {
		return hint{}
	}
	name := about.Request
	if to == jsonschema.Reply {
		name = about.Reply
	}
	return hint{schema, schema.Message(name)}
}

// tuple returns the schema of several values: an object with their names, or an array.
func (b *builder) tuple(elements []anser.TupleElement, to jsonschema.Direction, h hint) *Schema {
	object := &Schema{Type: jsonschema.Types{jsonschema.Object}}
	n := jsonschema.Int(int64(len(elements)))
	array := &Schema{Type: jsonschema.Types{jsonschema.Array}, MinItems: n, MaxItems: n}
	for _, e := range elements {
		about, inner := h.field(e.Name)
		value := b.element(e.Type, to, inner)
		if about != nil {
			describe(value, about.Doc, about.Deprecated)
		}
		object.Properties = append(object.Properties, jsonschema.Member{Name: e.Name, Schema: value})
		array.PrefixItems = append(array.PrefixItems, value)
		if to == jsonschema.Reply {
			object.Required = append(object.Required, e.Name)
		}
	}
	if to == jsonschema.Reply {
		object.Description = "The answer to an object."
		array.Description = "The answer to an array."
	}
	return &Schema{AnyOf: []*Schema{object, array}}
}

// element returns the schema of an element of a tuple, which may be a pointer to a protobuf
// message.
func (b *builder) element(t reflect.Type, to jsonschema.Direction, h hint) *Schema {
	if t.Implements(protoType) {
		return jsonschema.Nullable(b.message(descriptor(t.Elem()), to))
	}
	return b.goType(t, to, true, h)
}

// descriptor returns the descriptor of a type of messages.
func descriptor(t reflect.Type) protoreflect.MessageDescriptor {
	return reflect.New(t).Interface().(proto.Message).ProtoReflect().Descriptor()
}
