// Package bson contains the codec for BSON documents. It uses the bson package of MongoDB's
// driver.
//
// It is a module of its own. A server enables it with anser.Codecs(bson.New()), a client with the
// same option or, for a single call, with anser.Codec.
package bson

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/internal/shape"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// MaxDepth is the maximum nesting depth of documents and arrays.
const MaxDepth = shape.MaxDepth

// Codec encodes structs, maps with string keys and the documents of the driver (bson.D, bson.M,
// bson.Raw). Nothing else is a document: a number or a slice alone does not fit. Names are taken
// from the bson tags, or the fields in lower case. A time.Time is truncated to milliseconds and is
// decoded in UTC.
//
// Every payload is scanned before it is decoded: declared lengths must not exceed the data,
// nothing may follow the document, names and strings must be UTF-8, and the nesting depth is at
// most MaxDepth. Encoded messages are scanned, too, so that both sides reject the same ones.
//
// It is safe for concurrent use. A value must not be modified while it is being encoded.
type Codec struct{ types shape.Types }

// New returns a Codec.
func New() *Codec { return &Codec{shape.Types{Format: "BSON", Tag: "bson", Whole: whole}} }

// whole reports whether BSON has an encoding of its own for the type.
func whole(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t.PkgPath() == reflect.TypeFor[bson.ObjectID]().PkgPath() ||
		t.Implements(reflect.TypeFor[bson.ValueMarshaler]()) && reflect.PointerTo(t).Implements(reflect.TypeFor[bson.ValueUnmarshaler]()) ||
		t.Implements(reflect.TypeFor[bson.Marshaler]()) && reflect.PointerTo(t).Implements(reflect.TypeFor[bson.Unmarshaler]())
}

// ID returns codec.BSONID.
func (*Codec) ID() uint8 { return codec.BSONID }

// Name returns "bson".
func (*Codec) Name() string { return "bson" }

var (
	errNil      = errors.New("it is nil or no pointer: pass a pointer to a struct or map")
	errDocument = errors.New("it is not a document: pass a pointer to a struct or to a map with string keys, or use another codec")
)

// Append appends v.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := c.append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("bson codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

func (c *Codec) append(dst []byte, v any) ([]byte, error) {
	deep, err := c.check(v)
	if err != nil {
		return nil, err
	}
	if deep {
		if err := c.types.CheckDepth(v); err != nil {
			return nil, err
		}
	}
	b, err := bson.Marshal(v)
	if err == nil {
		err = scan(b)
	}
	return append(dst, b...), err
}

// check returns whether values of v's type can be nested to any depth, or why v is not a message.
func (c *Codec) check(v any) (deep bool, err error) {
	if shape.IsNil(v) || !shape.IsPointer(v) {
		return false, errNil
	}
	t := reflect.TypeOf(v)
	if p := c.types.Plan(t); p.Err != nil || !document(t.Elem()) {
		return false, errors.Join(p.Err, isDocument(t.Elem()))
	} else if shape := t.Elem().Kind(); p.Deep || shape != reflect.Struct {
		return true, nil
	}
	return false, nil
}

func isDocument(t reflect.Type) error {
	if document(t) {
		return nil
	}
	return errDocument
}

func document(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[bson.D](), reflect.TypeFor[bson.Raw](), reflect.TypeFor[bson.M]():
		return true
	case reflect.TypeFor[time.Time]():
		return false
	}
	if t.PkgPath() == reflect.TypeFor[bson.D]().PkgPath() {
		return false
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[bson.ValueMarshaler]()) {
		return false
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
}

// Unmarshal decodes data into v. Fields that are missing in data stay unchanged.
func (c *Codec) Unmarshal(data []byte, v any) error {
	if err := c.unmarshal(data, v); err != nil {
		return fmt.Errorf("bson codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func (c *Codec) unmarshal(data []byte, v any) (err error) {
	if _, err := c.check(v); err != nil {
		return err
	}
	if err := scan(data); err != nil {
		return err
	}
	// The decoder is third-party code, and so are the methods of types that decode themselves.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the data does not fit: %v", p)
		}
	}()
	return bson.Unmarshal(data, v)
}

// Fits reports whether v's type is a document and BSON can encode all of its parts.
func (c *Codec) Fits(v any) bool {
	if !shape.IsPointer(v) {
		return false
	}
	t := reflect.TypeOf(v)
	return document(t.Elem()) && c.types.Plan(t).Err == nil
}
