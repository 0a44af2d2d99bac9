package gobwire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxDepth is the maximum nesting depth of values, as in encoding/json and in gob itself for
// skipped values. Gob's decoder recurses, and a stack overflow ends the process.
const maxDepth = 10_000

var (
	errDepth     = fmt.Errorf("a gob value is nested deeper than %d levels", maxDepth)
	errUndefined = errors.New("a gob value has a type that was not defined")
	errLength    = errors.New("the length of an array in a gob value differs from its type")
	errField     = errors.New("a gob value has a field that its type does not define")
	errSingle    = errors.New("a gob value does not begin as it should")
	errName      = errors.New("the name of a type in a gob value is too long")
)

// walk checks a value and writes it again in its simplest form, without definitions inside. Gob's
// decoder then reads exactly what was checked, in either of its ways: it skips an interface in an
// unknown field by its length, and reads it by its structure otherwise.
type walk struct {
	cursor
	r     *Reader
	out   []byte
	dry   bool // nothing is written
	depth int
}

// top walks a value with its type: a struct directly, any other value after a zero byte.
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
		// Every element takes at least one byte, so the loop ends with the message, whatever
		// length was declared.
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

// anything walks an interface: the name of a type, definitions if the type is new, its ID, a
// length, and a value. Definitions are removed, and the length is changed to that of the whole
// value, which differs if there were definitions deeper inside.
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
	// Space for the length, always four bytes: moving the value would take quadratic time for
	// nested interfaces.
	start := len(w.out) + 5
	w.out = append(w.out, 0xfc, 0, 0, 0, 0)
	if err := w.top(id); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(w.out[start-4:], uint32(len(w.out)-start))
	return nil
}

// typeOfInterface reads the ID of a value's type, and the definitions before it. If a definition
// ends its message, the next one continues; otherwise there is the length of the rest in between.
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
