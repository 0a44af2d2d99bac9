// Package thrift holds codecs for the structs that Thrift's compiler generates, in the binary and in
// the compact protocol. The payload is the struct alone, without Thrift's message header: calls are
// Anser's.
//
// It is a module of its own. A server takes both with anser.Codecs(thrift.Binary(), thrift.Compact()), a
// client chooses one with the same option or, for a single call, with anser.Codec.
package thrift

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/internal/shape"
	"github.com/apache/thrift/lib/go/thrift"
)

// MaxDepth is how deep structs, lists, sets and maps may be nested.
const MaxDepth = shape.MaxDepth

// Codec encodes values with the methods Write and Read that Thrift's compiler generates.
//
// Every payload is scanned before it is decoded: what was declared must be there, nothing may follow
// the struct, types must be Thrift's and the nesting at most MaxDepth. As in Thrift itself, a field
// that is unknown or of another type than expected is skipped, strings need not be UTF-8, and a
// struct without a required field is refused.
//
// It is safe for concurrent use. Values must not be changed while they are encoded.
type Codec struct {
	id     uint8
	name   string
	scan   func(data []byte) error
	make   func(thrift.TTransport) thrift.TProtocol
	states sync.Pool // of *state
}

// state is a protocol with its transport. They keep buffers, and are made once.
type state struct {
	transport
	protocol thrift.TProtocol
}

// Binary returns the codec for Thrift's binary protocol.
func Binary() *Codec {
	return &Codec{
		id: codec.ThriftBinaryID, name: "thrift-binary", scan: scanBinary,
		make: func(t thrift.TTransport) thrift.TProtocol { return thrift.NewTBinaryProtocolConf(t, limits()) },
	}
}

// Compact returns the codec for Thrift's compact protocol, whose messages are smaller.
func Compact() *Codec {
	return &Codec{
		id: codec.ThriftCompactID, name: "thrift-compact", scan: scanCompact,
		make: func(t thrift.TTransport) thrift.TProtocol { return thrift.NewTCompactProtocolConf(t, limits()) },
	}
}

// limits leaves the limit of a message's size to Anser, and that of a container to the scan.
func limits() *thrift.TConfiguration {
	return &thrift.TConfiguration{MaxMessageSize: math.MaxInt32, MaxContainerSize: math.MaxInt32}
}

// ID returns codec.ThriftBinaryID or codec.ThriftCompactID.
func (c *Codec) ID() uint8 { return c.id }

// Name returns "thrift-binary" or "thrift-compact".
func (c *Codec) Name() string { return c.name }

var (
	errType = errors.New("it is no struct of Thrift's compiler: use another codec")
	errNil  = errors.New("it is nil: pass a struct")
)

// Append appends v.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := c.append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("%s codec: cannot encode %T: %w", c.name, v, err)
	}
	return out, nil
}

func (c *Codec) append(dst []byte, v any) (out []byte, err error) {
	m, err := structOf(v)
	if err != nil {
		return nil, err
	}
	if err := checkDepth(reflect.ValueOf(v), 4*MaxDepth); err != nil {
		return nil, err
	}
	s := c.state()
	s.data = dst
	ctx := context.Background()
	if err := m.Write(ctx, s.protocol); err != nil {
		return nil, err
	}
	if err := s.protocol.Flush(ctx); err != nil {
		return nil, err
	}
	out = s.data
	c.done(s)
	// Both sides refuse the same.
	return out, c.scan(out[len(dst):])
}

// Unmarshal decodes data into v.
func (c *Codec) Unmarshal(data []byte, v any) error {
	if err := c.unmarshal(data, v); err != nil {
		return fmt.Errorf("%s codec: cannot decode into %T: %w", c.name, v, err)
	}
	return nil
}

func (c *Codec) unmarshal(data []byte, v any) (err error) {
	m, err := structOf(v)
	if err != nil {
		return err
	}
	if err := c.scan(data); err != nil {
		return err
	}
	// The code that the compiler wrote is the application's.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the data does not fit: %v", p)
		}
	}()
	s := c.state()
	s.data = data
	if err := m.Read(context.Background(), s.protocol); err != nil {
		return err
	}
	left := len(s.data) - s.at
	c.done(s)
	if left > 0 {
		return errTrailing
	}
	return nil
}

func structOf(v any) (thrift.TStruct, error) {
	m, ok := v.(thrift.TStruct)
	if !ok {
		return nil, errType
	}
	if shape.IsNil(v) {
		return nil, errNil
	}
	return m, nil
}

// state returns a state for one message. One that failed is left to the garbage collector: a compact
// protocol remembers where it was.
func (c *Codec) state() *state {
	s, ok := c.states.Get().(*state)
	if !ok {
		s = new(state)
		s.protocol = c.make(&s.transport)
	}
	return s
}

func (c *Codec) done(s *state) {
	s.data, s.at = nil, 0
	c.states.Put(s)
}

// Fits reports whether v's type is one of Thrift's compiler.
func (c *Codec) Fits(v any) bool {
	_, ok := v.(thrift.TStruct)
	return ok && shape.IsPointer(v)
}

var errDeep = fmt.Errorf("structs, lists and maps are nested deeper than %d levels", MaxDepth)

// checkDepth fails for a value that contains itself, which generated code would follow until the
// stack is full.
func checkDepth(v reflect.Value, steps int) error {
	if steps == 0 {
		return errDeep
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return checkDepth(v.Elem(), steps-1)
		}
	case reflect.Slice, reflect.Array:
		if scalar(v.Type().Elem()) {
			return nil
		}
		for i := range v.Len() {
			if err := checkDepth(v.Index(i), steps-1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			for _, part := range []reflect.Value{entries.Key(), entries.Value()} {
				if scalar(part.Type()) {
					continue
				}
				if err := checkDepth(part, steps-1); err != nil {
					return err
				}
			}
		}
	case reflect.Struct:
		for i, f := range fields(v.Type()) {
			if f {
				if err := checkDepth(v.Field(i), steps-1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func scalar(t reflect.Type) bool {
	return !slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct}, t.Kind())
}

var structs sync.Map // of []bool by reflect.Type

// fields tells which fields of a struct may have something nested in them. Optional scalars are
// pointers to scalars.
func fields(t reflect.Type) []bool {
	if known, ok := structs.Load(t); ok {
		return known.([]bool)
	}
	var nested []bool
	for f := range t.Fields() {
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		nested = append(nested, f.IsExported() && !scalar(inner))
	}
	known, _ := structs.LoadOrStore(t, nested)
	return known.([]bool)
}
