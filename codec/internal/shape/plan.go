// Package shape finds out what a codec has to know of a Go type before it meets values of it: whether
// the format has something for all of it, whether it has byte slices, and whether its values can be
// nested without end. It is shared by the codecs of plain structs.
package shape

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// Types keeps what was found out. It is safe for concurrent use and must not be copied. The fields
// are set before first use.
type Types struct {
	// Format is the format's name, for messages: "MessagePack".
	Format string
	// Tag is the key of the struct tags, in which "-" leaves a field out.
	Tag string
	// Whole reports that a type has its own place in the format, so that its inside does not matter. Nil
	// stands for time.Time only.
	Whole func(reflect.Type) bool
	// Refuse returns why a type cannot be encoded although its parts could. It may be nil.
	Refuse func(reflect.Type) error

	plans  sync.Map // of *Plan by reflect.Type
	fields sync.Map // of []int by reflect.Type: the fields of a struct that are encoded
}

// A Plan is what has to be known of a type.
type Plan struct {
	Err   error // why the format cannot carry it
	Bytes bool  // it has byte slices
	Deep  bool  // it contains itself or an interface, so that its values can be of any depth
}

// protoMessage is the mark of types that protoc-gen-go generates.
type protoMessage interface{ ProtoMessage() }

// Plan returns what is known of t, and finds it out the first time.
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
	case reflect.Interface:
		w.plan.Deep = true
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

// encodedFields returns which of a struct's fields are encoded.
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

// embedsItself reports whether t's fields could be collected for ever. outer are the types around it.
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
