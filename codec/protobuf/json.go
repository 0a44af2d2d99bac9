package protobuf

import (
	"fmt"

	"github.com/anser-rpc/anser/codec"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// JSON is codec.JSON for plain Go types, and protobuf's own JSON for protobuf messages. Unknown
// members are ignored in both. A program with protobuf messages uses it in place of codec.JSON,
// whose number and name it has.
//
// Fits rejects plain types that contain a protobuf message: encoding/json does not support its
// JSON.
type JSON struct {
	plain codec.JSON
}

// NewJSON returns a JSON.
func NewJSON() *JSON { return new(JSON) }

// ID returns codec.JSONID.
func (*JSON) ID() uint8 { return codec.JSONID }

// Name returns "json".
func (*JSON) Name() string { return "json" }

// Append appends v. For a protobuf message the white space intentionally differs between builds of
// a program: do not compare bytes.
func (c *JSON) Append(dst []byte, v any) ([]byte, error) {
	if _, ok := v.(proto.Message); !ok {
		return c.plain.Append(dst, v)
	}
	m, err := message(v)
	out := dst
	if err == nil {
		out, err = protojson.MarshalOptions{}.MarshalAppend(dst, m)
	}
	if err != nil {
		return dst, fmt.Errorf("json codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

// Unmarshal decodes data, which must pass codec.CheckJSON, into v. A protobuf message is reset
// first.
func (c *JSON) Unmarshal(data []byte, v any) error {
	if _, ok := v.(proto.Message); !ok {
		return c.plain.Unmarshal(data, v)
	}
	m, err := message(v)
	if err == nil {
		err = codec.CheckJSON(data)
	}
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: codec.MaxJSONDepth}.Unmarshal(data, m)
	}
	if err != nil {
		return fmt.Errorf("json codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

// Fits reports whether v is a protobuf message or fits codec.JSON.
func (c *JSON) Fits(v any) bool {
	if _, ok := v.(proto.Message); ok {
		return true
	}
	return c.plain.Fits(v)
}

// Unfit returns why v does not fit, with the path of the unsupported field.
func (c *JSON) Unfit(v any) error {
	if _, ok := v.(proto.Message); ok {
		return nil
	}
	return c.plain.Unfit(v)
}
