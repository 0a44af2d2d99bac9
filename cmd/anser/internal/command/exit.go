package command

import (
	"errors"
	"fmt"

	"github.com/anser-rpc/anser"
)

// The exit codes. From exitNotSent on they are the outcome of a call.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotSent  = 3
	exitRefused  = 4
	exitUnknown  = 5
	exitExecuted = 6
)

const exitHelp = `
Exit codes: 0 the call succeeded; 1 something else failed; 2 wrong use; and when the call failed,
3 it was not sent; 4 the server refused it and did not run it; 5 it may have run (the deadline
passed, or the connection was lost); 6 the handler ran and returned the error.`

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// refusedError is a change that was refused because of a concurrent one.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// reportedError has already been shown to the user.
type reportedError struct{ err error }

func (e *reportedError) Error() string { return e.err.Error() }
func (e *reportedError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	if _, ok := errors.AsType[*refusedError](err); ok {
		return exitRefused
	}
	var call *anser.Error
	if !errors.As(err, &call) {
		return exitFailed
	}
	switch call.Outcome {
	case anser.NotSent:
		return exitNotSent
	case anser.Refused:
		return exitRefused
	case anser.Executed:
		return exitExecuted
	}
	return exitUnknown
}
