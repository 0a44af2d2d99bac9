package transcode

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Binding is a rule for the messages of a method.
type Binding struct {
	// Rule is what the binding was made of, and Template its path.
	Rule     Rule
	Template *Template

	whole     bool                         // the body is the request
	body      protoreflect.FieldDescriptor // or one of its fields, or nil
	response  protoreflect.FieldDescriptor // nil: the reply
	variables []fieldPath                  // of the template

	rawRequest, rawReply bool // the body is a google.api.HttpBody
}

// fieldPath leads from a message to a field inside it.
type fieldPath []protoreflect.FieldDescriptor

func (p fieldPath) last() protoreflect.FieldDescriptor { return p[len(p)-1] }

// Bind checks a rule against the messages of its method.
func Bind(r Rule, request, reply protoreflect.MessageDescriptor) (*Binding, error) {
	t, err := ParseTemplate(r.Template)
	if err != nil {
		return nil, err
	}
	b := &Binding{Rule: r, Template: t, whole: r.Body == "*"}
	if r.Body != "" && (r.Method == "GET" || r.Method == "HEAD") {
		return nil, fmt.Errorf("%s %s: a request with this method has no body", r.Method, t)
	}
	if r.Body != "" && !b.whole {
		if b.body = request.Fields().ByName(protoreflect.Name(r.Body)); b.body == nil {
			return nil, fmt.Errorf("%s %s: message %s has no field %q for the body", r.Method, t, request.FullName(), r.Body)
		}
	}
	if r.ResponseBody != "" {
		if b.response = reply.Fields().ByName(protoreflect.Name(r.ResponseBody)); b.response == nil {
			return nil, fmt.Errorf("%s %s: message %s has no field %q for the body of the answer", r.Method, t, reply.FullName(), r.ResponseBody)
		}
	}
	b.rawRequest = b.whole && isHTTPBody(request) || isHTTPBodyField(b.body)
	b.rawReply = b.response == nil && isHTTPBody(reply) || isHTTPBodyField(b.response)
	for _, v := range t.variables {
		p, err := findField(request, v.Field, false)
		if err == nil && (p.last().IsList() || p.last().IsMap() || !hasText(p.last())) {
			err = fmt.Errorf("field %q is not a single value that can be written as text", v.Field)
		}
		if err == nil && p.last() == b.body {
			err = fmt.Errorf("field %q is set by the body", v.Field)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.Method, t, err)
		}
		b.variables = append(b.variables, p)
	}
	return b, nil
}

// maxPath is the number of messages inside each other that a parameter may lead through.
const maxPath = 32

// findField returns the path of a field by its names, or with anyName also by those in JSON.
func findField(m protoreflect.MessageDescriptor, path string, anyName bool) (fieldPath, error) {
	names := strings.SplitN(path, ".", maxPath+1)
	var p fieldPath
	for i, name := range names {
		f := m.Fields().ByName(protoreflect.Name(name))
		if f == nil && anyName {
			f = m.Fields().ByJSONName(name)
		}
		if f == nil {
			return nil, fmt.Errorf("message %s has no field %.100q", m.FullName(), name)
		}
		p = append(p, f)
		if i == len(names)-1 {
			return p, nil
		}
		if f.Message() == nil || f.IsList() || f.IsMap() || hasText(f) {
			return nil, fmt.Errorf("field %.100q of %s is not a message with fields", name, m.FullName())
		}
		m = f.Message()
	}
	return nil, nil // not reached: names is never empty
}

// TakesBody reports whether the body of a request sets fields.
func (b *Binding) TakesBody() bool { return b.whole || b.body != nil }

// BodyField returns the field that the body sets, or nil if it is the whole request or nothing.
func (b *Binding) BodyField() protoreflect.FieldDescriptor { return b.body }

// ResponseField returns the field that is the body of the answer, or nil for the whole reply.
func (b *Binding) ResponseField() protoreflect.FieldDescriptor { return b.response }

// VariableField returns the field of a variable of the template.
func (b *Binding) VariableField(i int) protoreflect.FieldDescriptor { return b.variables[i].last() }

