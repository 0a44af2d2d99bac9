package anser

// verdict says what follows a failed attempt: a set of the flags below, or giveUp.
type verdict uint8

const giveUp verdict = 0

const (
	tryAgain   verdict = 1 << iota // not before the time that the server advised
	afterWait                      // after a random wait
	fromBudget                     // only if the retry budget pays for it
	onlyOnce                       // no attempt follows the next refusal
	sameLife                       // at the instance that knows the idempotency key
)

// failureKind is what an error means for the attempts after it.
type failureKind uint8

const (
	kindFinal       failureKind = iota // no attempt may follow, or none would help
	kindUnreached                      // no connection; another instance may have one
	kindUnreachable                    // no connection to any instance
	kindUnsent                         // anything else that was not sent
	kindUnsuitable                     // not sent: this connection will not take the request later either
	kindMoved                          // the client gave the attempt up for another one, and has paid for it
	kindOverloaded                     // refused by an overloaded server
	kindUnavailable                    // refused by a server that is about to stop
	kindRefused                        // refused for another reason
	kindExecuted                       // the handler returned a code of RetryOn
	kindKeyed                          // it may have run, and has a key by which its instance recognizes it
	kindUnknown                        // it may have run, and is idempotent
	failureKinds
)

// verdicts has the verdict for each kind of failure: if the call has been tried at every instance
// that it may go to, and if there is another one. docs/governance/failmodes.md has the table for
// users.
var verdicts = [failureKinds][2]verdict{
	kindFinal:       {giveUp, giveUp},
	kindUnreached:   {tryAgain, tryAgain},
	kindUnreachable: {tryAgain | afterWait, tryAgain | afterWait},
	kindUnsent:      {tryAgain | afterWait, tryAgain},
	kindUnsuitable:  {giveUp, tryAgain},
	kindMoved:       {tryAgain, tryAgain},
	kindOverloaded:  {tryAgain | afterWait | fromBudget, tryAgain | afterWait | fromBudget},
	kindUnavailable: {tryAgain | afterWait, tryAgain | onlyOnce},
	kindRefused:     {giveUp, tryAgain | onlyOnce},
	kindExecuted:    {tryAgain | afterWait | fromBudget, tryAgain | afterWait | fromBudget},
	kindKeyed:       {tryAgain | afterWait | fromBudget | sameLife, tryAgain | afterWait | fromBudget | sameLife},
	kindUnknown:     {tryAgain | afterWait | fromBudget, tryAgain | fromBudget},
}

// situation is the state of a call whose attempt failed, as far as it decides what follows.
type situation struct {
	failfast bool // the fail mode is Failfast
	over     bool // the call's time is over, or its caller has cancelled it
	bound    bool // the call may go to one instance only: by At, or because that one knows its key
	several  bool // the call may go to any instance, and there are several
	another  bool // the call may go to an instance that it has not tried
	fresh    bool // the attempt before did not fail for lack of a connection, or says nothing about this one
	absent   bool // nothing has listened at the addresses for as long as the call may wait for that
	spent    bool // no attempt is left, or the call is one of a handler that serves a retry
	refused  bool // the call has had the one attempt after a refusal
	repeat   repeatability
	listed   bool // RetryOn has the error's code
}

// repeatability says where a call may be sent again that may have run.
type repeatability uint8

const (
	repeatNowhere repeatability = iota
	repeatByKey                 // at the instance that knows its key
	repeatAnywhere
)

// verdict returns what follows an attempt that failed with err.
func (s *situation) verdict(err *Error) verdict {
	column := 0
	if s.another {
		column = 1
	}
	return verdicts[s.kindOf(err)][column]
}

// kindOf returns the kind of the failure err.
func (s *situation) kindOf(err *Error) failureKind {
	switch {
	case s.failfast, s.over, err.RetryAfter < 0, err.Phase == PhaseDecode:
		return kindFinal
	case err.Outcome != Executed && (err.Code == DeadlineExceeded || err.Code == Canceled):
		return kindFinal // of this call; a handler's may be that of a call it made
	case err.Outcome == NotSent:
		return s.unsentKind(err)
	case err.moved:
		return kindMoved
	case s.spent:
		return kindFinal
	case err.Outcome == Refused:
		return s.refusedKind(err)
	case s.repeat == repeatNowhere, err.Outcome == Executed && (!s.listed || s.repeat == repeatByKey):
		return kindFinal // an instance that knows the key would return the same error
	case err.Outcome == Executed:
		return kindExecuted
	case s.repeat == repeatByKey:
		return kindKeyed
	}
	return kindUnknown
}

// unsentKind is kindOf for an attempt of which nothing was sent.
func (s *situation) unsentKind(err *Error) failureKind {
	dial := err.Phase == PhaseDial
	switch {
	case err.Phase == PhasePick && s.bound:
		return kindFinal // the instance is gone
	case dial && s.several && s.fresh && !err.nowhere:
		return kindUnreached
	case dial && (err.obstacle == lasting || err.obstacle == absent && s.absent):
		return kindFinal
	case dial && s.several:
		return kindUnreachable
	case err.Phase == PhaseWrite && (err.Code == ResourceExhausted || err.Code == Unimplemented):
		return kindUnsuitable // too large a message stays too large
	case err.Code == Unauthenticated && !dial:
		return kindUnsuitable // the identity of a session's client has ended; see clientLapsed
	}
	return kindUnsent
}

// refusedKind is kindOf for an attempt that the server did not run.
func (s *situation) refusedKind(err *Error) failureKind {
	switch {
	case err.Code == ResourceExhausted:
		return kindOverloaded
	case err.Code == Unavailable && (!s.another || !s.refused):
		return kindUnavailable
	case s.refused:
		return kindFinal
	}
	return kindRefused
}
