// Package gojson contains a JSON codec that is faster than the standard one. It uses
// goccy/go-json. It has the number and the name of codec.JSON, and the peer cannot tell the
// difference: both codecs read each other's messages.
//
// It is a module of its own, and used only if it is set: anser.Codecs(gojson.New()) replaces the
// standard JSON codec of a server.
package gojson

import (
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/internal/shape"
	"github.com/goccy/go-json"
)

// Codec encodes and decodes like codec.JSON, with the same checks first: codec.CheckJSON, and that
// JSON supports the type in both directions.
//
// On a server it also replaces the JSON codec of codec/protobuf, including its support of protobuf
// messages, which this codec rejects. It is safe for concurrent use. A value must not be modified
// while it is being encoded.
type Codec struct {
	standard codec.JSON // decides which types fit
	types    shape.Types
}

// New returns a Codec.
func New() *Codec {
	return &Codec{types: shape.Types{Format: "JSON", Tag: "json"}}
}

// ID returns codec.JSONID.
func (*Codec) ID() uint8 { return codec.JSONID }

// Name returns "json".
func (*Codec) Name() string { return "json" }

// Append appends v as JSON, without a newline and without escapes for HTML.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := c.append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("json codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

func (c *Codec) append(dst []byte, v any) (out []byte, err error) {
	if err := c.check(v); err != nil {
		return nil, err
	}
	// The library does not always detect that a value contains itself.
	if p := c.types.Plan(reflect.TypeOf(v)); p.Err != nil || p.Deep {
		if err := c.types.CheckDepth(v); err != nil {
			return nil, err
		}
	}
	defer guard(&err)
	b, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	return append(dst, b...), err
}

// Unmarshal decodes data, which must be one JSON value that codec.CheckJSON accepts.
func (c *Codec) Unmarshal(data []byte, v any) error {
	if err := c.unmarshal(data, v); err != nil {
		return fmt.Errorf("json codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func (c *Codec) unmarshal(data []byte, v any) (err error) {
	if err := c.check(v); err != nil {
		return err
	}
	if err := codec.CheckJSON(data); err != nil {
		return err
	}
	defer guard(&err)
	return json.Unmarshal(data, v)
}

// check rejects the values that the standard codec rejects.
func (c *Codec) check(v any) error {
	switch {
	case shape.IsNil(v) || !shape.IsPointer(v):
		return fmt.Errorf("it is nil or no pointer: pass a pointer to a value")
	case !c.standard.Fits(v):
		return fmt.Errorf("there is no JSON for a part of it, or it is a protobuf message: use another codec")
	}
	return nil
}

func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the data does not fit: %v", p)
	}
}

// Fits reports whether the standard codec supports v's type.
func (c *Codec) Fits(v any) bool { return c.standard.Fits(v) }
