// Package protobuf holds the codecs for protobuf messages: the binary one, and a JSON codec that
// handles protobuf messages and plain Go types.
package protobuf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/codec"
	"google.golang.org/protobuf/proto"
)

// maxDepth is how deep messages may be nested, the limit of most other implementations. Go's own is
// 10,000, and vtproto has none.
const maxDepth = 100

// Codec encodes what implements proto.Message.
//
// Types with the methods of protoc-gen-go-vtproto (features marshal, unmarshal and size) are encoded
// and decoded by these, in about half the time, if their schema permits: see New. Either way a
// message is reset before it is decoded into, required fields must be there, text must be UTF-8
// where the schema says so, and fields that are not known are kept.
//
// It is safe for concurrent use. Messages must not be changed while they are encoded.
type Codec struct {
	schemas sync.Map // of *schema by reflect.Type
	recent  [recentTypes]atomic.Pointer[recent]
}

// fast is what protoc-gen-go-vtproto adds to a message.
type fast interface {
	proto.Message
	Reset()
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// New returns a Codec.
//
// vtproto's code is used for a type unless it, or a message inside it, has groups (whose fields
// vtproto drops) or extension ranges (it does not encode extensions). What vtproto does not check is
// checked on the bytes, before decoding and after encoding: UTF-8, the depth of types that contain
// themselves, and the entries of maps, of which it misreads some that are unusual. The schema is looked at once for each type. One difference is left: inside
// the well-known types (google.protobuf.Timestamp and its like) vtproto drops unknown fields.
func New() *Codec { return new(Codec) }

// ID returns codec.ProtobufID.
func (*Codec) ID() uint8 { return codec.ProtobufID }

// Name returns "protobuf".
func (*Codec) Name() string { return "protobuf" }

// Append appends v, a proto.Message.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := dst, error(nil)
	if f, s := c.fast(v); f != nil {
		out, err = appendFast(dst, f, s)
	} else {
		out, err = appendStandard(dst, v)
	}
	if err != nil {
		return dst, fmt.Errorf("protobuf codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

// appendFast grows dst at most once and lets vtproto, which writes from the end, fill the new part.
func appendFast(dst []byte, m fast, s schema) ([]byte, error) {
	size, start := m.SizeVT(), len(dst)
	dst = slices.Grow(dst, size)[:start+size]
	n, err := m.MarshalToSizedBufferVT(dst[start:])
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, fmt.Errorf("%d bytes instead of %d: the message was changed while it was encoded", n, size)
	}
	return dst, s.check(dst[start:])
}

func appendStandard(dst []byte, v any) ([]byte, error) {
	m, err := message(v)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

// Unmarshal decodes data into v, a proto.Message.
func (c *Codec) Unmarshal(data []byte, v any) error {
	err := errUnusual
	if f, s := c.fast(v); f != nil {
		if err = s.check(data); err == nil {
			f.Reset()
			err = f.UnmarshalVT(data)
		}
	}
	if err == errUnusual {
		err = unmarshalStandard(data, v)
	}
	if err != nil {
		return fmt.Errorf("protobuf codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func unmarshalStandard(data []byte, v any) error {
	m, err := message(v)
	if err != nil {
		return err
	}
	return proto.UnmarshalOptions{RecursionLimit: maxDepth}.Unmarshal(data, m)
}

// Fits reports whether v is a proto.Message.
func (*Codec) Fits(v any) bool {
	_, ok := v.(proto.Message)
	return ok
}

var (
	errNotMessage = errors.New("it is not a proto.Message: pass a pointer to a generated type, or use another codec")
	errNil        = errors.New("it is nil: pass a message")
)

// message returns v as a message that is there.
func message(v any) (proto.Message, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errNotMessage
	}
	if isNil(v) {
		return nil, errNil
	}
	return m, nil
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// fast returns v with vtproto's methods if it is there and they can be used, else nil.
func (c *Codec) fast(v any) (fast, schema) {
	f, ok := v.(fast)
	if !ok || isNil(v) {
		return nil, schema{}
	}
	s := c.schema(f, reflect.TypeOf(v))
	if !s.fast {
		return nil, schema{}
	}
	return f, *s
}

// recent is a type that was met, and its schema.
type recent struct {
	t reflect.Type
	s *schema
}

// recentTypes is the number of types that are found without the map. Two that share a place take
// turns in it, at the cost of the map.
const recentTypes = 64

// schema returns the schema of the type, which it looks at once.
func (c *Codec) schema(f fast, t reflect.Type) *schema {
	place := &c.recent[uintptr(reflect.ValueOf(t).UnsafePointer())>>5%recentTypes]
	if r := place.Load(); r != nil && r.t == t {
		return r.s
	}
	known, ok := c.schemas.Load(t)
	if !ok {
		known, _ = c.schemas.LoadOrStore(t, newSchema(f.ProtoReflect().Descriptor()))
	}
	s := known.(*schema)
	place.Store(&recent{t, s})
	return s
}
