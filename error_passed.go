package anser

import "errors"

// PassError returns an error with which a handler that passes calls on passes on the error of a call
// that it has made, as the error of its own call: the code, the message, the details, the outcome and
// the advice. Without it, the outcome of an error that a handler returns is Executed. The error is
// not wrapped in others. nil stays nil.
func PassError(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	return &passedError{e.toCaller()}
}

func (e *passedError) Unwrap() error { return e.fault }
