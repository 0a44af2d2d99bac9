// Package jsonschema writes schemas of messages in JSON Schema 2020-12, for descriptions of methods
// in OpenAPI and for the tools of agents.
package jsonschema

import (
	"bytes"
	"encoding/json"
)

// Schema is a schema in JSON Schema 2020-12, as OpenAPI 3.1 has them. The zero Schema allows every
// value.
type Schema struct {
	Ref                  string          `json:"$ref,omitempty"`
	Title                string          `json:"title,omitempty"`
	Description          string          `json:"description,omitempty"`
	Type                 Types           `json:"type,omitempty"`
	Format               string          `json:"format,omitempty"`
	ContentEncoding      string          `json:"contentEncoding,omitempty"`
	Pattern              string          `json:"pattern,omitempty"`
	Enum                 []string        `json:"enum,omitempty"`
	Minimum              json.Number     `json:"minimum,omitempty"`
	ExclusiveMinimum     json.Number     `json:"exclusiveMinimum,omitempty"`
	Maximum              json.Number     `json:"maximum,omitempty"`
	MinItems             json.Number     `json:"minItems,omitempty"`
	MaxItems             json.Number     `json:"maxItems,omitempty"`
	Properties           Members         `json:"properties,omitempty"`
	Required             []string        `json:"required,omitempty"`
	PropertyNames        *Schema         `json:"propertyNames,omitempty"`
	AdditionalProperties *Schema         `json:"additionalProperties,omitempty"`
	PrefixItems          []*Schema       `json:"prefixItems,omitempty"`
	Items                *Schema         `json:"items,omitempty"`
	Not                  *Schema         `json:"not,omitempty"`
	AllOf                []*Schema       `json:"allOf,omitempty"`
	AnyOf                []*Schema       `json:"anyOf,omitempty"`
	OneOf                []*Schema       `json:"oneOf,omitempty"`
	Default              json.RawMessage `json:"default,omitempty"`
	Deprecated           bool            `json:"deprecated,omitempty"`
	ReadOnly             bool            `json:"readOnly,omitempty"`
	WriteOnly            bool            `json:"writeOnly,omitempty"`
	Defs                 Members         `json:"$defs,omitempty"`

	Of     *Component `json:"-"` // what Ref will be
	Sample string     `json:"-"` // the example of a value, in JSON; "" for that of its type
}

// The types of JSON.
const (
	String  = "string"
	Integer = "integer"
	Number  = "number"
	Boolean = "boolean"
	Object  = "object"
	Array   = "array"
	Null    = "null"
)

// Types is one type, or several.
type Types []string

// MarshalJSON writes one type as a string.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Member is a property of an object. Properties keep the order of the fields.
type Member struct {
	Name   string
	Schema *Schema
}

// Members are the properties of an object.
type Members []Member

// MarshalJSON writes an object.
func (m Members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m[i].Name)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		value, err := json.Marshal(m[i].Schema)
		if err != nil {
			return nil, err
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Walk calls f for the schema and all schemas in it. It does not follow references.
func (s *Schema) Walk(f func(*Schema)) {
	if s == nil {
		return
	}
	f(s)
	for _, m := range s.Properties {
		m.Schema.Walk(f)
	}
	for _, one := range []*Schema{s.PropertyNames, s.AdditionalProperties, s.Items, s.Not} {
		one.Walk(f)
	}
	for _, list := range [][]*Schema{s.PrefixItems, s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range list {
			one.Walk(f)
		}
	}
}

// Property returns the property with the name, or nil.
func (s *Schema) Property(name string) *Schema {
	for _, m := range s.Properties {
		if m.Name == name {
			return m.Schema
		}
	}
	return nil
}

// Nullable returns a schema that allows null too.
func Nullable(s *Schema) *Schema {
	switch {
	case s.Of != nil || len(s.AnyOf)+len(s.OneOf)+len(s.AllOf)+len(s.Enum) > 0:
		return &Schema{AnyOf: []*Schema{s, {Type: Types{Null}}}}
	case len(s.Type) == 0: // it allows everything
		return s
	}
	s.Type = append(s.Type[:len(s.Type):len(s.Type)], Null)
	return s
}
