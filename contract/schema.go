// Package contract describes services by their schemas, whatever language the schema is written
// in: protobuf, FlatBuffers, kiss-rpc's IDL or Go. The code that "anser gen" writes contains the
// description of its services; a server publishes it with its methods.
package contract

import (
	"encoding/json"
	"fmt"
)

// Kind is the language of a schema.
type Kind string

// The kinds.
const (
	Protobuf    Kind = "protobuf"
	FlatBuffers Kind = "flatbuffers"
	Kiss        Kind = "kiss"
	Go          Kind = "go"
)

// Schema is a set of services with all messages and enums that they use. It is a value for
// reading: functions of this package that take one do not change it. It is safe for concurrent
// reading.
type Schema struct {
	Kind     Kind      `json:"kind"`
	Services []Service `json:"services,omitempty"`
	Messages []Message `json:"messages,omitempty"`
	Enums    []Enum    `json:"enums,omitempty"`
}

// Service is a named set of methods.
type Service struct {
	Name       string   `json:"name"` // "orders.v1.Orders"
	Doc        string   `json:"doc,omitempty"`
	Deprecated bool     `json:"deprecated,omitempty"`
	Methods    []Method `json:"methods,omitempty"`
	At         Position `json:"at,omitzero"`
}

// Method is a method of a service.
type Method struct {
	Name         string   `json:"name"` // without the service: "Place"
	Doc          string   `json:"doc,omitempty"`
	Request      string   `json:"request"` // name of a message of the schema
	Reply        string   `json:"reply"`   // name of a message of the schema; empty for a oneway method
	ClientStream bool     `json:"client_stream,omitempty"`
	ServerStream bool     `json:"server_stream,omitempty"`
	Oneway       bool     `json:"oneway,omitempty"`
	Idempotent   bool     `json:"idempotent,omitempty"`
	Deprecated   bool     `json:"deprecated,omitempty"`
	At           Position `json:"at,omitzero"`
}

// Stream reports whether either side sends any number of messages.
func (m *Method) Stream() bool { return m.ClientStream || m.ServerStream }

// Message is a type with fields.
type Message struct {
	Name string `json:"name"` // "orders.v1.Order"; unique in the schema
	Doc  string `json:"doc,omitempty"`
	// Form is how the fields are told apart on the wire.
	Form       Form     `json:"form,omitempty"`
	Deprecated bool     `json:"deprecated,omitempty"`
	Fields     []Field  `json:"fields,omitempty"`
	Reserved   []Range  `json:"reserved,omitempty"`       // numbers that no field may have
	Retired    []string `json:"reserved_names,omitempty"` // names that no field may have
	Extensions []Range  `json:"extensions,omitempty"`
	Align      int      `json:"align,omitempty"` // of a struct of FlatBuffers, in bytes, if it is forced
	At         Position `json:"at,omitzero"`
}

// Form is how the fields of a message are told apart on the wire.
type Form string

// The forms. FlatBuffers' structs and tuples are found by position alone.
const (
	ByNumber Form = ""       // protobuf, tables of FlatBuffers
	ByName   Form = "names"  // MessagePack and JSON of Go structs and of kiss-rpc's messages
	InPlace  Form = "struct" // FlatBuffers' structs
	InOrder  Form = "tuple"  // the arguments or results of a Go method with several of them
	OneOf    Form = "union"  // FlatBuffers' unions: a value of one of the fields
	Opaque   Form = "opaque" // a Go type that encodes itself; it has no fields
)

// Range is a range of field numbers, both ends included.
type Range struct {
	From int32 `json:"from"`
	To   int32 `json:"to"`
}

// Field is a field of a message.
type Field struct {
	Name string `json:"name"`
	// JSON is the key in JSON, empty if it is Name.
	JSON string `json:"json,omitempty"`
	Doc  string `json:"doc,omitempty"`
	// Number is the number in the schema, from 1; 0 if the form of the message has none.
	Number int32 `json:"number,omitempty"`
	Type   Type  `json:"type"`
	// Presence tells whether an absent field can be told from one with its default.
	Presence   Presence `json:"presence,omitempty"`
	OneOf      string   `json:"oneof,omitempty"`   // name of the oneof that contains the field
	Default    string   `json:"default,omitempty"` // as written in the schema
	Packed     bool     `json:"packed,omitempty"`
	Deprecated bool     `json:"deprecated,omitempty"`
	At         Position `json:"at,omitzero"`
}

// Presence tells whether an absent field can be told from one with its default.
type Presence string

// The presences.
const (
	Implicit Presence = ""         // it cannot
	Explicit Presence = "optional" // it can
	Required Presence = "required" // it may not be absent
)

