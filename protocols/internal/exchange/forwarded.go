package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/protocols/internal/typejson"
)

var encodedType = reflect.TypeFor[codec.Encoded]()

// form returns the encoding in which the handler of a method with encoded messages takes them:
// protobuf if its contract has descriptors, otherwise JSON.
func (m *Method) form() uint8 {
	if m.Protobuf {
		return codec.ProtobufID
	}
	return codec.JSONID
}

// Input returns the descriptor of the requests of a method with protobuf messages, and Output that
// of its replies, or nil.
func (m *Method) Input() protoreflect.MessageDescriptor { return m.message(m.Request, true) }

// Output is described with Input.
func (m *Method) Output() protoreflect.MessageDescriptor { return m.message(m.Reply, false) }

func (m *Method) message(t reflect.Type, input bool) protoreflect.MessageDescriptor {
	if m.Forwarded {
		of := m.Descriptor
		if !m.Protobuf {
			of = m.Mapped
		}
		switch {
		case of == nil:
			return nil
		case input:
			return of.Input()
		}
		return of.Output()
	}
	v, ok := reflect.New(t).Interface().(proto.Message)
	if !ok {
		return nil
	}
	return v.ProtoReflect().Descriptor()
}

// NewMessage returns an empty request in protobuf for v, the new request of a call: v itself, or
// for an encoded one a message that Pack encodes. It returns nil if v is neither.
func (m *Method) NewMessage(v any) proto.Message {
	if m.Forwarded && m.Protobuf {
		return dynamicpb.NewMessage(m.Input())
	}
	msg, _ := v.(proto.Message)
	return msg
}

// Pack puts a message of NewMessage into the new request of the call.
func (m *Method) Pack(msg proto.Message, v any) error {
	e, ok := v.(*codec.Encoded)
	if !ok {
		return nil
	}
	data, err := proto.Marshal(msg)
	e.Codec, e.Data = codec.ProtobufID, data
	return err
}

// Unpacked returns a reply as a protobuf message, or nil if it is none.
func (m *Method) Unpacked(v any) (proto.Message, error) {
	if e, ok := v.(*codec.Encoded); ok && m.Protobuf {
		msg := dynamicpb.NewMessage(m.Output())
		if e.Codec != codec.ProtobufID {
			return nil, errForm
		}
		return msg, Protobuf.Unmarshal(e.Data, msg)
	}
	msg, _ := v.(proto.Message)
	return msg, nil
}

var errForm = errors.New("the message has another encoding than its method")

// forwarded is JSON, protobuf or MessagePack of messages that stay encoded. The client's encoding
// is translated to that of the method if they differ; MessagePack is not.
type forwarded struct {
	codec.Codec
	method *Method
}

// Unmarshal takes a request.
func (p forwarded) Unmarshal(data []byte, v any) error {
	e, ok := v.(*codec.Encoded)
	if !ok {
		return fmt.Errorf("cannot decode into a %T: want a *codec.Encoded", v)
	}
	if p.ID() == codec.MsgpackID {
		if err := p.checkPack(data); err != nil {
			return err
		}
		e.Codec, e.Data = codec.MsgpackID, bytes.Clone(data)
		return nil
	}
	e.Codec = p.method.form()
	switch {
	case p.ID() == codec.JSONID && e.Codec == codec.JSONID:
		err := checkJSON(data)
		if _, is := p.Codec.(strictJSON); is && err == nil {
			err = p.method.request.checkMembers(data)
		}
		if err != nil {
			return err
		}
		e.Data = p.numbers(data)
		return nil
	case p.ID() == e.Codec:
		e.Data = bytes.Clone(data)
		return nil
	}
	in := p.method.Input()
	if in == nil {
		return errNoDescriptor
	}
	msg := dynamicpb.NewMessage(in)
	err := p.Codec.Unmarshal(data, msg)
	if err != nil {
		return err
	}
	if e.Codec == codec.ProtobufID {
		e.Data, err = proto.Marshal(msg)
	} else {
		e.Data, err = typejson.Append(nil, msg)
	}
	return err
}

