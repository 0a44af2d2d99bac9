package exchange

import (
	"bytes"
	"encoding/json"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/codec/tuple"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/jsonschema"
)

// Single returns the value of a reply that is a tuple with one value, and every other reply as it
// is: a protocol whose results are single values sends it so.
func (m *Method) Single(reply any) any {
	e, ok := reply.(*codec.Encoded)
	if !ok {
		return tuple.Single(reply)
	}
	if !m.single {
		return reply
	}
	switch e.Codec {
	case codec.JSONID:
		if value, ok := singleJSON(e.Data); ok {
			return &codec.Encoded{Codec: e.Codec, Data: value}
		}
	case codec.MsgpackID:
		if msgpack.Check(e.Data) != nil {
			break
		}
		if values, _, _, err := msgpack.Elements(e.Data, 1); err == nil && len(values) > 0 {
			return &codec.Encoded{Codec: e.Codec, Data: values[len(values)-1]} // behind its name, in a map
		}
	}
	return reply
}

// singleJSON returns the value in an array or an object with one.
func singleJSON(text []byte) (json.RawMessage, bool) {
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(text, &list) != nil || len(list) != 1 {
			return nil, false
		}
		return list[0], true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || len(members) != 1 {
		return nil, false
	}
	for _, value := range members {
		return value, true
	}
	return nil, false
}

// hasSingle reports whether the reply of a method that is forwarded is a tuple with one value.
func hasSingle(s *contract.Schema, of *contract.Method) bool {
	m := s.Message(of.Reply)
	return m != nil && m.Form == contract.InOrder && len(m.Fields) == 1 && jsonschema.IsTuple(m)
}
