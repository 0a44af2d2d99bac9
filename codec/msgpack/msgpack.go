// Package msgpack holds the codec for MessagePack: plain Go types through shamaton/msgpack, and
// types with the methods that tinylib's msgp generates through these.
package msgpack

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/internal/mpscan"
	"github.com/anser-rpc/anser/codec/internal/shape"
	"github.com/shamaton/msgpack/v3"
)

// Codec encodes structs as maps from field names, or the names in their msgpack tags.
//
// Types with MarshalMsg and UnmarshalMsg, which msgp generates, are encoded and decoded by these: at
// a multiple of the speed, and with the names in their msg tags.
//
// Every payload is scanned before it is decoded: what was declared must be there, nothing may follow
// it, strings must be UTF-8, and arrays and maps may be nested 64 deep. What was encoded is scanned
// too, so that both sides refuse the same. In plain types, integers that are too large for
// their field wrap around, and a time.Time comes back in UTC.
//
// It is safe for concurrent use. Values must not be changed while they are encoded.
type Codec struct {
	types  shape.Types
	orders sync.Map // of bool by reflect.Type: whether equal values have the same bytes
}

// generated is what msgp generates.
type generated interface {
	MarshalMsg(b []byte) ([]byte, error)
	UnmarshalMsg(b []byte) ([]byte, error)
}

// New returns a Codec.
func New() *Codec { return &Codec{types: shape.Types{Format: "MessagePack", Tag: "msgpack"}} }

// ID returns codec.MsgpackID.
func (*Codec) ID() uint8 { return codec.MsgpackID }

// Name returns "msgpack".
func (*Codec) Name() string { return "msgpack" }

var (
	errNil  = errors.New("it is nil or no pointer: pass a pointer to a value")
	errLeft = errors.New("UnmarshalMsg left bytes over")
)

// Append appends v.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := c.append(dst, v)
	if err == nil {
		_, err = mpscan.Scan(out[len(dst):])
	}
	if err != nil {
		return dst, fmt.Errorf("msgpack codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

func (c *Codec) append(dst []byte, v any) ([]byte, error) {
	if shape.IsNil(v) {
		return nil, errNil
	}
	if g, ok := v.(generated); ok {
		return g.MarshalMsg(dst)
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
	b, err := msgpack.MarshalAsMap(v)
	return append(dst, b...), err
}

// Unmarshal decodes data into v. Fields that data does not have stay as they are, except in types
// whose generated code decides otherwise.
func (c *Codec) Unmarshal(data []byte, v any) error {
	if err := c.unmarshal(data, v); err != nil {
		return fmt.Errorf("msgpack codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func (c *Codec) unmarshal(data []byte, v any) (err error) {
	if shape.IsNil(v) || !shape.IsPointer(v) {
		return errNil
	}
	binary, err := mpscan.Scan(data)
	if err != nil {
		return err
	}
	// Neither decoder is ours, and both see a peer's bytes. shamaton's panics where a type does not
	// fit: bin for a []string, a slice as the key of a map, an interface that a value does not have.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the data does not fit: %v", p)
		}
	}()
	if g, ok := v.(generated); ok {
		rest, err := g.UnmarshalMsg(data)
		if err == nil && len(rest) > 0 {
			return errLeft
		}
		return err
	}
	p := c.types.Plan(reflect.TypeOf(v))
	if p.Err != nil {
		return p.Err
	}
	if binary || p.Bytes {
		// shamaton's []byte, and strings made of bin, share memory with data.
		data = slices.Clone(data)
	}
	return msgpack.UnmarshalAsMap(data, v)
}

// Unfit returns why v does not fit, with the path of the field that does not.
func (c *Codec) Unfit(v any) error {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return errNil
	}
	if _, ok := v.(generated); ok {
		return nil
	}
	return c.types.Plan(t).Err
}

// Fits reports whether v's type has msgp's methods, or consists of what MessagePack has. Protobuf
// messages do not fit: their fields are more than their Go structs say.
func (c *Codec) Fits(v any) bool {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return false
	}
	if _, ok := v.(generated); ok {
		return true
	}
	return c.types.Plan(t).Err == nil
}
