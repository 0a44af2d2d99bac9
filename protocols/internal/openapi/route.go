package openapi

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser/internal/jsonschema"
	"github.com/anser-rpc/anser/protocols/internal/plain"
	"github.com/anser-rpc/anser/protocols/internal/transcode"
)

// expanded are the HTTP methods under which a rule for all methods is described.
var expanded = []string{"GET", "PUT", "POST", "DELETE", "PATCH"}

// addRoute adds the operations of a path of an annotation.
func (b *builder) addRoute(r *plain.Route) {
	verbs := []string{r.Rule.Method}
	if r.Rule.Method == transcode.Any {
		verbs = expanded
	}
	for _, verb := range verbs {
		if new(pathItem).slot(verb) == nil { // OpenAPI has no place for it
			for _, e := range b.entries {
				if e.method == r.Method && e.route == nil {
					e.op.note(fmt.Sprintf("Also called with %s %s.", verb, r.Template))
				}
			}
			continue
		}
		b.addBound(r, verb)
	}
}

// addBound adds the operation of a path for one HTTP method.
func (b *builder) addBound(r *plain.Route, verb string) {
	m := r.Method
	n := 1
	for _, e := range b.entries {
		if e.method == m && e.route != nil {
			n++
		}
	}
	op := b.operation(m, fmt.Sprintf("%s_%d", m.Name, n))
	e := &entry{method: m, verb: verb, route: r, op: op}
	input := m.Input()
	op.Template = r.Template.String()
	headers := op.Parameters
	op.Parameters = b.pathParameters(e)
	for _, p := range r.Parameters(input) {
		f := p.Fields[len(p.Fields)-1]
		s := b.field(f, request)
		options, _ := f.Options().(*descriptorpb.FieldOptions)
		op.Parameters = append(op.Parameters, &parameter{
			Name: p.Name, In: "query", Description: b.fieldDoc(f), Schema: s, Deprecated: options.GetDeprecated(),
			Required: len(p.Fields) == 1 && f.Cardinality() == protoreflect.Required,
		})
		e.own = append(e.own, s)
	}
	op.Parameters = append(op.Parameters, headers...)
	if r.TakesBody() && verb != "GET" && verb != "HEAD" {
		b.routeBody(e, input)
	}
	b.routeAnswers(e)
	b.entries = append(b.entries, e)
}

// fieldDoc returns the comment of a field.
func (b *builder) fieldDoc(f protoreflect.FieldDescriptor) string {
	if doc := comment(f); doc != "" {
		return doc
	}
	if about := b.docs.messages[string(f.ContainingMessage().FullName())]; about != nil {
		for i := range about.Fields {
			if about.Fields[i].Name == string(f.Name()) {
				return about.Fields[i].Doc
			}
		}
	}
	return ""
}

// pathParameters returns the parameters of the path, one for each part that is not fixed. Their
// names are those of the parts of the template.
func (b *builder) pathParameters(e *entry) []*parameter {
	var list []*parameter
	template := e.route.Template
	for _, part := range template.Parts() {
		p := &parameter{Name: part.Name, In: "path", Required: true, Schema: &Schema{Type: jsonschema.Types{jsonschema.String}}}
		if part.Variable >= 0 {
			v := &template.Variables()[part.Variable]
			f := e.route.VariableField(part.Variable)
			if part.Whole && !part.Rest {
				p.Schema, p.Description = b.field(f, request), b.fieldDoc(f)
			} else {
				p.Description = strings.TrimSpace(fmt.Sprintf("Part of %s, which is %s. %s", v.Field, v.Pattern, b.fieldDoc(f)))
			}
		}
		if part.Rest {
			p.Description = strings.TrimSpace(p.Description + " It may have several segments.")
		}
		e.own = append(e.own, p.Schema)
		list = append(list, p)
	}
	return list
}

// routeBody adds the body of the requests.
func (b *builder) routeBody(e *entry, input protoreflect.MessageDescriptor) {
	if e.route.RawRequest() {
		e.op.Body = &body{Description: "Bytes of any type, except those of forms.", Content: map[string]*media{typeAny: {}}}
		return
	}
	s := b.bodySchema(e.route, input)
	kind := typeJSON
	if e.method.ClientStream {
		kind = typeLines
	}
	e.op.Body = &body{Content: map[string]*media{kind: b.content(s, request)}}
	if e.method.ClientStream {
		e.op.Body.Description = "The messages, each on a line."
	}
	e.own = append(e.own, s)
}

func (b *builder) bodySchema(r *plain.Route, input protoreflect.MessageDescriptor) *Schema {
	if f := r.BodyField(); f != nil {
		return b.field(f, request)
	}
	return b.message(input, request)
}

// routeAnswers adds the responses.
func (b *builder) routeAnswers(e *entry) {
	switch f := e.route.ResponseField(); {
	case e.route.RawReply():
		b.answers(e, nil, true)
	case e.method.Oneway:
		b.answers(e, nil, false)
	case f != nil:
		b.answers(e, b.field(f, reply), false)
	default:
		b.answers(e, b.message(descriptor(e.method.Reply), reply), false)
	}
}
