package anser

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/wire"
)

// Code classifies the error of a call; names and numbers are those of gRPC. A Code is itself an
// error: errors.Is(err, anser.NotFound) works, and a handler may return a Code.
type Code uint8

// The codes.
const (
	OK                 = Code(wire.OK)
	Canceled           = Code(wire.Canceled)
	Unknown            = Code(wire.Unknown)
	InvalidArgument    = Code(wire.InvalidArgument)
	DeadlineExceeded   = Code(wire.DeadlineExceeded)
	NotFound           = Code(wire.NotFound)
	AlreadyExists      = Code(wire.AlreadyExists)
	PermissionDenied   = Code(wire.PermissionDenied)
	ResourceExhausted  = Code(wire.ResourceExhausted)
	FailedPrecondition = Code(wire.FailedPrecondition)
	Aborted            = Code(wire.Aborted)
	OutOfRange         = Code(wire.OutOfRange)
	Unimplemented      = Code(wire.Unimplemented)
	Internal           = Code(wire.InternalError)
	Unavailable        = Code(wire.Unavailable)
	DataLoss           = Code(wire.DataLoss)
	Unauthenticated    = Code(wire.UnauthenticatedCall)
)

var codeNames = [...]string{
	"ok", "canceled", "unknown", "invalid argument", "deadline exceeded", "not found", "already exists",
	"permission denied", "resource exhausted", "failed precondition", "aborted", "out of range",
	"unimplemented", "internal", "unavailable", "data loss", "unauthenticated",
}

// String returns the code in words, such as "not found".
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Error returns the same as String; it makes a Code a target for errors.Is.
func (c Code) Error() string { return c.String() }

// MarshalText returns the code in words, for JSON and logs.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (c *Code) UnmarshalText(text []byte) error { return parseName(c, codeNames[:], "code", text) }

// parseName sets n to the number of a name, or to that of "KIND NUMBER".
func parseName[N ~uint8](n *N, names []string, kind string, text []byte) error {
	if i := slices.Index(names, string(text)); i >= 0 {
		*n = N(i)
		return nil
	}
	number, ok := strings.CutPrefix(string(text), kind+" ")
	i, err := strconv.ParseUint(number, 10, 8)
	if !ok || err != nil {
		return fmt.Errorf("unknown %s %q: want one of %q", kind, text, names)
	}
	*n = N(i)
	return nil
}

// Outcome says whether a call that failed may have run. It decides whether the call may be sent
// again.
type Outcome uint8

// The outcomes.
const (
	// NotSent: no byte of the request was handed to the transport.
	NotSent = Outcome(wire.NotSent)
	// Refused: the server states that it did not run the call.
	Refused = Outcome(wire.Refused)
	// OutcomeUnknown: bytes were written, and then the connection was lost, the deadline passed or
	// the caller cancelled. The call may have run.
	OutcomeUnknown = Outcome(wire.OutcomeUnknown)
	// Executed: the handler ran and returned the error.
	Executed = Outcome(wire.Executed)
)

var outcomeNames = [...]string{"not sent", "refused", "unknown", "executed"}

// String returns the outcome in words.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// MarshalText returns the outcome in words, for JSON and logs.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (o *Outcome) UnmarshalText(text []byte) error {
	return parseName(o, outcomeNames[:], "outcome", text)
}

// Phase is the step of a call at which it failed.
type Phase uint8

// The phases of a call.
const (
	PhaseNone    Phase = iota // the error did not come from a call
	PhaseEncode               // encoding the request
	PhaseResolve              // waiting for the list of instances
	PhasePick                 // choosing an instance
	PhaseDial                 // connecting
	PhaseWrite                // writing the request
	PhaseWait                 // waiting for the reply
	PhaseDecode               // decoding the reply
)

var phaseNames = [...]string{"", "encode", "resolve", "pick", "dial", "write", "wait", "decode"}

// String returns the phase in one word, or "" for PhaseNone.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}
