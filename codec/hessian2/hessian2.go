// Package hessian2 contains the codec for Hessian 2, the serialization of Dubbo services in Java.
// It uses Apache's dubbo-go-hessian2.
//
// It is a module of its own. A server enables it with anser.Codecs(hessian2.New(new(User), …)), a
// client with the same option or, for a single call, with anser.Codec.
package hessian2

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/internal/shape"
	hessian "github.com/apache/dubbo-go-hessian2"
)

// MaxDepth is the maximum nesting depth of lists, maps and objects.
const MaxDepth = shape.MaxDepth

// A POJO is a struct with the name of its class in Java.
type POJO interface{ JavaClassName() string }

// Codec encodes pointers to structs that are POJOs and were passed to New.
//
// Every payload is scanned before it is decoded, because the library allocates declared lengths,
// recurses as deep as the data and keeps names of fields forever: declared lengths must not exceed
// the data, nothing may follow the value, the nesting depth is at most MaxDepth, text is UTF-8
// with complete surrogate pairs, references point backwards, and classes are those of New. Fields
// that are unknown to the struct are skipped, up to a thousand different names. Encoded messages
// are scanned, too, so that both sides reject the same ones.
//
// The library has one registry of classes per process: a program cannot use two structs with the
// same class name. A Codec is safe for concurrent use. A value must not be modified while it is
// being encoded.
type Codec struct {
	classes map[string]class // by Java's name
	known   map[reflect.Type]bool
	err     error
	types   shape.Types

	mu      sync.Mutex
	strange map[string]bool // unknown field names, guarded by mu
}

// New returns a codec for the classes of the given structs, passed as pointers. Structs inside
// them must be passed, too.
func New(classes ...POJO) *Codec {
	c := &Codec{
		classes: make(map[string]class), known: make(map[reflect.Type]bool), strange: make(map[string]bool),
		types: shape.Types{Format: "Hessian 2", Tag: "hessian"},
	}
	for _, p := range classes {
		c.err = errors.Join(c.err, c.register(p))
	}
	return c
}

func (c *Codec) register(p POJO) (err error) {
	t := reflect.TypeOf(p)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("hessian2.New: %T is no pointer to a struct", p)
	}
	if err := c.types.Plan(t).Err; err != nil {
		return fmt.Errorf("hessian2.New: %w", err)
	}
	// The library panics on structs that it does not support.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("hessian2.New: %T cannot be registered: %v", p, r)
		}
	}()
	p = reflect.New(t.Elem()).Interface().(POJO)
	hessian.RegisterPOJO(p)
	c.classes[p.JavaClassName()] = newClass(t.Elem())
	c.known[t] = true
	return nil
}

// class is a struct with the usual names of its fields on the wire.
type class struct {
	reflect.Type
	names map[string]bool
}

func newClass(t reflect.Type) class {
	names := make(map[string]bool)
	for f := range t.Fields() {
		first, size := utf8.DecodeRuneInString(f.Name)
		names[f.Name], names[string(unicode.ToLower(first))+f.Name[size:]], names[f.Tag.Get("hessian")] = true, true, true
	}
	return class{t, names}
}

// has reports whether the library finds a field in its first lookup, after which it keeps at most
// the name of an existing field.
func (c class) has(name []byte) bool {
	if c.names[string(name)] {
		return true
	}
	for f := range c.Fields() {
		if strings.EqualFold(f.Name, string(name)) {
			return true
		}
	}
	return false
}

// ID returns codec.Hessian2ID.
func (*Codec) ID() uint8 { return codec.Hessian2ID }

// Name returns "hessian2".
func (*Codec) Name() string { return "hessian2" }

var (
	errNil  = errors.New("it is nil: pass a pointer to a struct")
	errType = errors.New("its class is not known: give it a method JavaClassName and pass it to hessian2.New")
)

func (c *Codec) check(v any) error {
	switch {
	case c.err != nil:
		return c.err
	case shape.IsNil(v):
		return errNil
	case !c.known[reflect.TypeOf(v)]:
		return errType
	}
	return nil
}

// Append appends v.
func (c *Codec) Append(dst []byte, v any) ([]byte, error) {
	out, err := c.append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("hessian2 codec: cannot encode %T: %w", v, err)
	}
	return out, nil
}

func (c *Codec) append(dst []byte, v any) (out []byte, err error) {
	if err := c.check(v); err != nil {
		return nil, err
	}
	if c.types.Plan(reflect.TypeOf(v)).Deep {
		if err := c.types.CheckDepth(v); err != nil {
			return nil, err
		}
	}
	defer guard(&err)
	e := hessian.NewEncoder()
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	b := e.Buffer()
	return append(dst, b...), c.scan(b)
}

// Unmarshal decodes data into v, all of whose fields are replaced.
func (c *Codec) Unmarshal(data []byte, v any) error {
	if err := c.unmarshal(data, v); err != nil {
		return fmt.Errorf("hessian2 codec: cannot decode into %T: %w", v, err)
	}
	return nil
}

func (c *Codec) unmarshal(data []byte, v any) (err error) {
	if err := c.check(v); err != nil {
		return err
	}
	if err := c.scan(data); err != nil {
		return err
	}
	// The library panics if a value does not fit a field.
	defer guard(&err)
	decoded, err := hessian.NewStrictDecoder(data).Decode()
	if err != nil {
		return err
	}
	got := reflect.ValueOf(decoded)
	if got.Type() != reflect.TypeOf(v) || got.IsNil() {
		return fmt.Errorf("the data is a %T", decoded)
	}
	reflect.ValueOf(v).Elem().Set(got.Elem())
	return nil
}

func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the data does not fit: %v", p)
	}
}

// Fits reports whether v is of a type that was passed to New.
func (c *Codec) Fits(v any) bool { return c.err == nil && c.known[reflect.TypeOf(v)] }

// maxStrange is the maximum number of unknown field names: the library keeps each of them.
const maxStrange = 1000

var errStrange = fmt.Errorf("more than %d names of fields are unknown here", maxStrange)

// noteField admits a field that a class does not have.
func (c *Codec) noteField(of class, name []byte) error {
	key := of.String() + "." + string(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.strange[key] {
		if len(c.strange) >= maxStrange {
			return errStrange
		}
		c.strange[key] = true
	}
	return nil
}
