package gobwire

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"go/token"
	"math"
	"reflect"
)

// Next checks values by their types on the wire. Gob's decoder also uses these, with two
// exceptions, in which it loses its position, continues at a position chosen by an attacker, and
// finds a map of 2^60 elements there:
//
//   - It compiles the fields of a struct together. If two of them have the same local type but
//     different types on the wire, it reads the second like the first.
//   - In data that it skips, because the local struct has no such field, it mistakes a nil
//     interface for one with a value.
//
// Honest peers cause neither: they send one type for one type, and the second makes gob fail.

var (
	errPairs   = errors.New("gob: one local type is several types on the wire")
	errSkipped = errors.New("gob: an unknown field contains a nil interface, which cannot be skipped")
)

// pair is a local type with the ID of a type on the wire.
type pair struct {
	local reflect.Type
	id    int64
}

// named is the value of an interface: the name of its type, and the ID.
type named struct {
	name string
	id   int64
}

// Admit reports whether the decoder may decode the last value of Next into v, a pointer. Its error
// concerns that value only.
func (r *Reader) Admit(v any) error {
	g := r.grade(r.id)
	if g == flat {
		return nil
	}
	if len(r.matched) > maxMatched {
		clear(r.matched)
	}
	local := reflect.TypeOf(v)
	if err := r.match(base(local), r.id); err != nil {
		return err
	}
	if g == counted || r.alone(r.id) {
		return nil // it contains no interfaces
	}
	a := admission{cursor: cursor{data: r.buf, pos: r.value}, r: r}
	return a.top(r.id, base(local))
}

// base returns the type behind pointers, like gob; nil for an endless chain of them.
func base(t reflect.Type) reflect.Type {
	for range 100 {
		if t == nil || t.Kind() != reflect.Pointer {
			return t
		}
		t = t.Elem()
	}
	return nil
}

// maxMatched is the maximum number of cached results: an honest peer needs one per type.
const maxMatched = 10_000

// match compares a local type with one on the wire. It only finds corresponding types; gob checks
// whether they are compatible.
func (r *Reader) match(local reflect.Type, id int64) error {
	key := pair{local, id}
	if err, ok := r.matched[key]; ok {
		return err
	}
	r.matched[key] = nil // during the comparison: types can be recursive
	seen := make(map[reflect.Type]int64)
	t := r.types[id]
	if local == nil || t == nil || t.kind != kindStruct || local.Kind() != reflect.Struct {
		err := r.bind(seen, local, id)
		r.matched[key] = err
		return err
	}
	var err error
	for i, name := range t.names {
		if f, ok := local.FieldByName(name); ok && token.IsExported(name) && err == nil {
			err = r.bind(seen, base(f.Type), t.fields[i])
		}
	}
	r.matched[key] = err
	return err
}

// bind records that a local type corresponds to one type on the wire, and to no other.
func (r *Reader) bind(seen map[reflect.Type]int64, local reflect.Type, id int64) error {
	t := r.types[id]
	if local == nil || t == nil {
		return nil
	}
	if other, ok := seen[local]; ok {
		if other != id && !r.same(other, id, make(map[[2]int64]bool)) {
			return errPairs
		}
		return nil
	}
	seen[local] = id
	switch local.Kind() {
	case reflect.Struct:
		if t.kind == kindStruct {
			return r.match(local, id)
		}
	case reflect.Map:
		if t.kind == kindMap {
			return errors.Join(r.bind(seen, base(local.Key()), t.key), r.bind(seen, base(local.Elem()), t.elem))
		}
	case reflect.Slice, reflect.Array:
		if t.kind == kindSlice || t.kind == kindArray {
			return r.bind(seen, base(local.Elem()), t.elem)
		}
	}
	return nil
}

// same reports whether two types on the wire have the same layout.
func (r *Reader) same(a, b int64, assumed map[[2]int64]bool) bool {
	if a == b || assumed[[2]int64{a, b}] {
		return true
	}
	s, t := r.types[a], r.types[b]
	if s == nil || t == nil || s.kind != t.kind || s.length != t.length || len(s.fields) != len(t.fields) {
		return false
	}
	assumed[[2]int64{a, b}] = true
	for i, name := range s.names {
		if t.names[i] != name {
			return false
		}
	}
	other := t.parts()
	for i, part := range s.parts() {
		if !r.same(part, other[i], assumed) {
			return false
		}
	}
	return true
}

// admission walks a value with interfaces, which Next has checked already, together with its local
// type; nil means that the value is skipped.
type admission struct {
	cursor
	r *Reader
}

func (a *admission) top(id int64, local reflect.Type) error {
	if t := a.r.types[id]; t == nil || t.kind != kindStruct {
		if _, err := a.uint(); err != nil {
			return err
		}
	}
	return a.value(id, local)
}

