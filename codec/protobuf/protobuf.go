// Package protobuf contains the codecs for protobuf messages: the binary one, and a JSON codec for
// protobuf messages and plain Go types.
package protobuf

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/protobuf/pbrt"
	"google.golang.org/protobuf/proto"
)

// maxDepth is the maximum nesting depth of messages, the same as in most other implementations.
// Go's own limit is 10,000, and vtproto has none.
const maxDepth = 100

// Codec encodes types that implement proto.Message.
//
// Types with the code that "anser gen" generates are encoded and decoded by it; see Separate
// for what it allocates. Others with the methods of protoc-gen-go-vtproto (features marshal,
// unmarshal and size) are encoded and decoded by these, if their schema permits: see New. The rest
// goes through the standard library. In all cases a message is reset before decoding, required
// fields must be present, text must be UTF-8 if the schema says so, and unknown fields are kept.
//
// It is safe for concurrent use. A message must not be modified while it is being encoded.
type Codec struct {
	mode pbrt.Mode // of decoding with generated code

	schemas sync.Map // of *recent by type
	recent  [recentTypes]atomic.Pointer[recent]
}

// fast is the set of methods that protoc-gen-go-vtproto adds to a message.
type fast interface {
	proto.Message
	Reset()
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// New returns a Codec.
//
// vtproto's code is used for a type unless the type, or a message inside it, has groups (whose
// fields vtproto drops) or extension ranges (vtproto does not encode extensions). The codec checks
// what vtproto does not, on the bytes before decoding and after encoding: UTF-8, the depth of
// recursive types, and the entries of maps, of which vtproto misreads some unusual ones. The
// schema is analysed once per type. One difference remains: inside the well-known types
// (google.protobuf.Timestamp and others) vtproto drops unknown fields.
func New(opts ...Option) *Codec {
	c := new(Codec)
	for _, o := range opts {
		o(c)
	}
	return c
}

// Option configures a Codec.
type Option func(*Codec)

// Separate makes the code that "anser gen" generates allocate each string, byte slice, optional
// scalar and message by itself, like the standard library. Without it, all text of a message and of
// the messages inside it is allocated together, and so are the optional scalars of a message and
// the elements of a list: that takes a fraction of the time, but one string in use keeps the text
// of the whole message in memory. The option is for programs that keep small parts of large
// messages; [strings.Clone] and proto.Clone are alternatives.
func Separate() Option { return func(c *Codec) { c.mode = pbrt.Separate } }

// ID returns codec.ProtobufID.
func (*Codec) ID() uint8 { return codec.ProtobufID }

// Name returns "protobuf".
func (*Codec) Name() string { return "protobuf" }

// Append appends v, a proto.Message.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	var out []byte
	var err error
	if m := generated(v); m != nil {
		out, err = pbrt.Append(dst, m, maxDepth)
	} else if f, s := c.fast(v); f != nil {
		out, err = appendFast(dst, f, s)
	} else {
		out, err = appendStandard(dst, v)
	}
	if err != nil {
		return dst, fmt.Errorf("protobuf codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

// AppendCanonical appends v, a proto.Message, with the entries of maps in the order of their keys.
func (c *Codec) AppendCanonical(dst []byte, v any) ([]byte, error) {
	m, err := message(v)
	if err == nil {
		var out []byte
		if out, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(dst, m); err == nil {
			return out, nil
		}
	}
	return dst, fmt.Errorf("protobuf codec: cannot encode %T: %w", v, err)
}

// appendFast grows dst at most once and lets vtproto, which writes from the end, fill the new
// part.
func appendFast(dst []byte, m fast, s *schema) ([]byte, error) {
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
	if m := generated(v); m != nil {
		proto.Reset(m)
	} else if f, _ := c.fast(v); f != nil {
		f.Reset()
	}
	return c.UnmarshalFresh(data, v)
}

// UnmarshalFresh decodes data into v, a zero proto.Message.
func (c *Codec) UnmarshalFresh(data []byte, v any) error {
	if m := generated(v); m != nil {
		if err := pbrt.Unmarshal(data, m, maxDepth, c.mode); err != nil {
			return undecodable(v, err)
		}
		return nil
	}
	err := errUnusual
	if f, s := c.fast(v); f != nil {
		if err = s.check(data); err == nil {
			err = f.UnmarshalVT(data)
		}
	}
	if err == errUnusual {
		err = unmarshalStandard(data, v)
	}
	if err != nil {
		return undecodable(v, err)
	}
	return nil
}

// generated returns v if it is not nil and has code of "anser gen".
func generated(v any) pbrt.Message {
	m, ok := v.(pbrt.Message)
	if !ok || wordsOf(v).data == nil {
		return nil
	}
	return m
}

func undecodable(v any, err error) error {
	return fmt.Errorf("protobuf codec: cannot decode into %T: %w", v, err)
}

func unmarshalStandard(data []byte, v any) error {
	m, err := message(v)
	if err != nil {
		return err
	}
	if m.ProtoReflect().ProtoMethods() == nil {
		return unmarshalDynamic(data, m)
	}
	return proto.UnmarshalOptions{RecursionLimit: maxDepth}.Unmarshal(data, m)
}

// unmarshalDynamic decodes a message of package dynamicpb. The standard library panics on an entry
// of a map with two keys or values of which the second one has the wrong wire type.
func unmarshalDynamic(data []byte, m proto.Message) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("an entry of a map is malformed")
		}
	}()
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

// message returns v as a non-nil message.
func message(v any) (proto.Message, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errNotMessage
	}
	if wordsOf(v).data == nil {
		return nil, errNil
	}
	return m, nil
}

// fast returns v with vtproto's methods if it is not nil and they can be used, otherwise nil.
func (c *Codec) fast(v any) (fast, *schema) {
	w := wordsOf(v)
	if w.data == nil {
		return nil, nil
	}
	place := &c.recent[uintptr(w.typ)>>5%recentTypes]
	r := place.Load()
	if r == nil || r.typ != w.typ {
		r = c.look(v)
		place.Store(r)
	}
	if !r.s.fast {
		return nil, nil
	}
	return v.(fast), r.s
}

// recent is a type with its schema.
type recent struct {
	typ unsafe.Pointer
	s   *schema
}

// recentTypes is the number of types that are found without the map. Two types that share a slot
// replace each other, at the cost of a map lookup.
const recentTypes = 64

// look returns the type of v with its schema, which is analysed once.
func (c *Codec) look(v any) *recent {
	w := wordsOf(v)
	known, ok := c.schemas.Load(w.typ)
	if !ok {
		r := &recent{w.typ, new(schema)}
		if f, ok := v.(fast); ok {
			r.s = newSchema(f.ProtoReflect().Descriptor())
		}
		known, _ = c.schemas.LoadOrStore(w.typ, r)
	}
	return known.(*recent)
}

// words are the two words of an interface value: the type, and the pointer or a pointer to the
// value. They distinguish types and nil pointers in a nanosecond; package reflect takes fifteen.
type words struct{ typ, data unsafe.Pointer }

func wordsOf(v any) words { return *(*words)(unsafe.Pointer(&v)) }
