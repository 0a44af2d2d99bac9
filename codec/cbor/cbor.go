// Package cbor contains the codec for CBOR (RFC 8949). It uses fxamacker/cbor.
//
// It is a module of its own. A server enables it with anser.Codecs(cbor.New()), a client with the
// same option or, for a single call, with anser.Codec.
package cbor

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"sync"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/internal/shape"
	"github.com/fxamacker/cbor/v2"
)

// MaxDepth is the maximum nesting depth of arrays, maps and tags.
const MaxDepth = shape.MaxDepth

// Codec encodes structs as maps with the field names, or the names in their cbor or json tags, as
// keys.
//
// A payload is one well-formed data item, which is checked before anything is allocated: duplicate
// map keys, text that is not UTF-8, more than MaxDepth levels and trailing bytes are rejected.
// Times are encoded as RFC 3339 text with nanoseconds, integers of any size as integers, and an
// any is decoded into map[any]any, []any, uint64, int64, float64, string, []byte, bool or nil.
// Members without a field in the Go type are ignored, so that types can grow.
//
// It is safe for concurrent use. A value must not be modified while it is being encoded.
type Codec struct {
	enc     cbor.UserBufferEncMode
	dec     cbor.DecMode
	err     error // of the library's options, which are constants
	buffers sync.Pool
	types   shape.Types
}

// New returns a Codec.
func New() *Codec {
	c := &Codec{types: shape.Types{Format: "CBOR", Tag: "cbor", Whole: whole}}
	var encErr, decErr error
	c.enc, encErr = cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.UserBufferEncMode()
	c.dec, decErr = cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:  MaxDepth,
		MaxArrayElements: maxElements,
		MaxMapPairs:      maxElements,
		UTF8:             cbor.UTF8RejectInvalid,
	}.DecMode()
	c.err = errors.Join(encErr, decErr)
	return c
}

// maxElements is the largest limit that the library accepts. Declared elements must be present, so
// the size of the message is the effective limit.
const maxElements = 1<<31 - 1

// whole reports whether CBOR has an encoding of its own for the type.
func whole(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[big.Int](), reflect.TypeFor[cbor.RawMessage](), reflect.TypeFor[cbor.Tag](), reflect.TypeFor[cbor.RawTag]():
		return true
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[cbor.Marshaler]()) && reflect.PointerTo(t).Implements(reflect.TypeFor[cbor.Unmarshaler]())
}

// ID returns codec.CBORID.
func (*Codec) ID() uint8 { return codec.CBORID }

// Name returns "cbor".
func (*Codec) Name() string { return "cbor" }

var errNil = errors.New("it is nil or no pointer: pass a pointer to a value")

// Append appends v.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := c.append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("cbor codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

func (c *Codec) append(dst []byte, v any) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	if shape.IsNil(v) {
		return nil, errNil
	}
	p := c.types.Plan(reflect.TypeOf(v))
	if p.Err != nil {
		return nil, p.Err
	}
	if p.Deep {
		if err := c.types.CheckDepth(v); err != nil {
			return nil, err
		}
	}
	b, ok := c.buffers.Get().(*bytes.Buffer)
	if !ok {
		b = new(bytes.Buffer)
	}
	b.Reset()
	if err := c.enc.MarshalToBuffer(v, b); err != nil {
		return nil, err
	}
	// Both sides reject the same messages. In types that cannot be nested only text can be
	// invalid.
	if err := c.wellformed(b.Bytes(), p.Deep); err != nil {
		return nil, err
	}
	dst = append(dst, b.Bytes()...)
	if b.Cap() <= maxKept {
		c.buffers.Put(b)
	}
	return dst, nil
}

// maxKept is the size of the largest buffer that is kept for the next message.
const maxKept = 1 << 20

func (c *Codec) wellformed(b []byte, deep bool) error {
	if deep {
		if err := c.dec.Wellformed(b); err != nil {
			return err
		}
	}
	return nil
}

// Unmarshal decodes data into v. Fields that are missing in data stay unchanged.
func (c *Codec) Unmarshal(data []byte, v any) error {
	if err := c.unmarshal(data, v); err != nil {
		return fmt.Errorf("cbor codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func (c *Codec) unmarshal(data []byte, v any) (err error) {
	if c.err != nil {
		return c.err
	}
	if shape.IsNil(v) || !shape.IsPointer(v) {
		return errNil
	}
	if p := c.types.Plan(reflect.TypeOf(v)); p.Err != nil {
		return p.Err
	}
	// The decoder is third-party code, and so are the methods of types that decode themselves.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the data does not fit: %v", p)
		}
	}()
	return c.dec.Unmarshal(data, v)
}

// Fits reports whether CBOR can encode all parts of v's type. Protobuf messages do not fit: their
// Go structs do not describe all of their fields.
func (c *Codec) Fits(v any) bool {
	return shape.IsPointer(v) && c.types.Plan(reflect.TypeOf(v)).Err == nil
}
