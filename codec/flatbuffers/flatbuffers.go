// Package flatbuffers contains the codec for FlatBuffers. A message is a root table: it is not
// decoded but verified, and its fields are then read in place.
//
// The Go runtime of FlatBuffers has no verifier: an offset beyond the buffer makes an accessor
// panic somewhere in the handler. So this package has one. It uses the schema that the compiler
// writes with -b --schema, and a type can be received only if a verifier is registered for it:
//
//	schema, err := flatbuffers.ParseSchema(bfbs)
//	…
//	person, err := schema.Table("example.Person")
//	…
//	c := flatbuffers.New(flatbuffers.Table[fb.Person](person))
//
// The types that "anser gen" generates have their schemas, and need no registration. Their methods
// are called in this codec without any option.
//
// It is a module of its own. For other types a server enables it with anser.Codecs(c), a client
// with the same option or, for a single call, with anser.Codec(c).
package flatbuffers

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/internal/shape"
	"github.com/google/flatbuffers/go"
)

// Codec encodes root tables, finished builders and objects of the object API, and decodes tables
// and objects.
//
// A received table refers to a copy of the payload, which lives as long as the table: it may be
// kept. With Borrow, requests refer to the payload itself.
//
// It is safe for concurrent use. A builder or object must not be modified while it is being sent.
type Codec struct {
	types    map[reflect.Type]entry
	borrow   bool
	err      error // of New
	objects  shape.Types
	builders sync.Pool // of *flatbuffers.Builder
}

// entry describes a registered type.
type entry struct {
	verify Verifier
	unpack func(data []byte, v any) // into an object
}

// A Verifier returns an error if data is not a buffer whose root table can be read safely: if any
// offset in it points beyond it. It must not keep data, and is called for every message, possibly
// concurrently.
type Verifier func(data []byte) error

// An Option is one of the options of New.
type Option func(*Codec)

// Table registers the type that the compiler generated for a table. The verifier comes from a
// Schema, or is the application's own.
func Table[T any, PT interface {
	*T
	flatbuffers.FlatBuffer
}](v Verifier) Option {
	return func(c *Codec) {
		if v == nil {
			c.err = fmt.Errorf("flatbuffers.New: the verifier of %v is nil", reflect.TypeFor[PT]())
		}
		c.types[reflect.TypeFor[PT]()] = entry{verify: v}
	}
}

// Object registers a type of the object API, which the compiler generates with --gen-object-api,
// with the type of its table:
//
//	flatbuffers.Object[fb.Person, fb.PersonT](person)
func Object[T, O any, PT interface {
	*T
	flatbuffers.FlatBuffer
	UnPackTo(*O)
}](v Verifier) Option {
	return func(c *Codec) {
		Table[T, PT](v)(c)
		c.types[reflect.TypeFor[*O]()] = entry{v, unpack[T, O, PT]}
	}
}

// unpack unpacks a buffer whose root is a T into v, which is an *O.
func unpack[T, O any, PT interface {
	*T
	flatbuffers.FlatBuffer
	UnPackTo(*O)
}](data []byte, v any) {
	var table PT = new(T)
	flatbuffers.GetRootAs(data, 0, table)
	table.UnPackTo(v.(*O))
}

// Borrow makes the tables of requests refer to the payload, without a copy. Such a table, and
// every slice that its accessors return, is valid until its handler has returned, and must not be
// kept or used by a goroutine that outlives it. Replies received by a client are copied as before,
// and objects of the object API are unpacked from a copy.
func Borrow() Option { return func(c *Codec) { c.borrow = true } }

// New returns a Codec. If an option or a verifier is nil, every use of the codec returns an error.
func New(opts ...Option) *Codec {
	c := &Codec{types: make(map[reflect.Type]entry), objects: shape.Types{Format: "FlatBuffers"}}
	for _, o := range opts {
		if o == nil {
			c.err = errors.New("flatbuffers.New: an option is nil")
			continue
		}
		o(c)
	}
	return c
}

// ID returns codec.FlatBuffersID.
func (*Codec) ID() uint8 { return codec.FlatBuffersID }

// Name returns "flatbuffers".
func (*Codec) Name() string { return "flatbuffers" }

// object is the interface of types generated with --gen-object-api.
type object interface {
	Pack(*flatbuffers.Builder) flatbuffers.UOffsetT
}

