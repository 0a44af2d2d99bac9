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

// What Next has checked, it has checked by the types on the wire. Gob's decoder goes by them too, with
// two exceptions, in which it loses its place, reads on where an attacker wants it to, and finds a
// map of 2^60 there:
//
//   - It compiles the fields of a struct together. Where two of them have the same type here but not
//     on the wire, it reads the second like the first.
//   - In what it skips, because the struct here has no such field, it takes a nil interface for one
//     with a value.
//
// Honest peers meet neither: they send one type for one type, and the second makes gob fail.

var (
	errPairs   = errors.New("gob: one type here is several types in what was sent")
	errSkipped = errors.New("gob: a field that is unknown here has a nil interface in it, which cannot be skipped")
)

// pair is a type here and the id of one on the wire.
type pair struct {
	local reflect.Type
	id    int64
}

// named is the value of an interface: the name of its type, and the id.
type named struct {
	name string
	id   int64
}

// Admit reports whether the decoder may decode the value that Next read last into v, a pointer. Its
// error concerns that value only.
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
		return nil // there are no interfaces in it
	}
	a := admission{cursor: cursor{data: r.buf, pos: r.value}, r: r}
	return a.top(r.id, base(local))
}

// base returns the type behind pointers, as gob sees it; nil for what has no end.
func base(t reflect.Type) reflect.Type {
	for range 100 {
		if t == nil || t.Kind() != reflect.Pointer {
			return t
		}
		t = t.Elem()
	}
	return nil
}

// maxMatched is how many findings are kept: an honest peer needs one for each type.
const maxMatched = 10_000

// match holds a type here against one on the wire. It finds what belongs together only; whether it fits
// is gob's business.
func (r *Reader) match(local reflect.Type, id int64) error {
	key := pair{local, id}
	if err, ok := r.matched[key]; ok {
		return err
	}
	r.matched[key] = nil // while it is being found out: types can be recursive
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

// bind notes that a type here stands for one on the wire, and for no other.
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

// same reports whether two types on the wire are laid out the same way.
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

// admission walks a value with interfaces, which Next has checked already, beside the type that it
// is decoded into; nil stands for what is skipped.
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

// probeType is the id of the type that typeOf makes up.
const probeType = math.MaxInt32

// concrete is what typeOf has found out.
type concrete struct {
	local reflect.Type
	err   error
}

// maxConcrete is how many types of interfaces a connection may have.
const maxConcrete = 1000

var errConcrete = fmt.Errorf("gob: more than %d types in interfaces on one connection", maxConcrete)

// typeOf returns the type that a name was registered for with gob, for values of the type id. Gob
// does not tell, so it is given a zero value to decode: nothing in that comes from the peer but the
// definitions of types.
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
	// struct{ V any }, with the name and a zero value in it.
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

// reachable appends the definitions of a type and of what it is made of.
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
