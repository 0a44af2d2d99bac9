package openapi

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/anser-rpc/anser/internal/jsonschema"
)

// maxExample is the number of values in an example.
const maxExample = 100

// exampler makes an example of a schema. It ends where a type contains itself.
type exampler struct {
	inside []*jsonschema.Component
	values int
	to     jsonschema.Direction
}

// exampleOf returns a message with an example value in each member, in JSON.
func exampleOf(s *Schema, to jsonschema.Direction) json.RawMessage {
	e := &exampler{to: to}
	return e.value(s)
}

// value returns an example, or nil if there is none without a type inside itself.
func (e *exampler) value(s *Schema) json.RawMessage {
	if s.Sample != "" {
		return json.RawMessage(s.Sample)
	}
	if e.values++; e.values > maxExample {
		return nil
	}
	switch {
	case s.Of != nil:
		if slices.Contains(e.inside, s.Of) {
			return nil
		}
		e.inside = append(e.inside, s.Of)
		defer func() { e.inside = e.inside[:len(e.inside)-1] }()
		return e.value(s.Of.Schema)
	case len(s.AnyOf) > 0:
		return e.value(s.AnyOf[0])
	case len(s.OneOf) > 0 && len(s.Type) == 0:
		return e.value(s.OneOf[0])
	case len(s.Type) == 0:
		return json.RawMessage("null")
	}
	switch s.Type[0] {
	case jsonschema.Object:
		return e.object(s)
	case jsonschema.Array:
		return e.array(s)
	case jsonschema.String:
		switch {
		case s.ContentEncoding != "":
			return json.RawMessage(`"AQI="`)
		case s.Format == "date-time":
			return json.RawMessage(`"2026-01-02T15:04:05Z"`)
		}
		return json.RawMessage(`"string"`)
	case jsonschema.Integer, jsonschema.Number:
		return json.RawMessage("1")
	case jsonschema.Boolean:
		return json.RawMessage("true")
	}
	return json.RawMessage("null")
}

// array returns as many elements as the array must have, or one.
func (e *exampler) array(s *Schema) json.RawMessage {
	most := 1
	if n, err := s.MinItems.Int64(); err == nil {
		most = int(min(n, maxExample))
	}
	var list []json.RawMessage
	for i := range max(most, len(s.PrefixItems)) {
		of := s.Items
		if i < len(s.PrefixItems) {
			of = s.PrefixItems[i]
		}
		v := e.value(of)
		if v == nil && most == 1 {
			break
		}
		list = append(list, orNull(v))
	}
	return join('[', list, ']')
}

func orNull(v json.RawMessage) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

func (e *exampler) object(s *Schema) json.RawMessage {
	var list []json.RawMessage
	for _, m := range s.Properties {
		if e.leftOut(s, m) {
			continue
		}
		v := e.value(m.Schema)
		if v == nil && !slices.Contains(s.Required, m.Name) {
			continue
		}
		key, _ := json.Marshal(m.Name)
		list = append(list, slices.Concat(key, []byte{':'}, orNull(v)))
	}
	if s.AdditionalProperties != nil && len(s.Properties) == 0 {
		if v := e.value(s.AdditionalProperties); v != nil {
			key := "key"
			if s.PropertyNames != nil {
				key = s.PropertyNames.Sample
			}
			text, _ := json.Marshal(key)
			list = append(list, slices.Concat(text, []byte{':'}, v))
		}
	}
	return join('{', list, '}')
}

// leftOut reports whether an example does not have a property: it excludes another one, or the
// other side writes it.
func (e *exampler) leftOut(s *Schema, m jsonschema.Member) bool {
	if slices.Contains(s.Required, m.Name) {
		return false
	}
	if m.Schema.Deprecated || m.Schema.ReadOnly && e.to == jsonschema.Request || m.Schema.WriteOnly && e.to == jsonschema.Reply {
		return true
	}
	for _, all := range s.AllOf {
		for i, one := range all.OneOf {
			if i > 0 && slices.Contains(one.Required, m.Name) {
				return true
			}
		}
	}
	return false
}

func join(open byte, list []json.RawMessage, end byte) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte(open)
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(v)
	}
	b.WriteByte(end)
	return b.Bytes()
}
