package anser

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/codec"
)

// misfit returns why the codec cannot carry all of the messages, which are pointers. It returns nil
// if the codec can, or if that is unknown.
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

// ownCodec returns the codec that the messages bring, or nil. out may be nil.
func ownCodec(in, out any) codec.Codec {
	m, ok := in.(codec.Own)
	if !ok {
		return nil
	}
	own := m.OwnCodec()
	if f, ok := own.(codec.Fitter); ok && (!f.Fits(in) || out != nil && !f.Fits(out)) {
		return nil
	}
	return own
}

// reasons returns the errors other than errUnfit.
func reasons(all []error) []error {
	var some []error
	for _, err := range all {
		if err != errUnfit {
			some = append(some, err)
		}
	}
	return some
}

// errUnfit is the reason of codecs that give none: they are for other kinds of types.
var errUnfit = errors.New("the type does not fit")
