package thrift

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var (
	errShort    = errors.New("the Thrift data ends before it is complete, or declares more than there is")
	errTrailing = errors.New("bytes follow the Thrift struct")
	errNegative = errors.New("the Thrift data declares a negative length")
	errVarint   = errors.New("the Thrift data has a number that is too long")
)

// The types of the binary protocol.
const (
	typeStop   = 0
	typeBool   = 2
	typeByte   = 3
	typeDouble = 4
	typeI16    = 6
	typeI32    = 8
	typeI64    = 10
	typeString = 11
	typeStruct = 12
	typeMap    = 13
	typeSet    = 14
	typeList   = 15
	typeUUID   = 16
)

// A scanner checks one struct before a decoder allocates because of a declared length or recurses
// as deep as the data. It needs no memory but the stack for MaxDepth levels.
type scanner struct{ data []byte }

// skip skips n bytes.
func (s *scanner) skip(n uint64) error {
	if n > uint64(len(s.data)) {
		return errShort
	}
	s.data = s.data[n:]
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

// size decodes a length of four bytes.
func (s *scanner) size() (uint64, error) {
	if len(s.data) < 4 {
		return 0, errShort
	}
	n := int32(binary.BigEndian.Uint32(s.data))
	s.data = s.data[4:]
	if n < 0 {
		return 0, errNegative
	}
	return uint64(n), nil
}

func errUnknown(t byte) error { return fmt.Errorf("there is no Thrift type %d", t) }

// scanBinary checks that data is one struct in the binary protocol.
func scanBinary(data []byte) error {
	s := scanner{data}
	if err := s.value(typeStruct, 0); err != nil {
		return err
	}
	if len(s.data) > 0 {
		return errTrailing
	}
	return nil
}

// sizes holds the sizes of the types with a fixed size.
var sizes = [17]uint64{typeBool: 1, typeByte: 1, typeDouble: 8, typeI16: 2, typeI32: 4, typeI64: 8, typeUUID: 16}

func (s *scanner) value(t byte, depth int) error {
	if t > typeUUID {
		return errUnknown(t)
	}
	if n := sizes[t]; n > 0 {
		return s.skip(n)
	}
	if t == typeString {
		n, err := s.size()
		if err != nil {
			return err
		}
		return s.skip(n)
	}
	if depth == MaxDepth {
		return errDeep
	}
	switch t {
	case typeStruct:
		return s.fields(depth + 1)
	case typeMap:
		return s.elements(2, depth+1)
	case typeSet, typeList:
		return s.elements(1, depth+1)
	}
	return errUnknown(t)
}

func (s *scanner) fields(depth int) error {
	for {
		t, err := s.byte()
		if err != nil || t == typeStop {
			return err
		}
		if err := s.skip(2); err != nil {
			return err
		}
		if err := s.value(t, depth); err != nil {
			return err
		}
	}
}

// elements skips a container: the types of its elements, a count, and that many elements of each
// type.
func (s *scanner) elements(types, depth int) error {
	var of [2]byte
	for i := range types {
		var err error
		if of[i], err = s.byte(); err != nil {
			return err
		}
	}
	n, err := s.size()
	if err != nil {
		return err
	}
	// Every value takes at least one byte, whatever its type.
	if n*uint64(types) > uint64(len(s.data)) {
		return errShort
	}
	for range n {
		for _, t := range of[:types] {
			if err := s.value(t, depth); err != nil {
				return err
			}
		}
	}
	if n == 0 {
		return s.known(of[:types])
	}
	return nil
}

// known checks the types of an empty container. Thrift's own writers use the type stop there.
func (s *scanner) known(types []byte) error {
	for _, t := range types {
		if t != typeStop && (t > typeUUID || t == 1 || t == 5 || t == 7 || t == 9) {
			return errUnknown(t)
		}
	}
	return nil
}

// The types of the compact protocol.
const (
	compactTrue   = 1
	compactFalse  = 2
	compactByte   = 3
	compactI16    = 4
	compactI32    = 5
	compactI64    = 6
	compactDouble = 7
	compactBinary = 8
	compactList   = 9
	compactSet    = 10
	compactMap    = 11
	compactStruct = 12
	compactUUID   = 13
)

// scanCompact checks that data is one struct in the compact protocol.
func scanCompact(data []byte) error {
	s := compactScanner{scanner{data}}
	if err := s.fields(1); err != nil {
		return err
	}
	if len(s.data) > 0 {
		return errTrailing
	}
	return nil
}

type compactScanner struct{ scanner }

// varint decodes a number of at most that many bits.
func (s *compactScanner) varint(bits int) (uint64, error) {
	n, length := binary.Uvarint(s.data)
	switch {
	case length == 0:
		return 0, errShort
	case length < 0 || length > (bits+6)/7 || bits < 64 && n > math.MaxUint32:
		return 0, errVarint
	}
	s.data = s.data[length:]
	return n, nil
}

// length decodes a length, which is a signed number in Thrift.
func (s *compactScanner) length() (uint64, error) {
	n, err := s.varint(32)
	if err == nil && n > math.MaxInt32 {
		err = errNegative
	}
	return n, err
}

func (s *compactScanner) fields(depth int) error {
	if depth > MaxDepth {
		return errDeep
	}
	for {
		head, err := s.byte()
		if err != nil || head == typeStop {
			return err
		}
		if head>>4 == 0 { // the id is not a small increment of the last one
			if _, err := s.varint(32); err != nil {
				return err
			}
		}
		t := head & 15
		if t == compactTrue || t == compactFalse {
			continue // the type is the value
		}
		if err := s.value(t, depth); err != nil {
			return err
		}
	}
}

func (s *compactScanner) value(t byte, depth int) error {
	switch t {
	case compactTrue, compactFalse, compactByte:
		return s.skip(1)
	case compactI16, compactI32:
		_, err := s.varint(32)
		return err
	case compactI64:
		_, err := s.varint(64)
		return err
	case compactDouble:
		return s.skip(8)
	case compactUUID:
		return s.skip(16)
	case compactBinary:
		n, err := s.length()
		if err != nil {
			return err
		}
		return s.skip(n)
	case compactStruct:
		return s.fields(depth + 1)
	case compactList, compactSet:
		return s.list(depth + 1)
	case compactMap:
		return s.mapping(depth + 1)
	}
	return errUnknown(t)
}

func (s *compactScanner) list(depth int) error {
	head, err := s.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = s.length(); err != nil {
			return err
		}
	}
	return s.elements(n, depth, head&15)
}

func (s *compactScanner) mapping(depth int) error {
	n, err := s.length()
	if err != nil || n == 0 {
		return err
	}
	types, err := s.byte()
	if err != nil {
		return err
	}
	return s.elements(n, depth, types>>4, types&15)
}

func (s *compactScanner) elements(n uint64, depth int, types ...byte) error {
	if depth > MaxDepth {
		return errDeep
	}
	if n*uint64(len(types)) > uint64(len(s.data)) {
		return errShort
	}
	if n == 0 && types[0] > compactUUID {
		return errUnknown(types[0])
	}
	for range n {
		for _, t := range types {
			if err := s.value(t, depth); err != nil {
				return err
			}
		}
	}
	return nil
}
