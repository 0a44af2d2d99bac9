package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
)

// JSON is encoding/json with the limits that a server needs; see CheckJSON for the data it rejects
// before decoding. Members without a field in the Go type are ignored, so that types can grow.
//
// It rejects types that JSON does not support in both directions, and protobuf messages, whose
// JSON differs: codec/protobuf has a JSON codec for both. The zero value is ready. A JSON must not
// be copied after first use.
type JSON struct {
	encoders sync.Pool // of *jsonEncoder
	types    sync.Map  // of jsonVerdict by reflect.Type
}

// jsonVerdict is a result of jsonTypes.check.
type jsonVerdict struct{ err error }

// jsonEncoder is a json.Encoder that appends to dst. A new one per call would cost an allocation.
type jsonEncoder struct {
	dst []byte
	enc *json.Encoder
}

func (e *jsonEncoder) Write(p []byte) (int, error) {
	e.dst = append(e.dst, p...)
	return len(p), nil
}

// ID returns JSONID.
func (*JSON) ID() uint8 { return JSONID }

// Name returns "json".
func (*JSON) Name() string { return "json" }

// Append appends v as JSON, without a newline and without escapes for HTML.
func (c *JSON) Append(dst []byte, v any) ([]byte, error) {
	if isNil(v) {
		return dst, fmt.Errorf("json codec: cannot encode %s: pass a value", typeName(v))
	}
	if err := c.check(v); err != nil {
		return dst, fmt.Errorf("json codec: cannot encode %T: %w", v, err)
	}
	e, ok := c.encoders.Get().(*jsonEncoder)
	if !ok {
		e = new(jsonEncoder)
		e.enc = json.NewEncoder(e)
		e.enc.SetEscapeHTML(false)
	}
	e.dst = dst
	// Encode writes once, at its end, so a failure leaves dst unchanged. After a panic in the
	// application's MarshalJSON the encoder is garbage collected.
	err := e.enc.Encode(v)
	out := e.dst
	e.dst = nil
	c.encoders.Put(e)
	if err != nil {
		return dst, fmt.Errorf("json codec: cannot encode %T: %w", v, err)
	}
	return out[:len(out)-1], nil
}

// Unmarshal decodes data, which must be one JSON value that CheckJSON accepts. As in
// encoding/json, parts of v that are missing in data stay unchanged.
func (c *JSON) Unmarshal(data []byte, v any) (err error) {
	if isNil(v) {
		return fmt.Errorf("json codec: cannot decode into %s: pass a pointer to a value", typeName(v))
	}
	if err = c.check(v); err == nil {
		err = CheckJSON(data)
	}
	if err == nil {
		defer recovered("json", v, &err)
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("json codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

// Fits reports whether encoding/json can encode and decode v's type.
func (c *JSON) Fits(v any) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Pointer && c.check(v) == nil
}

// Unfit returns why v does not fit, with the path of the unsupported field.
func (c *JSON) Unfit(v any) error {
	if t := reflect.TypeOf(v); t == nil || t.Kind() != reflect.Pointer {
		return fmt.Errorf("%v is no pointer to a message", t)
	}
	return c.check(v)
}

// check returns why v's type, which must not be nil, has no JSON. The result is cached per type.
func (c *JSON) check(v any) error {
	t := reflect.TypeOf(v)
	known, ok := c.types.Load(t)
	if !ok {
		known, _ = c.types.LoadOrStore(t, jsonVerdict{jsonTypes{}.check(t)})
	}
	return known.(jsonVerdict).err
}
