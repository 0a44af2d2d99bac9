package openapi

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
	Type                 types           `json:"type,omitempty"`
	Format               string          `json:"format,omitempty"`
	ContentEncoding      string          `json:"contentEncoding,omitempty"`
	Pattern              string          `json:"pattern,omitempty"`
	Enum                 []string        `json:"enum,omitempty"`
	Minimum              json.Number     `json:"minimum,omitempty"`
	ExclusiveMinimum     json.Number     `json:"exclusiveMinimum,omitempty"`
	Maximum              json.Number     `json:"maximum,omitempty"`
	MinItems             json.Number     `json:"minItems,omitempty"`
	MaxItems             json.Number     `json:"maxItems,omitempty"`
	Properties           members         `json:"properties,omitempty"`
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

	of     *component // what Ref will be
	sample string     // the example of a value, in JSON; "" for that of its type
}

// The types of JSON.
const (
	tString  = "string"
	tInteger = "integer"
	tNumber  = "number"
	tBoolean = "boolean"
	tObject  = "object"
	tArray   = "array"
	tNull    = "null"
)

// types is one type, or several.
type types []string

func (t types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// member is a property of an object. Properties keep the order of the fields.
type member struct {
	name   string
	schema *Schema
}

type members []member

func (m members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m[i].name)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		value, err := json.Marshal(m[i].schema)
		if err != nil {
			return nil, err
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// walk calls f for the schema and all schemas in it. It does not follow references.
func (s *Schema) walk(f func(*Schema)) {
	if s == nil {
		return
	}
	f(s)
	for _, m := range s.Properties {
		m.schema.walk(f)
	}
	for _, one := range []*Schema{s.PropertyNames, s.AdditionalProperties, s.Items, s.Not} {
		one.walk(f)
	}
	for _, list := range [][]*Schema{s.PrefixItems, s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range list {
			one.walk(f)
		}
	}
}

// property returns the property with the name, or nil.
func (s *Schema) property(name string) *Schema {
	for _, m := range s.Properties {
		if m.name == name {
			return m.schema
		}
	}
	return nil
}

// nullable returns a schema that allows null too.
func nullable(s *Schema) *Schema {
	switch {
	case s.of != nil || len(s.AnyOf)+len(s.OneOf)+len(s.AllOf)+len(s.Enum) > 0:
		return &Schema{AnyOf: []*Schema{s, {Type: types{tNull}}}}
	case len(s.Type) == 0: // it allows everything
		return s
	}
	s.Type = append(s.Type[:len(s.Type):len(s.Type)], tNull)
	return s
}
