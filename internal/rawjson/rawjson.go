// Package rawjson is a codec that passes JSON texts through, for programs without the Go types of
// a method's messages.
package rawjson

import (
	"encoding/json"
	"fmt"

	"github.com/anser-rpc/anser/codec"
)

// Codec passes a *json.RawMessage through. On the wire it is the JSON codec.
type Codec struct{}

// ID returns codec.JSONID.
func (Codec) ID() uint8 { return codec.JSONID }

// Name returns "json".
func (Codec) Name() string { return "json" }

// Append appends the text that v, a *json.RawMessage, points to.
func (Codec) Append(dst []byte, v any) ([]byte, error) {
	text, ok := v.(*json.RawMessage)
	if !ok {
		return dst, fmt.Errorf("cannot send %T: want *json.RawMessage", v)
	}
	return append(dst, *text...), nil
}

// Unmarshal copies data to what v, a *json.RawMessage, points to.
func (Codec) Unmarshal(data []byte, v any) error {
	text, ok := v.(*json.RawMessage)
	if !ok {
		return fmt.Errorf("cannot receive %T: want *json.RawMessage", v)
	}
	*text = append((*text)[:0], data...)
	return nil
}
