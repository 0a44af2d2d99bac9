package anser

import "errors"

// ForwardError returns err, the error of a call that a handler has made, as the error of the
// handler's own call. The caller gets its code, message, details, outcome and advice about retries;
// the outcome of any other error that a handler returns is Executed. A handler must return the
// result as it is, without wrapping it. ForwardError(nil) is nil.
func ForwardError(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	return &forwardedError{e.toCaller()}
}

// forwardedError is an error that a caller gets as it is, and not as that of a handler.
type forwardedError struct{ fault *Error }

func (e *forwardedError) Error() string { return e.fault.Error() }

func (e *forwardedError) Unwrap() error { return e.fault }

// toCaller returns an error of a call that was forwarded as the error for its caller. Nothing ran
// if the call was not sent.
func (e *Error) toCaller() *Error {
	out := &Error{Code: e.Code, Outcome: e.Outcome, Message: e.Message, Details: e.Details, RetryAfter: e.RetryAfter, cause: e, limit: e.limit}
	if out.Outcome == NotSent {
		out.Outcome = Refused
	}
	if !e.Remote {
		out.Message = e.forwardedText()
	}
	if e.spent && out.RetryAfter == 0 {
		out.RetryAfter = RetryNever // see handlerError
	}
	return out
}

// forwardedText returns the text of an error for the caller of a call that was forwarded. Errors of
// connections contain addresses behind this server, which are not for callers.
func (e *Error) forwardedText() string {
	switch unavailable := e.Code == Unavailable; {
	case e.Phase == PhaseNone: // of this server
		return e.Message
	case unavailable && e.Outcome == NotSent && e.Phase != PhasePick:
		return "the call was to be forwarded, and no server behind this one takes it now"
	case unavailable && e.cause != nil:
		return "the call was forwarded, and the connection was lost before the answer"
	}
	return "the call was forwarded: " + e.Message
}
