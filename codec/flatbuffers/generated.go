package flatbuffers

import (
	"fmt"
	"sync"

	"github.com/google/flatbuffers/go"

	"github.com/anser-rpc/anser/codec"
)

// Source is a binary schema as generated code contains it. It is parsed when it is first used. It
// is safe for concurrent use.
type Source struct{ parse func() (*Schema, error) }

// NewSource returns a Source of a binary schema, which is not parsed yet.
func NewSource(bfbs string) *Source {
	return &Source{sync.OnceValues(func() (*Schema, error) { return ParseSchema([]byte(bfbs)) })}
}

// Schema returns the schema, or the error of [ParseSchema].
func (s *Source) Schema() (*Schema, error) { return s.parse() }

// Type is a table with its schema. It is safe for concurrent use.
type Type struct {
	name   string
	source *Source
	find   func() (found, error)
	unpack func(data []byte, v any)
}

// found is a table in its schema, which has been parsed.
type found struct {
	schema *Schema
	table  *objectType
}

// Described is a table or an object of the object API that knows its schema, as the types do that
// "anser gen" generates. Every codec of this package takes them. The method is also called with a
// nil receiver.
type Described interface{ FlatBuffersType() *Type }

// NewType returns the Type of T, the generated type of a table, and of O, its type in the object
// API. The name is the full name of the table. A name that is not in the schema is an error of
// every use.
func NewType[T, O any, PT interface {
	*T
	flatbuffers.FlatBuffer
	UnPackTo(*O)
}](s *Source, name string) *Type {
	t := &Type{name: name, source: s, unpack: unpack[T, O, PT]}
	t.find = sync.OnceValues(func() (found, error) {
		schema, err := s.Schema()
		if err != nil {
			return found{}, err
		}
		if table := schema.table(name); table != nil {
			return found{schema, table}, nil
		}
		_, err = schema.Table(name)
		return found{}, err
	})
	return t
}

// Name returns the full name of the table.
func (t *Type) Name() string { return t.name }

// Verify is the [Verifier] of buffers whose root is the table.
func (t *Type) Verify(data []byte) error {
	in, err := t.find()
	if err != nil {
		return err
	}
	return in.schema.verify(data, in.table)
}

// entryOf returns how v is decoded, which is a table or an object of the type.
func (t *Type) entryOf(v any) entry {
	if _, table := v.(flatbuffers.FlatBuffer); table {
		return entry{verify: t.Verify}
	}
	return entry{t.Verify, t.unpack}
}

// Own returns the codec of generated types: one without options.
func Own() codec.Codec { return own }

var own = New()

// ToJSON returns the JSON of a table or an object of the type; see [Schema.ToJSON].
func (t *Type) ToJSON(v Described) ([]byte, error) {
	data, err := own.Append(nil, v)
	if err != nil {
		return nil, err
	}
	in, err := t.find()
	if err != nil {
		return nil, err
	}
	out, err := in.schema.ToJSON(nil, t.name, data)
	if err != nil {
		return nil, fmt.Errorf("flatbuffers: cannot write %s as JSON: %w", t.name, err)
	}
	return out, nil
}

// FromJSON sets a table or an object of the type from JSON; see [Schema.FromJSON]. JSON's null
// leaves it as it is.
func (t *Type) FromJSON(text []byte, v Described) error {
	if string(text) == "null" {
		return nil
	}
	in, err := t.find()
	if err != nil {
		return err
	}
	data, err := in.schema.FromJSON(t.name, text)
	if err != nil {
		return fmt.Errorf("flatbuffers: cannot read %s from JSON: %w", t.name, err)
	}
	return own.Unmarshal(data, v)
}
