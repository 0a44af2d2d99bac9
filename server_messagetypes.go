package anser

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/codec"
)

// checkTypes returns an error if no codec in which the method may be called can carry its messages. Codecs that cannot
// tell without a value count as ones that can.
func (s *Server) checkTypes(m *method) error {
	if m.in != nil || m.builtin { // elements of tuples are checked one by one
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

// errUnfit is the reason of codecs that give none: they are for other types altogether.
var errUnfit = errors.New("the type does not fit")

// misfit returns why the codec cannot carry both messages, which are pointers, or nil if it can or cannot tell.
func misfit(c codec.Codec, messages ...any) error {
	f, ok := c.(codec.Fitter)
	if !ok {
		return nil
	}
	for _, v := range messages {
		if f.Fits(v) {
			continue
		}
		if e, ok := c.(codec.Explainer); ok {
			if err := e.Unfit(v); err != nil {
				return fmt.Errorf("%s: %s: %w", c.Name(), reflect.TypeOf(v).Elem(), err)
			}
		}
		return errUnfit
	}
	return nil
}

// reasons leaves out those that say nothing.
func reasons(all []error) []error {
	var some []error
	for _, err := range all {
		if err != errUnfit {
			some = append(some, err)
		}
	}
	return some
}
