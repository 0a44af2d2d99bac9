package hessian2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

var (
	errShort    = errors.New("the Hessian data ends before it is complete, or declares more than there is")
	errTrailing = errors.New("bytes follow the Hessian value")
	errDepth    = fmt.Errorf("the Hessian data is nested deeper than %d levels", MaxDepth)
	errText     = errors.New("the Hessian text is not UTF-8")
	errClass    = errors.New("the Hessian data refers to a class or value that does not precede it")
	errList     = errors.New("the Hessian data has a list of a type that is not known")
	errName     = errors.New("the Hessian data has a name instead of a number, or the other way round")
)

// maxName is the maximum length of the name of a class or field in bytes.
const maxName = 1024

// scanner checks one value before the library reads it.
type scanner struct {
	*Codec
	data   []byte
	fields []int // per class so far
	values int   // number of values that can be referenced
	types  int   // number of types that can be referenced
}

// scan checks that data is one Hessian 2 value of known classes.
func (c *Codec) scan(data []byte) error {
	s := scanner{Codec: c, data: data}
	if err := s.value(0); err != nil {
		return err
	}
	if len(s.data) > 0 {
		return errTrailing
	}
	return nil
}

func (s *scanner) byte() (byte, error) {
	if len(s.data) == 0 {
		return 0, errShort
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b, nil
}

func (s *scanner) skip(n int) error {
	if n > len(s.data) {
		return errShort
	}
	s.data = s.data[n:]
	return nil
}

// value skips a value, with the definitions of classes before it.
func (s *scanner) value(depth int) error {
	tag, err := s.byte()
	if err != nil {
		return err
	}
	for tag == 'C' {
		if err := s.class(); err != nil {
			return err
		}
		if tag, err = s.byte(); err != nil {
			return err
		}
	}
	return s.tagged(tag, depth)
}

func (s *scanner) tagged(tag byte, depth int) error {
	switch {
	case tag == 'N', tag == 'T', tag == 'F', tag == 0x5b, tag == 0x5c, tag >= 0x80 && tag <= 0xbf, tag >= 0xd8 && tag <= 0xef:
		return nil
	case tag == 0x5d, tag >= 0xc0 && tag <= 0xcf, tag >= 0xf0:
		return s.skip(1)
	case tag == 0x5e, tag >= 0xd0 && tag <= 0xd7, tag >= 0x38 && tag <= 0x3f:
		return s.skip(2)
	case tag == 'I', tag == 0x59, tag == 0x5f, tag == 0x4b:
		return s.skip(4)
	case tag == 'L', tag == 'D', tag == 0x4a:
		return s.skip(8)
	case isText(tag):
		_, err := s.text(tag)
		return err
	case tag >= 0x20 && tag <= 0x2f, tag >= 0x34 && tag <= 0x37, tag == 'A', tag == 'B':
		return s.binary(tag)
	case tag == 0x51:
		n, err := s.number()
		if err == nil && (n < 0 || n >= s.values) {
			err = errClass
		}
		return err
	}
	if depth == MaxDepth {
		return errDepth
	}
	s.values++
	switch {
	case tag >= 0x60 && tag <= 0x6f:
		return s.object(int(tag-0x60), depth+1)
	case tag == 'O':
		n, err := s.number()
		if err != nil {
			return err
		}
		return s.object(n, depth+1)
	case tag >= 0x70 && tag <= 0x77, tag == 0x55, tag == 'V':
		if err := s.listType(); err != nil {
			return err
		}
		return s.list(tag, 0x70, depth+1)
	case tag >= 0x78 && tag <= 0x7f, tag == 0x57, tag == 0x58:
		return s.list(tag, 0x78, depth+1)
	case tag == 'M':
		if err := s.listType(); err != nil {
			return err
		}
		return s.until(2, depth+1)
	case tag == 'H':
		return s.until(2, depth+1)
	}
	return fmt.Errorf("there is no Hessian tag %#x", tag)
}

func isText(tag byte) bool {
	return tag <= 0x1f || tag >= 0x30 && tag <= 0x33 || tag == 'R' || tag == 'S'
}

// text skips a string, whose lengths count characters, and returns its first chunk.
func (s *scanner) text(tag byte) (first []byte, err error) {
	for chunk := 0; ; chunk++ {
		var n int
		switch {
		case tag <= 0x1f:
			n = int(tag)
		case tag >= 0x30 && tag <= 0x33:
			b, err := s.byte()
			if err != nil {
				return nil, err
			}
			n = int(tag-0x30)<<8 | int(b)
		case tag == 'R' || tag == 'S':
			if len(s.data) < 2 {
				return nil, errShort
			}
			n = int(binary.BigEndian.Uint16(s.data))
			s.data = s.data[2:]
		default:
			return nil, errName
		}
		size, err := textSize(s.data, n)
		if err != nil {
			return nil, err
		}
		if chunk == 0 {
			first = s.data[:size]
		}
		s.data = s.data[size:]
		if tag != 'R' {
			return first, nil
		}
		if tag, err = s.byte(); err != nil {
			return nil, err
		}
	}
}

// textSize returns the length of n characters in bytes. They are Java's 16-bit characters: others
// are surrogate pairs, each half of which is encoded with three bytes like a character.
func textSize(data []byte, n int) (size int, err error) {
	for n > 0 {
		rest := data[size:]
		r, length := utf8.DecodeRune(rest)
		switch {
		case length == 0:
			return 0, errShort
		case r != utf8.RuneError || length > 1:
			if length > 3 {
				return 0, errText
			}
			size, n = size+length, n-1
		case n >= 2 && len(rest) >= 6 && isSurrogate(rest, 0xa0) && isSurrogate(rest[3:], 0xb0):
			size, n = size+6, n-2
		default:
			return 0, errText
		}
	}
	return size, nil
}

// isSurrogate reports whether data begins with a high (0xa0) or low (0xb0) half.
func isSurrogate(data []byte, half byte) bool {
	return data[0] == 0xed && data[1]&0xf0 == half && data[2]&0xc0 == 0x80
}

func (s *scanner) binary(tag byte) error {
	for {
		n := 0
		switch {
		case tag >= 0x20 && tag <= 0x2f:
			n = int(tag - 0x20)
		case tag >= 0x34 && tag <= 0x37:
			b, err := s.byte()
			if err != nil {
				return err
			}
			n = int(tag-0x34)<<8 | int(b)
		case tag == 'A' || tag == 'B':
			if len(s.data) < 2 {
				return errShort
			}
			n = int(binary.BigEndian.Uint16(s.data))
			s.data = s.data[2:]
		default:
			return errName
		}
		if err := s.skip(n); err != nil || tag != 'A' {
			return err
		}
		var err error
		if tag, err = s.byte(); err != nil {
			return err
		}
	}
}

// number decodes an int.
func (s *scanner) number() (int, error) {
	tag, err := s.byte()
	if err != nil {
		return 0, err
	}
	more := 0
	n := 0
	switch {
	case tag >= 0x80 && tag <= 0xbf:
		n = int(tag) - 0x90
	case tag >= 0xc0 && tag <= 0xcf:
		n, more = int(tag)-0xc8, 1
	case tag >= 0xd0 && tag <= 0xd7:
		n, more = int(tag)-0xd4, 2
	case tag == 'I':
		if len(s.data) < 4 {
			return 0, errShort
		}
		n = int(int32(binary.BigEndian.Uint32(s.data)))
		s.data = s.data[4:]
	default:
		return 0, errName
	}
	for range more {
		b, err := s.byte()
		if err != nil {
			return 0, err
		}
		n = n<<8 + int(b)
	}
	return n, nil
}

// name decodes a string of one chunk that is a name.
func (s *scanner) name() ([]byte, error) {
	tag, err := s.byte()
	if err != nil {
		return nil, err
	}
	if !isText(tag) || tag == 'R' {
		return nil, errName
	}
	name, err := s.text(tag)
	if err == nil && len(name) > maxName {
		err = fmt.Errorf("the Hessian data has a name of more than %d bytes", maxName)
	}
	return name, err
}

// class skips the definition of a class after its tag: a name, and the names of its fields.
func (s *scanner) class() error {
	name, err := s.name()
	if err != nil {
		return err
	}
	of, ok := s.classes[string(name)]
	if !ok {
		return fmt.Errorf("the class %.64q is not known: pass its struct to hessian2.New", name)
	}
	n, err := s.number()
	if err != nil {
		return err
	}
	if n < 0 || n > len(s.data) {
		return errShort
	}
	for range n {
		field, err := s.name()
		if err != nil {
			return err
		}
		if !of.has(field) {
			if err := s.noteField(of, field); err != nil {
				return err
			}
		}
	}
	s.fields = append(s.fields, n)
	return nil
}

func (s *scanner) object(class, depth int) error {
	if class < 0 || class >= len(s.fields) {
		return errClass
	}
	// A class without fields is defined with few bytes; its value takes a byte, too.
	for range s.fields[class] {
		if err := s.value(depth); err != nil {
			return err
		}
	}
	return nil
}

// listTypes are the element names for which the library has types.
var listTypes = map[string]bool{
	"": true, "string": true, "java.lang.String": true, "char": true, "short": true, "int": true, "long": true, "float": true,
	"double": true, "boolean": true, "java.util.Date": true, "date": true, "object": true, "java.lang.Object": true,
}

// maxDimensions is the maximum number of nested lists in a list type: the library creates a Go
// type for each, and Go keeps types forever.
const maxDimensions = 3

// listType skips the type of a list or map: its name, or the number of an earlier one.
func (s *scanner) listType() error {
	if len(s.data) == 0 {
		return errShort
	}
	if !isText(s.data[0]) {
		n, err := s.number()
		if err == nil && (n < 0 || n >= s.types) {
			err = errClass
		}
		return err
	}
	name, err := s.name()
	if err != nil {
		return err
	}
	s.types++
	element := bytes.TrimLeft(name, "[")
	if len(name)-len(element) > maxDimensions {
		return errList
	}
	if _, ok := s.classes[string(element)]; ok || listTypes[string(element)] {
		return nil
	}
	return errList
}

// list skips the elements of a list; in some tags the number of elements is included.
func (s *scanner) list(tag, direct byte, depth int) error {
	switch {
	case tag == 0x55 || tag == 0x57:
		return s.until(1, depth)
	case tag >= direct && tag <= direct+7 && tag >= 0x70:
		return s.elements(int(tag-direct), depth)
	}
	n, err := s.number()
	if err != nil {
		return err
	}
	return s.elements(n, depth)
}

func (s *scanner) elements(n, depth int) error {
	if n < 0 || n > len(s.data) {
		return errShort
	}
	for range n {
		if err := s.value(depth); err != nil {
			return err
		}
	}
	return nil
}

// until skips values, in pairs or alone, up to the tag that ends them.
func (s *scanner) until(each, depth int) error {
	for {
		if len(s.data) == 0 {
			return errShort
		}
		if s.data[0] == 'Z' {
			return s.skip(1)
		}
		for range each {
			if err := s.value(depth); err != nil {
				return err
			}
		}
	}
}
