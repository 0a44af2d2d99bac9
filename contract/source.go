package contract

import "sync"

// Source is the JSON text of a schema, as generated code contains it; it is parsed when it is first
// used. It is safe for concurrent use.
type Source struct {
	text        string
	parse       func() (*Schema, error)
	descriptors func() []byte // may be nil
}

// NewSource returns a Source of the text, which is not parsed yet.
func NewSource(text string) *Source {
	return &Source{text: text, parse: sync.OnceValues(func() (*Schema, error) { return Parse([]byte(text)) })}
}

// WithDescriptors returns a copy of s whose Descriptors calls f once, when they are first used.
func (s *Source) WithDescriptors(f func() []byte) *Source {
	c := *s
	c.descriptors = sync.OnceValue(f)
	return &c
}

// Schema returns the schema, which is shared and must not be changed, or the error of [Parse].
func (s *Source) Schema() (*Schema, error) { return s.parse() }

// Descriptors returns what programs of the schema's own language need to translate messages: for
// protobuf an encoded google.protobuf.FileDescriptorSet, otherwise nil. It is shared and must not
// be changed.
func (s *Source) Descriptors() []byte {
	if s.descriptors == nil {
		return nil
	}
	return s.descriptors()
}

// String returns the text.
func (s *Source) String() string { return s.text }
