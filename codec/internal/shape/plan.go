// Package shape analyses Go types for codecs, before they encode values: whether the format
// supports all parts of a type, whether it contains byte slices, and whether its values can be
// nested without limit. It is shared by the codecs for plain structs.
package shape

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// Types caches the results. It is safe for concurrent use and must not be copied. The fields must
// be set before first use.
type Types struct {
	// Format is the format's name, for messages: "MessagePack".
	Format string
	// Tag is the key of the struct tags, in which "-" leaves a field out.
	Tag string
	// Whole reports that the format has an encoding of its own for a type, whose contents then do
	// not matter. Nil means only time.Time.
	Whole func(reflect.Type) bool
	// Refuse returns why a type cannot be encoded although its parts could be. It may be nil.
	Refuse func(reflect.Type) error

	plans  sync.Map // of *Plan by reflect.Type
	fields sync.Map // of []int by reflect.Type: the fields of a struct that are encoded
}

// A Plan is the result for a type.
type Plan struct {
	Err   error // why the format does not support it
	Bytes bool  // it contains byte slices
	Text  bool  // it contains strings, or interfaces, which may hold pointers to some
	Deep  bool  // it contains itself or an interface, so its values can be nested to any depth
}

// protoMessage is implemented by the types that protoc-gen-go generates.
type protoMessage interface{ ProtoMessage() }

// Plan returns the result for t, which is computed only once.
func (s *Types) Plan(t reflect.Type) Plan {
	known, ok := s.plans.Load(t)
	if !ok {
		w := walk{types: s, begun: map[reflect.Type]bool{}, done: map[reflect.Type]bool{}}
		w.plan.Err = w.check(t)
		known, _ = s.plans.LoadOrStore(t, &w.plan)
	}
	return *known.(*Plan)
}

type walk struct {
	types *Types
	plan  Plan
	begun map[reflect.Type]bool
	done  map[reflect.Type]bool
}

func (w *walk) check(t reflect.Type) error {
	if w.begun[t] {
		w.plan.Deep = w.plan.Deep || !w.done[t]
		return nil
	}
	w.begun[t] = true
	err := w.checkNew(t)
	w.done[t] = true
	return err
}

func (w *walk) checkNew(t reflect.Type) error {
	if t.Implements(reflect.TypeFor[protoMessage]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[protoMessage]()) {
		return fmt.Errorf("%v is a protobuf message: use the protobuf codec", t)
	}
	if w.types.whole(t) {
		return nil
	}
	if w.types.Refuse != nil {
		if err := w.types.Refuse(t); err != nil {
			return err
		}
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Uintptr, reflect.UnsafePointer:
		return fmt.Errorf("there is no %s for %v: leave it out with the tag %s:\"-\"", w.types.Format, t, w.types.Tag)
	case reflect.String:
		w.plan.Text = true
	case reflect.Interface:
		w.plan.Deep, w.plan.Text = true, true
		if t.NumMethod() > 0 {
			return fmt.Errorf("%v is an interface, for which no type can be chosen when it is decoded", t)
		}
	case reflect.Slice:
		w.plan.Bytes = w.plan.Bytes || t.Elem().Kind() == reflect.Uint8
		return At("[]", w.check(t.Elem()))
	case reflect.Array:
		return At("[]", w.check(t.Elem()))
	case reflect.Pointer:
		return w.check(t.Elem())
	case reflect.Map:
		if err := w.check(t.Key()); err != nil {
			return At("[key]", err)
		}
		return At("[]", w.check(t.Elem()))
	case reflect.Struct:
		return w.checkFields(t)
	}
	return nil
}

func (s *Types) whole(t reflect.Type) bool {
	if s.Whole != nil {
		return s.Whole(t)
	}
	return t == reflect.TypeFor[time.Time]()
}

func (w *walk) checkFields(t reflect.Type) error {
	if embedsItself(t, nil) {
		return fmt.Errorf("%v embeds itself: give the field a name", t)
	}
	for _, i := range w.types.encodedFields(t) {
		f := t.Field(i)
		if err := w.check(f.Type); err != nil {
			return At(f.Name, err)
		}
	}
	return nil
}

// encodedFields returns the indexes of a struct's encoded fields.
func (s *Types) encodedFields(t reflect.Type) []int {
	if known, ok := s.fields.Load(t); ok {
		return known.([]int)
	}
	var encoded []int
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get(s.Tag), ","); f.IsExported() && name != "-" {
			encoded = append(encoded, i)
		}
	}
	known, _ := s.fields.LoadOrStore(t, encoded)
	return known.([]int)
}

// embedsItself reports whether collecting t's fields would never end. outer are the types around
// it.
func embedsItself(t reflect.Type, outer []reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	if slices.Contains(outer, t) {
		return true
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && embedsItself(f.Type, append(outer, t)) {
			return true
		}
	}
	return false
}