// checkJSON returns an error unless data is a JSON text.
func checkJSON(data []byte) error {
	if err := codec.CheckJSON(data); err != nil {
		return err
	}
	if json.Valid(data) {
		return nil
	}
	var text json.RawMessage
	return json.Unmarshal(data, &text) // says where
}

// checkPack returns an error unless data is a MessagePack value that can go on.
func (p forwarded) checkPack(data []byte) error {
	if !p.method.Packs {
		return errForm
	}
	return msgpack.Check(data)
}

var errNoDescriptor = errors.New("the message has no form in protobuf")

// numbers returns a copy of a JSON text with numbers for the strings in which code for protobuf
// writes integers of 64 bits, if there are any.
func (p forwarded) numbers(text []byte) []byte {
	if p.method.Mapped == nil || !hasDigits(text) || !hasLong(p.method.Mapped.Input(), nil) {
		return bytes.Clone(text)
	}
	msg := dynamicpb.NewMessage(p.method.Mapped.Input())
	if typejson.Read(text, msg) == nil {
		if out, err := typejson.Append(nil, msg); err == nil {
			return out
		}
	}
	return bytes.Clone(text)
}

// hasDigits reports whether a JSON text has a string that begins like a number.
func hasDigits(text []byte) bool {
	for i, c := range text[:max(len(text)-1, 0)] {
		if next := text[i+1]; c == '"' && (next == '-' || next >= '0' && next <= '9') {
			return true
		}
	}
	return false
}

// hasLong reports whether a message has an integer of 64 bits.
func hasLong(d protoreflect.MessageDescriptor, seen []protoreflect.FullName) bool {
	for _, name := range seen {
		if name == d.FullName() {
			return false
		}
	}
	seen = append(seen, d.FullName())
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		switch f.Kind() {
		case protoreflect.Int64Kind, protoreflect.Uint64Kind:
			return true
		case protoreflect.MessageKind:
			if hasLong(f.Message(), seen) {
				return true
			}
		}
	}
	return false
}

// Append encodes a reply.
func (p forwarded) Append(dst []byte, v any) ([]byte, error) {
	e, ok := v.(*codec.Encoded)
	if !ok || e == nil {
		return dst, fmt.Errorf("cannot encode a %T: want a *codec.Encoded", v)
	}
	switch {
	case p.ID() == codec.MsgpackID && e.Codec == codec.MsgpackID:
		if err := p.checkPack(e.Data); err != nil {
			return dst, err
		}
		return append(dst, e.Data...), nil
	case p.ID() == codec.MsgpackID, e.Codec != p.method.form():
		return dst, errForm
	case p.ID() == codec.JSONID && e.Codec == codec.JSONID:
		if err := checkJSON(e.Data); err != nil {
			return dst, err
		}
		return append(dst, e.Data...), nil
	case p.ID() == e.Codec:
		return append(dst, e.Data...), nil
	}
	out := p.method.Output()
	if out == nil {
		return dst, errNoDescriptor
	}
	msg := dynamicpb.NewMessage(out)
	if e.Codec == codec.ProtobufID {
		if err := Protobuf.Unmarshal(e.Data, msg); err != nil {
			return dst, err
		}
	} else if err := typejson.Read(e.Data, msg); err != nil {
		return dst, err
	}
	return p.Codec.Append(dst, msg)
}

// codecOf returns the codec for the messages of the method: for encoded ones it is one that keeps
// them so.
func (m *Method) codecOf(c codec.Codec) codec.Codec {
	if _, is := c.(forwarded); m.Forwarded && !is {
		return forwarded{c, m}
	}
	return c
}

// TakesList reports whether a request in JSON can be an array.
func (m *Method) TakesList() bool {
	if m.Contract == nil {
		return true
	}
	s := m.Schema()
	if s == nil || len(s.Services) != 1 || len(s.Services[0].Methods) != 1 {
		return true
	}
	msg := s.Message(s.Services[0].Methods[0].Request)
	return msg == nil || msg.Form != contract.ByName && msg.Form != contract.ByNumber
}

// nameOf returns the name of the method in the descriptors of its contract.
func nameOf(t *anser.MethodType) protoreflect.FullName {
	if t.ContractName != "" {
		return protoreflect.FullName(t.ContractName)
	}
	return protoreflect.FullName(t.Name)
}
