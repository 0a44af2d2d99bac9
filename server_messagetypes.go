package anser

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/codec"
)

// checkTypes returns an error if no codec in which the method may be called can carry its messages.
// A codec that cannot tell without a value counts as one that can.
func (s *Server) checkTypes(m *method) error {
	if m.in != nil || m.builtin || m.foreign { // elements of tuples are checked one by one
		return nil
	}
	if m.own != nil && (m.only == nil || m.only[m.own.ID()]) {
		return nil
	}
	request, reply := reflect.New(m.request).Interface(), reflect.New(m.reply).Interface()
	var why []error
	for id, c := range s.codecs {
		if c == nil || m.only != nil && !m.only[id] {
			continue
		}
		err := misfit(c, request, reply)
		if err == nil {
			return nil
		}
		why = append(why, err)
	}
	return errors.Join(append([]error{fmt.Errorf("no codec of the server can carry a request of type %s with a reply of type %s", m.request, m.reply)}, reasons(why)...)...)
}

// findOwnCodec returns the codec that the method's messages bring, or nil.
func (m *method) findOwnCodec() codec.Codec {
	if m.in != nil || m.builtin || m.foreign {
		return nil
	}
	var reply any
	if !m.oneway {
		reply = reflect.New(m.reply).Interface()
	}
	return ownCodec(reflect.New(m.request).Interface(), reply)
}

// codec returns the codec with the number for calls of m, or nil.
func (s *Server) codec(m *method, number uint8) codec.Codec {
	if c := s.codecs[number]; c != nil || m.own == nil || m.own.ID() != number {
		return c
	}
	return m.own
}
