package anser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/wire"
)

// Error is the error of a call, on both sides. A handler returns one (see [Errorf]) to choose the
// code and details that its caller sees. The client returns one for every failed call, with what it
// knows about the attempts. The exported fields must not be changed after the error was returned.
type Error struct {
	Code    Code
	Outcome Outcome
	Message string
	Details []byte // opaque data that the handler attached

	// RetryAfter is the server's advice: the time to wait before another attempt. A negative value
	// means not to retry; 0 means no advice.
	RetryAfter time.Duration

	// The client fills in the following fields.

	Method   string
	Remote   bool          // the server stated the error
	Address  string        // address of the instance of the last attempt
	Attempt  int           // number of the last attempt, from 0
	Phase    Phase         // phase at which the last attempt failed
	Attempts []AttemptInfo // all attempts, oldest first, if there was more than one

	cause error
	spent bool  // retries have failed, or the retry budget was exhausted; see handlerError
	limit limit // the limit that the refused call exceeded, or noLimit

	moved bool // the attempt was given up for another one, which the budget has paid for

	// Of an attempt that found no connection.
	obstacle   obstacle
	nowhere    bool // no instance that the call may go to can be reached
	mayHaveRun bool // the call went out with the first bytes of a connection that was not made
}

// AttemptInfo describes one attempt of a failed call.
type AttemptInfo struct {
	Address  string
	Outcome  Outcome
	Duration time.Duration
	Message  string
	Code     Code
	Reason   balance.Reason // why the instance was picked
	Pause    time.Duration  // until the next attempt
}

// RetryNever as [Error.RetryAfter] tells the caller not to retry.
const RetryNever time.Duration = -1

// Errorf returns an error for a handler to return. Like fmt.Errorf it wraps the operands of %w.
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

// Error returns the method, the instance, the cause, the outcome and the attempts of the call.
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

// Is reports whether target is the code of e, so that errors.Is(err, anser.NotFound) works. A call
// that ended with its context also matches context.DeadlineExceeded or context.Canceled.
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

// Unwrap returns the cause of the error on this side, or nil.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of err: OK for nil, the code of the first *Error or Code in its chain,
// DeadlineExceeded or Canceled for the errors of package context, and otherwise Unknown.
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

// OutcomeOf returns the outcome of err: that of the first *Error in its chain, and otherwise
// OutcomeUnknown. The result for a nil error has no meaning.
func OutcomeOf(err error) Outcome {
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return OutcomeUnknown
}

// failure returns an error of this side.
func failure(code Code, outcome Outcome, phase Phase, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Outcome: outcome, Phase: phase, Message: fmt.Sprintf(format, args...), cause: cause}
}

// refusal returns an error that states that the server did not run the call.
func refusal(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Outcome: Refused, Message: fmt.Sprintf(format, args...)}
}

// handlerError returns the error to send for err, which a handler or a server interceptor returned.
func handlerError(err error) *Error {
	if forwarded, ok := err.(*forwardedError); ok { // nothing wraps it
		return forwarded.fault
	}
	out := &Error{Code: CodeOf(err), Outcome: Executed, Message: err.Error(), cause: err}
	var e *Error
	if errors.As(err, &e) {
		out.Details = e.Details
		// The advice or refusal of a downstream call (which has a method) concerns that call: the
		// call of this handler did run.
		if e.Method == "" {
			out.RetryAfter = e.RetryAfter
			if e.Outcome == Refused {
				out.Outcome = Refused
			}
		} else if e.spent || e.RetryAfter < 0 {
			// But if retries of that call have failed, or were given up, retries further up only
			// make it worse: with three callers in a chain that try three times each, the last
			// server gets 27 calls for one.
			out.RetryAfter = RetryNever
		}
	}
	return out
}

// Refuse returns an error with which a server interceptor states that the call did not run, so that
// the caller may send it to another instance. A handler must not return it.
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

// remoteError returns the error of a call for an error received from the peer.
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

// streamContextFailure returns the error of a stream whose context has ended.
func streamContextFailure(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure(DeadlineExceeded, OutcomeUnknown, PhaseWait, ctx.Err(), "the deadline of the stream passed before its end")
	}
	return failure(Canceled, OutcomeUnknown, PhaseWait, ctx.Err(), "the context was cancelled")
}

// clientLapsed returns the error of a call of a server to a client that must not get it.
func clientLapsed(outcome Outcome) *Error {
	return failure(Unauthenticated, outcome, PhaseWrite, nil,
		"the identity of the client has ended: it receives nothing until it renews its credential")
}

// obstacle says why a client cannot reach an instance, as far as it affects how long calls keep
// trying; see decision 38.
type obstacle uint8

const (
	passing obstacle = iota // temporary, or unknown
	absent                  // nothing listens at the address
	lasting                 // the listener there is not a server that this client can use
)

// contextFailure returns the error of a call whose context ended first.
func contextFailure(ctx context.Context, outcome Outcome, phase Phase) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if phase == PhaseWait {
			return failure(DeadlineExceeded, outcome, phase, ctx.Err(), "no reply before the deadline of the context")
		}
		return failure(DeadlineExceeded, outcome, phase, ctx.Err(), "the deadline of the call has passed")
	}
	return failure(Canceled, outcome, phase, ctx.Err(), "the context was cancelled")
}

// isOver reports whether the deadline of ctx has passed; it is sent with each call.
func isOver(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return bounded && errors.Is(ctx.Err(), context.DeadlineExceeded)
}
