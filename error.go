package anser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anser-rpc/anser/wire"
)

// Error is the error of a call, on both sides. A handler returns one (see [Errorf]) to choose the
// code and details that its caller sees; the client returns one for every call that failed, with what
// it knows of the way the call took. The exported fields must not be changed once it was returned.
type Error struct {
	Code    Code
	Outcome Outcome
	Message string
	Details []byte // opaque to Anser: what the handler attached

	// RetryAfter is the server's advice: wait this long before another attempt. Negative: do
	// not try again. 0: no advice.
	RetryAfter time.Duration

	// What follows is filled in by the client.

	Method   string
	Remote   bool          // the error was stated by the server
	Address  string        // of the instance of the last attempt
	Attempt  int           // number of the last attempt, from 0
	Phase    Phase         // how far the last attempt came
	Attempts []AttemptInfo // all attempts, oldest first, if there was more than one

	cause error
	spent bool  // attempts were made in vain, or the budget had none left; see handlerError
	limit limit // which one the refused call is over, if it is over one

	moved bool // the attempt was given up for another one, which the budget has paid for

	// Of an attempt for which there was no connection.
	obstacle obstacle
	nowhere  bool // no instance to which the call may go can be reached
}

// AttemptInfo tells one attempt of a call that failed.
type AttemptInfo struct {
	Address  string
	Outcome  Outcome
	Duration time.Duration
	Message  string
}

// RetryNever as [Error.RetryAfter] tells the caller not to try again.
const RetryNever time.Duration = -1

// Errorf makes an error for a handler to return. Like fmt.Errorf it wraps the operands of %w.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Outcome: Executed, Message: err.Error(), cause: errors.Unwrap(err)}
}

// WithDetails sets Details and returns e, for use in a return statement.
func (e *Error) WithDetails(details []byte) *Error {
	e.Details = details
	return e
}

// WithRetryAfter sets RetryAfter and returns e, for use in a return statement.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

// Error tells the call, where it went, what happened and what became of it.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	if e.Method == "" {
		return e.Message
	}
	var b strings.Builder
	fmt.Fprintf(&b, "call %s", e.Method)
	if e.Address != "" {
		fmt.Fprintf(&b, " at %s", e.Address)
	}
	fmt.Fprintf(&b, ": %s (%s, %s)", e.Message, e.Code, e.describeOutcome())
	if len(e.Attempts) > 1 {
		fmt.Fprintf(&b, " after %d attempts:", len(e.Attempts))
		for i, a := range e.Attempts {
			if i == maxListedAttempts {
				fmt.Fprintf(&b, " and %d more;", len(e.Attempts)-i)
				break
			}
			fmt.Fprintf(&b, " %s %s after %s;", a.Address, a.Outcome, a.Duration.Round(10*time.Microsecond))
		}
		return strings.TrimSuffix(b.String(), ";")
	}
	return b.String()
}

const maxListedAttempts = 5

func (e *Error) describeOutcome() string {
	switch e.Outcome {
	case NotSent:
		return "not sent"
	case Refused:
		return "refused, did not run"
	case Executed:
		return "executed"
	default:
		return "may have run"
	}
}

// Is reports whether target is e's code, so that errors.Is(err, anser.NotFound) works. A call that
// ended by its context also matches context.DeadlineExceeded or context.Canceled.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Code:
		return e.Code == t
	case *Error:
		return e == t
	}
	return e.Code == DeadlineExceeded && target == context.DeadlineExceeded ||
		e.Code == Canceled && target == context.Canceled
}

// Unwrap returns what caused the error on this side, if anything did.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of err: OK for nil, that of the first *Error or Code in its chain,
// DeadlineExceeded and Canceled for the context's errors, else Unknown.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var c Code
	switch {
	case errors.As(err, &c):
		return c
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Unknown
}

// OutcomeOf returns the outcome of err: that of the first *Error in its chain, else OutcomeUnknown.
// It makes no sense for a nil error.
func OutcomeOf(err error) Outcome {
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return OutcomeUnknown
}

