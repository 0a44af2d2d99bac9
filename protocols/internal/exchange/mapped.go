package exchange

import (
	"reflect"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/tuple"
	"github.com/anser-rpc/anser/contract/protocontract"
	"github.com/anser-rpc/anser/protocols/internal/typejson"

	// The files that the files of such methods import.
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
)

// mappedOf returns the descriptor of a method without protobuf messages, as reflection tells it and
// "anser export" writes it, or nil if it has none.
func mappedOf(t *anser.MethodType) protoreflect.MethodDescriptor {
	s := t.Schema()
	if s == nil {
		return nil
	}
	set, err := protocontract.ToFiles(s)
	if err != nil {
		return nil
	}
	found, err := newFiles(set).FindDescriptorByName(nameOf(t))
	if err != nil {
		return nil
	}
	m, _ := found.(protoreflect.MethodDescriptor)
	return m
}

// mapped is the protobuf of messages that are Go types: a message is translated to JSON by
// its descriptor, and the JSON to the Go type.
type mapped struct {
	codec.Codec // JSON
	method      protoreflect.MethodDescriptor
}

// Append encodes a reply.
func (m mapped) Append(dst []byte, v any) ([]byte, error) {
	text, err := m.Codec.Append(nil, v)
	if err != nil {
		return dst, err
	}
	msg := dynamicpb.NewMessage(m.method.Output())
	if err := typejson.Read(text, msg); err != nil {
		return dst, err
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, msg)
}

// Unmarshal decodes a request.
func (m mapped) Unmarshal(data []byte, v any) error {
	msg := dynamicpb.NewMessage(m.method.Input())
	if err := Protobuf.Unmarshal(data, msg); err != nil {
		return err
	}
	text, err := typejson.Append(nil, msg)
	if err != nil {
		return err
	}
	return m.Codec.Unmarshal(text, v)
}

// mappedJSON is the JSON of messages that are Go types, as the type takes it, or as code for
// protobuf writes it, which has strings for integers of 64 bits.
type mappedJSON struct {
	codec.Codec
	method protoreflect.MethodDescriptor
}

// Unmarshal decodes a request.
func (m mappedJSON) Unmarshal(data []byte, v any) error {
	first := m.Codec.Unmarshal(data, v)
	if first == nil {
		return nil
	}
	msg := dynamicpb.NewMessage(m.method.Input())
	if protojson.Unmarshal(data, msg) != nil {
		return first
	}
	text, err := typejson.Append(nil, msg)
	if err != nil {
		return first
	}
	clearMessage(v)
	if m.Codec.Unmarshal(text, v) != nil {
		return first
	}
	return nil
}

// clearMessage sets a message to zero. Tuples clear themselves.
func clearMessage(v any) {
	switch v.(type) {
	case *anser.Tuple, tuple.Message:
	default:
		reflect.ValueOf(v).Elem().SetZero()
	}
}

// JSONCodec returns the codec of JSON for the messages of the method.
func (m *Method) JSONCodec() codec.Codec {
	if m.Forwarded {
		return forwarded{JSON, m}
	}
	if m.Mapped != nil {
		return mappedJSON{JSON, m.Mapped}
	}
	return JSON
}

// HasProtobuf reports whether the messages of the method can be sent in protobuf.
func (m *Method) HasProtobuf() bool { return m.Protobuf || m.Mapped != nil }
