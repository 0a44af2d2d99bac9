package gobwire

import (
	"errors"
	"fmt"
)

// The IDs of the types that gob predefines, and the first ID of defined types.
const (
	idBool      = 1
	idInt       = 2
	idUint      = 3
	idFloat     = 4
	idBytes     = 5
	idString    = 6
	idComplex   = 7
	idInterface = 8
	firstUser   = 64
)

// kind is the layout of the values of a defined type.
type kind uint8

const (
	kindNone kind = iota
	kindArray
	kindSlice
	kindStruct
	kindMap
	kindOpaque // types that encode themselves: a count and bytes
)

// wireType is the definition of a type on the wire.
type wireType struct {
	kind   kind
	length int64   // of an array
	key    int64   // ID of a map's key
	elem   int64   // ID of the elements of an array, slice or map
	fields []int64 // IDs of a struct's fields
	names  []string
	raw    []byte // the message of the definition, without its length
}

var errDefinition = errors.New("the definition of a gob type is broken")

// definition parses the definition of a type. It has the form of gob's own struct wireType, in
// which exactly one of seven pointers is set.
func (c *cursor) definition() (*wireType, error) {
	t := new(wireType)
	field := int64(-1)
	for {
		delta, err := c.uint()
		switch {
		case err != nil:
			return nil, err
		case delta == 0:
			if t.kind == kindNone {
				return nil, errDefinition
			}
			return t, nil
		case delta > 7 || t.kind != kindNone:
			// A type of two kinds would be read as the one here and as the other by gob.
			return nil, errDefinition
		}
		field += int64(delta)
		switch field {
		case 0:
			t.kind = kindArray
		case 1:
			t.kind = kindSlice
		case 2:
			t.kind = kindStruct
		case 3:
			t.kind = kindMap
		case 4, 5, 6:
			t.kind = kindOpaque
		default:
			return nil, errDefinition
		}
		if err := c.describe(t); err != nil {
			return nil, err
		}
	}
}

// describe parses the struct that describes a type of a known kind: name and ID, which are not
// needed here, and then the fields of the kind.
func (c *cursor) describe(t *wireType) error {
	return c.eachField(func(field int64) error {
		if field == 0 {
			return c.eachField(func(field int64) error {
				switch field {
				case 0:
					return c.skipBytes()
				case 1:
					_, err := c.int()
					return err
				}
				return errDefinition
			})
		}
		var err error
		switch {
		case t.kind == kindStruct && field == 1:
			return c.describeFields(t)
		case t.kind == kindArray && field == 1, t.kind == kindSlice && field == 1, t.kind == kindMap && field == 2:
			t.elem, err = c.int()
		case t.kind == kindMap && field == 1:
			t.key, err = c.int()
		case t.kind == kindArray && field == 2:
			if t.length, err = c.int(); err == nil && t.length < 0 {
				err = errDefinition
			}
		default:
			err = errDefinition
		}
		return err
	})
}

func (c *cursor) describeFields(t *wireType) error {
	n, err := c.uint()
	if err != nil {
		return err
	}
	if n > uint64(c.left()) {
		return fmt.Errorf("%w: it has %d fields in %d bytes", errDefinition, n, c.left())
	}
	for range n {
		id, name := int64(0), []byte(nil)
		err := c.eachField(func(field int64) (err error) {
			switch field {
			case 0:
				name, err = c.bytes()
			case 1:
				id, err = c.int()
			default:
				err = errDefinition
			}
			return err
		})
		if err != nil {
			return err
		}
		t.fields, t.names = append(t.fields, id), append(t.names, string(name))
	}
	return nil
}

// eachField parses a struct and calls f for each field that is present, with its number.
func (c *cursor) eachField(f func(field int64) error) error {
	field := int64(-1)
	for {
		delta, err := c.uint()
		if err != nil {
			return err
		}
		if delta == 0 {
			return nil
		}
		if delta > maxFields {
			return errDefinition
		}
		field += int64(delta)
		if err := f(field); err != nil {
			return err
		}
	}
}

// maxFields is more than the number of fields of any struct of gob's own.
const maxFields = 8