// failure makes an error of this side.
func failure(code Code, outcome Outcome, phase Phase, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Outcome: outcome, Phase: phase, Message: fmt.Sprintf(format, args...), cause: cause}
}

// refusal makes an error by which a server says that it did not run a call.
func refusal(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Outcome: Refused, Message: fmt.Sprintf(format, args...)}
}

// handlerError turns what a handler or a server's interceptor returned into what goes over the wire.
func handlerError(err error) *Error {
	out := &Error{Code: CodeOf(err), Outcome: Executed, Message: err.Error(), cause: err}
	var e *Error
	if errors.As(err, &e) {
		out.Details = e.Details
		// Advice and refusals of a downstream call (which has a method) concern that call: for the
		// caller of this handler it ran.
		if e.Method == "" {
			out.RetryAfter = e.RetryAfter
			if e.Outcome == Refused {
				out.Outcome = Refused
			}
		} else if e.spent || e.RetryAfter < 0 {
			// But where that call was tried again in vain, or not any more, doing so above it only makes it
			// worse: with three callers above each other that try three times each, the last one would get 27 calls for one.
			out.RetryAfter = RetryNever
		}
	}
	return out
}

// Refuse makes an error by which a server's interceptor states that the call did not run, so that
// its caller may send it elsewhere. A handler must not return it.
func Refuse(code Code, format string, args ...any) *Error {
	return refusal(code, format, args...)
}

func (e *Error) body() wire.ErrorBody {
	b := wire.ErrorBody{Code: wire.Code(e.Code), Outcome: wire.Outcome(e.Outcome), Message: e.Message, Details: e.Details}
	switch {
	case e.RetryAfter < 0:
		b.RetryAfter = wire.RetryNever
	case e.RetryAfter > 0:
		b.RetryAfter = uint32(min(max(e.RetryAfter.Milliseconds(), 1), wire.RetryNever-1))
	}
	if b.Code == wire.OK {
		b.Code = wire.Unknown
	}
	return b
}

// remoteError turns what came over the wire into the error of a call.
func remoteError(b *wire.ErrorBody) *Error {
	e := &Error{
		Code: Code(b.Code), Outcome: Outcome(b.Outcome), Message: b.Message,
		Remote: true, Phase: PhaseWait,
	}
	if len(b.Details) > 0 {
		e.Details = append([]byte(nil), b.Details...)
	}
	switch b.RetryAfter {
	case 0:
	case wire.RetryNever:
		e.RetryAfter = RetryNever
	default:
		e.RetryAfter = time.Duration(b.RetryAfter) * time.Millisecond
	}
	return e
}

// streamContextFailure tells that the context of a stream has ended.
func streamContextFailure(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure(DeadlineExceeded, OutcomeUnknown, PhaseWait, ctx.Err(), "the time of the stream was over before its end")
	}
	return failure(Canceled, OutcomeUnknown, PhaseWait, ctx.Err(), "the context was cancelled")
}

// clientLapsed is the error of a call of a server to a client that must not get it.
func clientLapsed(outcome Outcome) *Error {
	return failure(Unauthenticated, outcome, PhaseWrite, nil,
		"the identity of the client has ended: it gets nothing until it renews its credential")
}

// obstacle says what keeps a client from an instance, as far as it decides for how long calls try; see decision 38.
type obstacle uint8

const (
	passing obstacle = iota // or unknown
	absent                  // nothing listens at the address
	lasting                 // what listens there is not a server that this client can use
)

// contextFailure tells that the caller's context ended first.
func contextFailure(ctx context.Context, outcome Outcome, phase Phase) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if phase == PhaseWait {
			return failure(DeadlineExceeded, outcome, phase, ctx.Err(), "no reply within the time of the context")
		}
		return failure(DeadlineExceeded, outcome, phase, ctx.Err(), "the call's time is over")
	}
	return failure(Canceled, outcome, phase, ctx.Err(), "the context was cancelled")
}

// isOver reports whether the deadline of ctx has passed, which travels with each call.
func isOver(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return bounded && errors.Is(ctx.Err(), context.DeadlineExceeded)
}
