// Package pbrt is the runtime of the code that Anser generates for protobuf messages. Only
// generated code and package protobuf use it; its API changes with the generator.
//
// A generated message has one exported method, AnserProtobuf, which encodes, decodes, and copies
// decoded text, depending on State.Op.
//
// Decoding takes one pass, in which strings and byte slices refer to the payload. Afterwards the
// code visits only these fields and copies their bytes to one block of exactly their size. With
// Borrow there is no second step.
package pbrt

import (
	"errors"
	"fmt"
	"unsafe"

	"google.golang.org/protobuf/proto"
)

// Version is the version of the interface between this package and generated code. Generated code
// does not compile if it needs another one.
const Version = 1

// EnforceVersion is a constant conversion that fails to compile for a negative number.
type EnforceVersion uint

// Message is a message with generated code.
type Message interface {
	proto.Message
	// AnserProtobuf performs s.Op, and returns b, extended by OpAppend.
	AnserProtobuf(s *State, b []byte) []byte
}

// Op is an operation of a message.
type Op uint8

const (
	OpAppend Op = iota // append the message to b
	OpDecode           // merge b into the message
	OpOwn              // copy the text that refers to the payload
)

// Mode determines where the decoded strings, bytes and optional scalars are.
type Mode uint8

const (
	// Shared allocates together what belongs together: all text of a message and of the messages
	// inside it, the optional scalars of a message, and the elements of lists. One part in use
	// keeps its neighbours in memory.
	Shared Mode = iota
	// Separate allocates each string, byte slice, optional scalar and element by itself.
	Separate
	// Borrow is like Shared, but strings and byte slices refer to the payload.
	Borrow
)

// State is the state of an operation on a message and the messages inside it. Its fields belong to
// generated code.
type State struct {
	Op      Op
	Mode    Mode
	Partial bool   // a required field may be missing
	Depth   int    // the levels of messages that are left
	Text    int    // bytes of text that refer to the payload
	Err     error  // the first error
	block   []byte // the unused rest of the block of OpOwn
	keys    []byte // the unused rest of the block for the text of maps
}

var (
	errInvalid = errors.New("the bytes are not a valid message")
	errDepth   = errors.New("messages are nested too deep")
)

// Append appends m to b, with at most depth levels of messages. If it fails, the result shares the
// memory of b, whose bytes are unchanged.
func Append(b []byte, m Message, depth int) ([]byte, error) {
	s := State{Op: OpAppend, Depth: depth}
	b = m.AnserProtobuf(hide(&s), b)
	if s.Err != nil {
		return b, s.Err
	}
	if s.Partial {
		return b, proto.CheckInitialized(m)
	}
	return b, nil
}

// Unmarshal decodes b, with at most depth levels of messages, into m, a zero value. If it fails, m
// is reset. With mode Borrow, m refers to b.
func Unmarshal(b []byte, m Message, depth int, mode Mode) error {
	s := State{Op: OpDecode, Depth: depth, Mode: mode}
	m.AnserProtobuf(hide(&s), b)
	if s.Err != nil {
		proto.Reset(m)
		return s.Err
	}
	if s.Text > 0 && mode != Borrow {
		s.Op = OpOwn
		if mode == Shared {
			s.block = newBlock(s.Text)
		}
		m.AnserProtobuf(hide(&s), nil)
	}
	if s.Partial {
		if err := proto.CheckInitialized(m); err != nil {
			proto.Reset(m)
			return err
		}
	}
	return nil
}

// hide returns s in a way that the compiler cannot follow. Otherwise the call of a method of an
// interface would move each State to the heap. Generated methods do not keep it.
//
// The stack must not move between the two lines. It cannot, as nothing is called there, but with
// the race detector the compiler inserts a check of the pointer, which is a call and may move it.
//
//go:nocheckptr
func hide(s *State) *State {
	address := uintptr(unsafe.Pointer(s))
	return *(**State)(unsafe.Pointer(&address))
}

// Fail records that the bytes are invalid, unless there is an error already. It returns false.
func (s *State) Fail() bool {
	if s.Err == nil {
		s.Err = errInvalid
	}
	return false
}

// Enter counts a level of messages. It returns false, and records an error, if there are too many.
func (s *State) Enter() bool {
	s.Depth--
	return s.Depth >= 0 || s.tooDeep()
}

func (s *State) tooDeep() bool {
	if s.Err == nil {
		s.Err = errDepth
	}
	return false
}

// NotUTF8 records that a field is not UTF-8. It returns false.
func (s *State) NotUTF8(field string) bool {
	if s.Err == nil {
		s.Err = fmt.Errorf("field %s is not UTF-8", field)
	}
	return false
}
