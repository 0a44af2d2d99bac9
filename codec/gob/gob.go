// Package gob contains the codec for encoding/gob, for services that migrate from net/rpc and have
// types that only gob can encode.
//
// A client uses it if an option names it (anser.Codec(gob.New()) for a call or a client), and a
// server after anser.Codecs(gob.New()). It is never chosen by type and never accepted by default:
// gob names Go types on the wire and calls the methods of every type that the program has
// registered, so that all of them become reachable for a peer, and it is the slowest of all codecs
// for single messages, because each includes the definitions of its types.
package gob

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/internal/shape"
	"github.com/anser-rpc/anser/internal/gobwire"
)

// Codec encodes every message as a gob stream of its own: the definitions of its types and one
// value.
//
// A payload is checked before gob's decoder reads it: declared lengths must not exceed the data,
// values must match the types that the stream defines, and nothing may follow the value. Values in
// interfaces must be registered with encoding/gob on both sides.
//
// It has no method Fits, so it is never chosen by type. It is safe for concurrent use. A value
// must not be modified while it is being encoded.
type Codec struct{ types shape.Types }

// New returns a Codec.
func New() *Codec {
	return &Codec{shape.Types{Format: "gob", Whole: whole}}
}

// whole reports whether the type encodes itself. Gob handles all other types.
func whole(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[gob.GobEncoder]()) || t.Kind() == reflect.Interface || t.Kind() == reflect.Chan || t.Kind() == reflect.Func
}

// ID returns codec.GobID.
func (*Codec) ID() uint8 { return codec.GobID }

// Name returns "gob".
func (*Codec) Name() string { return "gob" }

var (
	errNil      = errors.New("it is nil or no pointer: pass a pointer to a value")
	errTrailing = errors.New("bytes follow the gob value")
)

// Append appends v.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := c.append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("gob codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

func (c *Codec) append(dst []byte, v any) ([]byte, error) {
	if shape.IsNil(v) || !shape.IsPointer(v) {
		return nil, errNil
	}
	p := c.types.Plan(reflect.TypeOf(v))
	if p.Err != nil {
		return nil, p.Err
	}
	// Gob would recurse into a value that contains itself until the stack overflows.
	if err := c.types.CheckDepth(v); err != nil {
		return nil, err
	}
	w := appender{dst}
	err := gobwire.Guard(func() error { return gob.NewEncoder(&w).Encode(v) })
	return w.b, err
}

type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

// Unmarshal decodes data into v. As in gob, fields that are missing in data stay unchanged, and
// zero fields are not encoded: decode into a new value.
func (c *Codec) Unmarshal(data []byte, v any) error {
	if err := c.unmarshal(data, v); err != nil {
		return fmt.Errorf("gob codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func (c *Codec) unmarshal(data []byte, v any) error {
	if shape.IsNil(v) || !shape.IsPointer(v) {
		return errNil
	}
	if p := c.types.Plan(reflect.TypeOf(v)); p.Err != nil {
		return p.Err
	}
	src := bytes.NewReader(data)
	checked := gobwire.NewReader(bufio.NewReaderSize(src, minBuffer))
	if err := checked.Next(math.MaxInt32); err != nil {
		return err
	}
	if checked.Buffered() > 0 || src.Len() > 0 {
		return errTrailing
	}
	if err := checked.Admit(v); err != nil {
		return err
	}
	return gobwire.Guard(func() error { return gob.NewDecoder(checked).Decode(v) })
}

// minBuffer is the minimum size of a bufio.Reader; its source is in memory.
const minBuffer = 16