var (
	errNil     = errors.New("it is nil: pass a table, a finished builder or an object")
	errType    = errors.New("it is not a table of FlatBuffers, builder or object: use another codec")
	errEmpty   = errors.New("the table has no buffer: build one, and read it with GetRootAs")
	errNotRoot = errors.New("it is not the root table of its buffer: pass that, or build a buffer of its own")
	errUnknown = errors.New("no verifier is known for it: pass flatbuffers.Table or flatbuffers.Object to New")
)

// Append appends the result of a finished *flatbuffers.Builder, the buffer of a root table, or a
// packed object of the object API.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := c.append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("flatbuffers codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

func (c *Codec) append(dst []byte, v any) (out []byte, err error) {
	if c.err != nil {
		return nil, c.err
	}
	if shape.IsNil(v) {
		return nil, errNil
	}
	// The runtime panics if a builder is not finished.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	switch m := v.(type) {
	case *flatbuffers.Builder:
		return append(dst, m.FinishedBytes()...), nil
	case flatbuffers.FlatBuffer:
		t := m.Table()
		switch {
		case len(t.Bytes) < flatbuffers.SizeUOffsetT:
			return nil, errEmpty
		case flatbuffers.GetUOffsetT(t.Bytes) != t.Pos:
			return nil, errNotRoot
		}
		return append(dst, t.Bytes...), nil
	case object:
		return c.appendObject(dst, m)
	}
	return nil, errType
}

func (c *Codec) appendObject(dst []byte, m object) ([]byte, error) {
	if c.objects.Plan(reflect.TypeOf(m)).Deep {
		if err := c.objects.CheckDepth(m); err != nil {
			return nil, err
		}
	}
	b, ok := c.builders.Get().(*flatbuffers.Builder)
	if !ok {
		b = flatbuffers.NewBuilder(1024)
	}
	b.Reset()
	b.Finish(m.Pack(b))
	dst = append(dst, b.FinishedBytes()...)
	if cap(b.Bytes) <= maxKept {
		c.builders.Put(b)
	}
	return dst, nil
}

// maxKept is the size of the largest buffer that is kept for the next message.
const maxKept = 1 << 20

// Unmarshal verifies data. If v is a table, it then refers to a copy of data; if v is an object,
// data is unpacked into it.
func (c *Codec) Unmarshal(data []byte, v any) error { return c.unmarshal(data, v, false) }

// UnmarshalBorrowed does the same without a copy, if that is enabled.
func (c *Codec) UnmarshalBorrowed(data []byte, v any) error { return c.unmarshal(data, v, c.borrow) }

func (c *Codec) unmarshal(data []byte, v any, borrowed bool) error {
	e, err := c.entry(v)
	if err == nil {
		err = e.decode(data, v, borrowed)
	}
	if err != nil {
		return fmt.Errorf("flatbuffers codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func (c *Codec) entry(v any) (entry, error) {
	if c.err != nil {
		return entry{}, c.err
	}
	if shape.IsNil(v) {
		return entry{}, errNil
	}
	if e, ok := c.types[reflect.TypeOf(v)]; ok && e.verify != nil {
		return e, nil
	}
	if d, ok := v.(Described); ok {
		return d.FlatBuffersType().entryOf(v), nil
	}
	return entry{}, errUnknown
}

func (e entry) decode(data []byte, v any, borrowed bool) (err error) {
	// A verifier may be the application's own.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the data does not fit: %v", p)
		}
	}()
	if err := e.verify(data); err != nil {
		return err
	}
	// The byte slices of objects share memory with the buffer they were unpacked from.
	if !borrowed || e.unpack != nil {
		data = bytes.Clone(data)
	}
	if e.unpack != nil {
		e.unpack(data, v)
		return nil
	}
	flatbuffers.GetRootAs(data[:len(data):len(data)], 0, v.(flatbuffers.FlatBuffer))
	return nil
}

// Fits reports whether v's type is registered, or generated by "anser gen". A builder does not fit,
// as it cannot receive a message: set the codec for a call that sends one.
func (c *Codec) Fits(v any) bool {
	if _, ok := v.(Described); ok {
		return true
	}
	e, ok := c.types[reflect.TypeOf(v)]
	return ok && e.verify != nil
}
