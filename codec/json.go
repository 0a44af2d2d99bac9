package codec

import (
	"encoding/json"
	"fmt"
	"sync"
)

// JSON is encoding/json with the limits that a server needs; see CheckJSON for what it refuses
// before it decodes. Members that the Go type does not have are ignored, so that types can grow.
//
// It refuses protobuf messages, whose JSON differs: codec/protobuf has a JSON codec for both.
// The zero value is ready. A JSON must not be copied after first use.
type JSON struct {
	encoders sync.Pool // of *jsonEncoder
}

// jsonEncoder is a json.Encoder that appends to dst. Made anew it would cost an allocation a call.
type jsonEncoder struct {
	dst []byte
	enc *json.Encoder
}

func (e *jsonEncoder) Write(p []byte) (int, error) {
	e.dst = append(e.dst, p...)
	return len(p), nil
}

// protoMessage is the mark of types that protoc-gen-go generates.
type protoMessage interface{ ProtoMessage() }

// ID returns JSONID.
func (*JSON) ID() uint8 { return JSONID }

// Name returns "json".
func (*JSON) Name() string { return "json" }

// Append appends v as JSON, without a newline and without escapes for HTML.
func (c *JSON) Append(dst []byte, v any) ([]byte, error) {
	if isNil(v) {
		return dst, fmt.Errorf("json codec: cannot encode %s: pass a value", typeName(v))
	}
	if _, ok := v.(protoMessage); ok {
		return dst, errProtoJSON(v)
	}
	e, ok := c.encoders.Get().(*jsonEncoder)
	if !ok {
		e = new(jsonEncoder)
		e.enc = json.NewEncoder(e)
		e.enc.SetEscapeHTML(false)
	}
	e.dst = dst
	// Encode writes once, at its end, so a failure leaves dst alone. A panic in the application's
	// MarshalJSON leaves the encoder to the garbage collector.
	err := e.enc.Encode(v)
	out := e.dst
	e.dst = nil
	c.encoders.Put(e)
	if err != nil {
		return dst, fmt.Errorf("json codec: cannot encode %T: %w", v, err)
	}
	return out[:len(out)-1], nil
}

// Unmarshal decodes data, which must be one JSON value that CheckJSON accepts. Like encoding/json
// it sets what data has and leaves the rest of v as it was.
func (*JSON) Unmarshal(data []byte, v any) (err error) {
	if _, ok := v.(protoMessage); ok {
		return errProtoJSON(v)
	}
	if err := CheckJSON(data); err != nil {
		return fmt.Errorf("json codec: cannot decode into %T: %w", v, err)
	}
	defer recovered("json", v, &err)
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("json codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

// Fits reports whether encoding/json can encode and decode v's type. It walks the type: ask once
// for a method, not once for a call.
func (*JSON) Fits(v any) bool { return fitsJSON(v) }

func errProtoJSON(v any) error {
	return fmt.Errorf("json codec: %T is a protobuf message: use the JSON codec of codec/protobuf", v)
}