// Type is the type of a field.
type Type struct {
	// Name is the type of a value: "int32", "string", … for a scalar, in the words of the
	// schema's language, or "message", "group" or "enum".
	Name string `json:"name"`
	// Of is the name of the message or enum.
	Of string `json:"of,omitempty"`
	// Repeated means any number of values.
	Repeated bool `json:"repeated,omitempty"`
	// Length is the number of values of an array with a fixed length, else 0.
	Length int `json:"length,omitempty"`
	// Key is the scalar type of the keys of a map, whose values Name describes.
	Key string `json:"key,omitempty"`
}

// String writes the type as in protobuf: "repeated orders.v1.Line", "map<string, int32>".
func (t Type) String() string {
	name := t.Name
	if t.Of != "" {
		name = t.Of
	}
	switch {
	case t.Key != "":
		return fmt.Sprintf("map<%s, %s>", t.Key, name)
	case t.Length > 0:
		return fmt.Sprintf("[%d]%s", t.Length, name)
	case t.Repeated:
		return "repeated " + name
	}
	return name
}

// Enum is a type whose values have names.
type Enum struct {
	Name   string `json:"name"`
	Doc    string `json:"doc,omitempty"`
	Type   string `json:"type,omitempty"`   // the underlying scalar, if the language lets one choose
	Closed bool   `json:"closed,omitempty"` // values without a name are not accepted
	Flags  bool   `json:"flags,omitempty"`  // the values are bits
	// Values are in the order of the schema.
	Values   []EnumValue `json:"values,omitempty"`
	Reserved []Range     `json:"reserved,omitempty"`
	Retired  []string    `json:"reserved_names,omitempty"`
	At       Position    `json:"at,omitzero"`
}

// EnumValue is a value of an enum.
type EnumValue struct {
	Name       string   `json:"name"`
	Number     int64    `json:"number"`
	Doc        string   `json:"doc,omitempty"`
	Deprecated bool     `json:"deprecated,omitempty"`
	At         Position `json:"at,omitzero"`
}

// Position is a place in the source of a schema. The zero Position is unknown.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`   // from 1
	Column int    `json:"column,omitempty"` // in bytes, from 1
}

// String returns "file:line:column" without the parts that are unknown.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Service returns the service with the name, or nil.
func (s *Schema) Service(name string) *Service {
	for i := range s.Services {
		if s.Services[i].Name == name {
			return &s.Services[i]
		}
	}
	return nil
}

// Message returns the message with the name, or nil.
func (s *Schema) Message(name string) *Message {
	for i := range s.Messages {
		if s.Messages[i].Name == name {
			return &s.Messages[i]
		}
	}
	return nil
}

// Enum returns the enum with the name, or nil.
func (s *Schema) Enum(name string) *Enum {
	for i := range s.Enums {
		if s.Enums[i].Name == name {
			return &s.Enums[i]
		}
	}
	return nil
}

// Method returns the method with the name, or nil.
func (s *Service) Method(name string) *Method {
	for i := range s.Methods {
		if s.Methods[i].Name == name {
			return &s.Methods[i]
		}
	}
	return nil
}

// Parse returns the schema whose JSON text is given, after Check.
func Parse(text []byte) (*Schema, error) {
	s := new(Schema)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

// Check returns an error if a name is missing, is defined twice, or refers to nothing in the
// schema.
func (s *Schema) Check() error {
	types := map[string]string{}
	define := func(what, name string) error {
		if name == "" {
			return fmt.Errorf("contract: a %s has no name", what)
		}
		if before, twice := types[name]; twice {
			return fmt.Errorf("contract: %s %s is defined twice, first as %s", what, name, before)
		}
		types[name] = what
		return nil
	}
	for i := range s.Messages {
		if err := define("message", s.Messages[i].Name); err != nil {
			return err
		}
	}
	for i := range s.Enums {
		if err := define("enum", s.Enums[i].Name); err != nil {
			return err
		}
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		for _, f := range m.Fields {
			want := ""
			switch f.Type.Name {
			case "message", "group":
				want = "message"
			case "enum":
				want = "enum"
			default:
				continue
			}
			if types[f.Type.Of] != want {
				return fmt.Errorf("contract: field %s.%s has the type %s, which is no %s of the schema", m.Name, f.Name, f.Type.Of, want)
			}
		}
	}
	for i := range s.Services {
		if err := s.checkService(&s.Services[i], types, define); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) checkService(v *Service, types map[string]string, define func(what, name string) error) error {
	if err := define("service", v.Name); err != nil {
		return err
	}
	for i := range v.Methods {
		m := &v.Methods[i]
		if err := define("method", v.Name+"."+m.Name); err != nil {
			return err
		}
		if types[m.Request] != "message" {
			return fmt.Errorf("contract: method %s.%s takes %q, which is not a message of the schema", v.Name, m.Name, m.Request)
		}
		if types[m.Reply] != "message" && !(m.Oneway && m.Reply == "") {
			return fmt.Errorf("contract: method %s.%s returns %q, which is not a message of the schema", v.Name, m.Name, m.Reply)
		}
	}
	return nil
}