func (a *admission) value(id int64, local reflect.Type) error {
	switch id {
	case idBytes, idString:
		return a.skipBytes()
	case idComplex:
		if _, err := a.uint(); err != nil {
			return err
		}
		fallthrough
	case idBool, idInt, idUint, idFloat:
		_, err := a.uint()
		return err
	case idInterface:
		return a.anything(local)
	}
	switch t := a.r.types[id]; t.kind {
	case kindStruct:
		return a.structure(t, local)
	case kindMap:
		var key, elem reflect.Type
		if local != nil && local.Kind() == reflect.Map {
			key, elem = base(local.Key()), base(local.Elem())
		}
		return a.elements(func() error {
			if err := a.value(t.key, key); err != nil {
				return err
			}
			return a.value(t.elem, elem)
		})
	case kindArray, kindSlice:
		var elem reflect.Type
		if local != nil && (local.Kind() == reflect.Slice || local.Kind() == reflect.Array) {
			elem = base(local.Elem())
		}
		return a.elements(func() error { return a.value(t.elem, elem) })
	default:
		return a.skipBytes()
	}
}

func (a *admission) elements(one func() error) error {
	n, err := a.uint()
	if err != nil {
		return err
	}
	for range n {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

func (a *admission) structure(t *wireType, local reflect.Type) error {
	for field := -1; ; {
		delta, err := a.uint()
		if err != nil || delta == 0 {
			return err
		}
		field += int(delta)
		var of reflect.Type
		if name := t.names[field]; local != nil && local.Kind() == reflect.Struct && token.IsExported(name) {
			if f, ok := local.FieldByName(name); ok {
				of = base(f.Type)
			}
		}
		if err := a.value(t.fields[field], of); err != nil {
			return err
		}
	}
}

func (a *admission) anything(local reflect.Type) error {
	name, err := a.bytes()
	if err != nil {
		return err
	}
	if len(name) == 0 {
		if local == nil {
			return errSkipped
		}
		return nil
	}
	id, err := a.int()
	if err != nil {
		return err
	}
	if local == nil {
		return a.skipBytes()
	}
	if _, err := a.uint(); err != nil {
		return err
	}
	concrete, err := a.r.typeOf(string(name), id)
	if err != nil {
		return err
	}
	if err := a.r.match(base(concrete), id); err != nil {
		return err
	}
	return a.top(id, base(concrete))
}

// probeType is the ID of the type that typeOf creates.
const probeType = math.MaxInt32

// concrete is a result of typeOf.
type concrete struct {
	local reflect.Type
	err   error
}

// maxConcrete is the maximum number of types in interfaces per connection.
const maxConcrete = 1000

var errConcrete = fmt.Errorf("gob: more than %d types in interfaces on one connection", maxConcrete)

// typeOf returns the type registered with gob under a name, for values of the type id. Gob has no
// function for that, so it decodes a zero value: only the definitions of types in it come from the
// peer.
func (r *Reader) typeOf(name string, id int64) (reflect.Type, error) {
	key := named{name, id}
	known, ok := r.concrete[key]
	if !ok {
		if len(r.concrete) >= maxConcrete {
			return nil, errConcrete
		}
		known.local, known.err = r.probe(name, id)
		r.concrete[key] = known
	}
	return known.local, known.err
}

func (r *Reader) probe(name string, id int64) (reflect.Type, error) {
	stream := r.reachable(nil, id, make(map[int64]bool))
	// struct{ V any }, containing the name and a zero value.
	definition := appendInt(nil, -probeType)
	definition = append(definition, 3, 1, 2)
	definition = appendInt(definition, probeType)
	definition = append(definition, 0, 1, 1, 1, 1, 'V', 1, 2*idInterface, 0, 0, 0)
	stream = append(appendUint(stream, uint64(len(definition))), definition...)
	zero, err := r.zero(nil, id, 0)
	if err != nil {
		return nil, err
	}
	if t := r.types[id]; t == nil || t.kind != kindStruct {
		zero = append([]byte{0}, zero...)
	}
	message := append(appendInt(nil, probeType), 1)
	message = append(appendUint(message, uint64(len(name))), name...)
	message = appendInt(message, id)
	message = append(append(appendUint(message, uint64(len(zero))), zero...), 0)
	stream = append(appendUint(stream, uint64(len(message))), message...)
	var v struct{ V any }
	err = Guard(func() error { return gob.NewDecoder(bytes.NewReader(stream)).Decode(&v) })
	return reflect.TypeOf(v.V), err
}

// reachable appends the definitions of a type and of its parts.
func (r *Reader) reachable(stream []byte, id int64, done map[int64]bool) []byte {
	t := r.types[id]
	if t == nil || done[id] {
		return stream
	}
	done[id] = true
	stream = append(appendUint(stream, uint64(len(t.raw))), t.raw...)
	for _, part := range t.parts() {
		stream = r.reachable(stream, part, done)
	}
	return stream
}

// maxZero bounds the zero values of arrays.
const maxZero = 64 << 10

var errZero = errors.New("gob: an array in an interface is too long")

// zero appends the zero value of a type.
func (r *Reader) zero(b []byte, id int64, depth int) ([]byte, error) {
	t := r.types[id]
	switch {
	case id == idComplex:
		return append(b, 0, 0), nil
	case t == nil || t.kind != kindArray:
		return append(b, 0), nil // no fields, no elements, no bytes, or the number 0
	}
	b = appendUint(b, uint64(t.length))
	for range t.length {
		if len(b) > maxZero || depth > 100 {
			return nil, errZero
		}
		var err error
		if b, err = r.zero(b, t.elem, depth+1); err != nil {
			return nil, err
		}
	}
	return b, nil
}
