package msgpack

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A plan is what has to be known of a plain type.
type plan struct {
	err   error // why it has no MessagePack
	bytes bool  // it has byte slices
	deep  bool  // it contains itself or an interface, so that its values can be of any depth
}

// protoMessage is the mark of types that protoc-gen-go generates.
type protoMessage interface{ ProtoMessage() }

func newPlan(t reflect.Type) *plan {
	w := walk{begun: map[reflect.Type]bool{}, done: map[reflect.Type]bool{}}
	w.plan.err = w.check(t)
	return &w.plan
}

type walk struct {
	plan  plan
	begun map[reflect.Type]bool
	done  map[reflect.Type]bool
}

func (w *walk) check(t reflect.Type) error {
	if w.begun[t] {
		w.plan.deep = w.plan.deep || !w.done[t]
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
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Uintptr, reflect.UnsafePointer:
		return fmt.Errorf("there is no MessagePack for %v: leave it out with the tag msgpack:\"-\"", t)
	case reflect.Interface:
		w.plan.deep = true
		if t.NumMethod() > 0 {
			return fmt.Errorf("%v is an interface, for which no type can be chosen when it is decoded", t)
		}
	case reflect.Slice:
		w.plan.bytes = w.plan.bytes || t.Elem().Kind() == reflect.Uint8
		return w.check(t.Elem())
	case reflect.Pointer, reflect.Array:
		return w.check(t.Elem())
	case reflect.Map:
		if err := w.check(t.Key()); err != nil {
			return err
		}
		return w.check(t.Elem())
	case reflect.Struct:
		return w.checkFields(t)
	}
	return nil
}

func (w *walk) checkFields(t reflect.Type) error {
	if t == reflect.TypeFor[time.Time]() {
		return nil // it has an extension of its own
	}
	if embedsItself(t, nil) {
		return fmt.Errorf("%v embeds itself: give the field a name", t)
	}
	for _, i := range encodedFields(t) {
		f := t.Field(i)
		if err := w.check(f.Type); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

// encodedFields returns which of a struct's fields are encoded.
func encodedFields(t reflect.Type) []int {
	var encoded []int
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("msgpack"), ","); f.IsExported() && name != "-" {
			encoded = append(encoded, i)
		}
	}
	return encoded
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
