package gobwire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxDepth is how deep values may be nested, as encoding/json and gob itself have it for what they
// skip. Gob's decoder recurses, and a stack that is full ends the process.
const maxDepth = 10_000

var (
	errDepth     = fmt.Errorf("a gob value is nested deeper than %d levels", maxDepth)
	errUndefined = errors.New("a gob value has a type that was not defined")
	errLength    = errors.New("an array in a gob value has another length than its type")
	errField     = errors.New("a gob value has a field that its type has not")
	errSingle    = errors.New("a gob value does not begin as it should")
	errName      = errors.New("the name of a type in a gob value is too long")
)

// walk checks a value and writes it again in its simplest form, without definitions inside. What
// gob's decoder then sees is what was checked, whichever way it reads it: where a field is unknown to
// it, it skips an interface by its length, and by its structure where it is known.
type walk struct {
	cursor
	r     *Reader
	out   []byte
	dry   bool // nothing is written
	depth int
}

// top walks a value with its type: a struct as it is, anything else after a zero.
func (w *walk) top(id int64) error {
	if t := w.r.types[id]; t == nil || t.kind != kindStruct {
		zero, err := w.copyUint()
		if err != nil {
			return err
		}
		if zero != 0 {
			return errSingle
		}
	}
	return w.value(id)
}

func (w *walk) value(id int64) error {
	switch id {
	case idBool, idInt, idUint, idFloat:
		_, err := w.copyUint()
		return err
	case idComplex:
		if _, err := w.copyUint(); err != nil {
			return err
		}
		_, err := w.copyUint()
		return err
	case idBytes, idString:
		return w.copyBytes()
	}
	if w.depth++; w.depth > maxDepth {
		return errDepth
	}
	err := w.composite(id)
	w.depth--
	return err
}

func (w *walk) composite(id int64) error {
	if id == idInterface {
		return w.anything()
	}
	t := w.r.types[id]
	if t == nil {
		return errUndefined
	}
	switch t.kind {
	case kindStruct:
		return w.structure(t)
	case kindMap:
		n, err := w.copyUint()
		if err != nil {
			return err
		}
		// Every element takes a byte at least, so the loop ends with the message whatever was declared.
		for range n {
			if err := w.value(t.key); err != nil {
				return err
			}
			if err := w.value(t.elem); err != nil {
				return err
			}
		}
		return nil
	case kindArray, kindSlice:
		n, err := w.copyUint()
		if err != nil {
			return err
		}
		if t.kind == kindArray && n != uint64(t.length) {
			return errLength
		}
		for range n {
			if err := w.value(t.elem); err != nil {
				return err
			}
		}
		return nil
	default:
		return w.copyBytes()
	}
}

func (w *walk) structure(t *wireType) error {
	field := -1
	for {
		delta, err := w.copyUint()
		if err != nil {
			return err
		}
		if delta == 0 {
			return nil
		}
		if delta > uint64(len(t.fields)-1-field) {
			return errField
		}
		field += int(delta)
		if err := w.value(t.fields[field]); err != nil {
			return err
		}
	}
}

// anything walks an interface: the name of a type, definitions where the type is new, its id, a
// length, and a value. Definitions are taken out, and the length is made that of the whole value,
// which it is not where there were definitions deeper inside.
func (w *walk) anything() error {
	name, err := w.bytes()
	if err != nil {
		return err
	}
	if len(name) > 1024 {
		return errName
	}
	w.out = append(appendUint(w.out, uint64(len(name))), name...)
	if len(name) == 0 {
		return nil // a nil interface
	}
	id, err := w.typeOfInterface()
	if err != nil {
		return err
	}
	w.out = appendInt(w.out, id)
	if _, err := w.uint(); err != nil {
		return err
	}
	// Room for the length, in four bytes whatever it is: moving the value would take quadratic time
	// where interfaces are nested.
	start := len(w.out) + 5
	w.out = append(w.out, 0xfc, 0, 0, 0, 0)
	if err := w.top(id); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(w.out[start-4:], uint32(len(w.out)-start))
	return nil
}

// typeOfInterface reads the id of a value's type, and the definitions before it. Where a definition
// ends its message the next one goes on; else the length of what follows is in between.
func (w *walk) typeOfInterface() (int64, error) {
	for {
		if w.left() == 0 {
			message, err := w.r.more()
			if err != nil {
				return 0, err
			}
			w.data, w.pos = message, 0
		}
		id, err := w.typeID()
		if err != nil {
			return 0, err
		}
		if id >= 0 {
			return id, nil
		}
		start := w.pos
		t, err := w.definition()
		if err != nil {
			return 0, err
		}
		if err := w.r.define(-id, t, w.data[start:w.pos]); err != nil {
			return 0, err
		}
		if w.left() > 0 {
			if _, err := w.uint(); err != nil {
				return 0, err
			}
		}
	}
}

func (w *walk) copyUint() (uint64, error) {
	n, err := w.uint()
	if err != nil {
		return 0, err
	}
	if !w.dry {
		w.out = appendUint(w.out, n)
	}
	return n, nil
}

func (w *walk) copyBytes() error {
	b, err := w.bytes()
	if err != nil {
		return err
	}
	if !w.dry {
		w.out = append(appendUint(w.out, uint64(len(b))), b...)
	}
	return nil
}