// Codec is the JSON of messages.
type Codec interface {
	Append(dst []byte, v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// Request is what a request says besides its HTTP method.
type Request struct {
	// Body is the body, and ContentType its type, of which google.api.HttpBody knows.
	Body        []byte
	ContentType string
	// Query is the query, and Values are those of the template's variables.
	Query  url.Values
	Values []string
}

// Fill sets the fields of a new message to what a request says. The path is stronger than the body.
func (b *Binding) Fill(c Codec, message proto.Message, r *Request) error {
	if err := b.fillBody(c, message, r); err != nil {
		return err
	}
	m := message.ProtoReflect()
	if err := b.fillQuery(m, r.Query); err != nil {
		return err
	}
	for i, p := range b.variables {
		v, err := parseText(p.last(), func() protoreflect.Value { return parent(m, p).NewField(p.last()) }, r.Values[i])
		if err != nil {
			return fmt.Errorf("the path: %s: %w", b.Template.variables[i].Field, err)
		}
		parent(m, p).Set(p.last(), v)
	}
	return nil
}

// fillBody decodes the body. An empty one is a message without fields.
func (b *Binding) fillBody(c Codec, message proto.Message, r *Request) error {
	body := r.Body
	switch {
	case !b.TakesBody() && len(body) > 0:
		return fmt.Errorf("%s %s takes no body", b.Rule.Method, b.Template)
	case b.rawRequest && b.whole:
		setHTTPBody(message.ProtoReflect(), r)
		return nil
	case b.rawRequest:
		setHTTPBody(message.ProtoReflect().Mutable(b.body).Message(), r)
		return nil
	case len(body) == 0:
		return nil
	case b.whole:
		return c.Unmarshal(body, message)
	case !json.Valid(body): // it must not be able to set other fields
		return fmt.Errorf("the body is no JSON")
	}
	name, _ := json.Marshal(b.body.JSONName())
	data := make([]byte, 0, len(name)+len(body)+3)
	data = append(append(append(append(append(data, '{'), name...), ':'), body...), '}')
	return c.Unmarshal(data, message)
}

// fillQuery sets fields to the parameters of the query.
func (b *Binding) fillQuery(m protoreflect.Message, query url.Values) error {
	if len(query) > 0 && b.whole {
		return fmt.Errorf("%s %s takes no parameters: the body is the message", b.Rule.Method, b.Template)
	}
	set := make(map[string]bool)
	for _, key := range sorted(query) {
		p, err := findField(m.Descriptor(), key, true)
		if err != nil {
			return fmt.Errorf("the query: %w", err)
		}
		name := p.String()
		switch {
		case set[name]:
			return fmt.Errorf("the query: %s occurs under two names", name)
		case p[0] == b.body:
			return fmt.Errorf("the query: %s is set by the body", name)
		case slices.ContainsFunc(b.variables, func(v fieldPath) bool { return slices.Equal(v, p) }):
			return fmt.Errorf("the query: %s is set by the path", name)
		case p.last().IsMap() || !hasText(p.last()):
			return fmt.Errorf("the query: %s is not a value that can be written as text", name)
		}
		set[name] = true
		if err := setField(m, p, query[key]); err != nil {
			return fmt.Errorf("the query: %s: %w", name, err)
		}
	}
	return nil
}

func sorted(query url.Values) []string {
	keys := make([]string, 0, len(query))
	for k := range query {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// String returns the names of the fields with dots.
func (p fieldPath) String() string {
	names := make([]string, len(p))
	for i, f := range p {
		names[i] = string(f.Name())
	}
	return strings.Join(names, ".")
}

// parent returns the message that has the last field of the path. It makes the ones on the way.
func parent(m protoreflect.Message, p fieldPath) protoreflect.Message {
	for _, f := range p[:len(p)-1] {
		m = m.Mutable(f).Message()
	}
	return m
}

// setField sets a field to one text, or a repeated field to several.
func setField(m protoreflect.Message, p fieldPath, texts []string) error {
	f := p.last()
	for i := range p { // a member of a oneof excludes the others
		o := p[i].ContainingOneof()
		if o == nil {
			continue
		}
		if other := parent(m, p[:i+1]).WhichOneof(o); other != nil && other != p[i] {
			return fmt.Errorf("%s is set already, and both exclude each other", other.Name())
		}
	}
	m = parent(m, p)
	if f.IsList() {
		list := m.Mutable(f).List()
		for _, text := range texts {
			v, err := parseText(f, list.NewElement, text)
			if err != nil {
				return err
			}
			list.Append(v)
		}
		return nil
	}
	if len(texts) != 1 {
		return fmt.Errorf("it occurs %d times", len(texts))
	}
	v, err := parseText(f, func() protoreflect.Value { return m.NewField(f) }, texts[0])
	if err != nil {
		return err
	}
	m.Set(f, v)
	return nil
}

// Reply returns the body of an answer, the reply or one of its fields, and its content type.
func (b *Binding) Reply(c Codec, reply proto.Message) (data []byte, contentType string, err error) {
	m := reply.ProtoReflect()
	switch {
	case b.rawReply:
		if b.response != nil {
			m = m.Get(b.response).Message()
		}
		data, contentType = httpBody(m)
		return data, contentType, nil
	case b.response == nil:
		data, err = c.Append(nil, reply)
	default:
		data, err = b.field(c, m)
	}
	return data, "application/json", err
}

// field returns the field of a reply that is the answer.
func (b *Binding) field(c Codec, m protoreflect.Message) ([]byte, error) {
	if !m.Has(b.response) {
		return emptyField(m, b.response)
	}
	only := m.New()
	only.Set(b.response, m.Get(b.response))
	data, err := c.Append(nil, only.Interface())
	if err != nil {
		return nil, err
	}
	return member(data, b.response)
}

// emptyField returns a field without a value in JSON.
func emptyField(m protoreflect.Message, f protoreflect.FieldDescriptor) ([]byte, error) {
	if f.Message() != nil && !f.IsList() && !f.IsMap() {
		return protojson.Marshal(m.NewField(f).Message().Interface())
	}
	only := m.New()
	if f.HasPresence() {
		only.Set(f, f.Default())
	}
	data, err := protojson.MarshalOptions{EmitUnpopulated: true, AllowPartial: true}.Marshal(only.Interface())
	if err != nil {
		return nil, err
	}
	return member(data, f)
}

// member returns a member of an object.
func member(data []byte, f protoreflect.FieldDescriptor) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	return members[f.JSONName()], nil
}
