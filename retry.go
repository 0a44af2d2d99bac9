package anser

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
)

const (
	defaultAttempts = 3
	maxAttempts     = 5
	firstDelay      = 50 * time.Millisecond
	maxDelay        = time.Second
)

// retrying is the state of a call whose first attempt failed.
type retrying struct {
	c        *Client
	o        *callOptions
	m        *clientMethod
	codec    codec.Codec
	out      any // where the reply goes
	sent     int // attempts of which at least a byte may have been sent
	delays   int // waits so far
	refused  bool
	ran      Outcome   // OutcomeUnknown or Executed after an attempt that was, else 0
	first    *endpoint // of the first attempt
	last     *endpoint // of the last one
	bound    *endpoint // that alone knows what became of the call, or nil
	denied   bool      // the budget had no retry left
	tried    []*balance.Endpoint
	attempts []AttemptInfo
}

// decide says whether the call may be tried again after err, and after which wait.
func (r *retrying) decide(ctx context.Context, err *Error, view *view) (wait time.Duration, again bool) {
	if r.o.mode == Failfast || ctx.Err() != nil || err.RetryAfter < 0 || err.Phase == PhaseDecode {
		return 0, false
	}
	if err.Outcome != Executed && (err.Code == DeadlineExceeded || err.Code == Canceled) {
		return 0, false // of this call; a handler's may be that of a call it made
	}
	if err.Phase == PhasePick && (r.o.pinned || r.bound != nil) {
		return 0, false // the one instance to which it may go is gone
	}
	another := r.o.mode.elsewhere() && !r.o.pinned && r.bound == nil && r.untried(view)
	if err.Outcome == NotSent {
		if (err.Code == ResourceExhausted || err.Code == Unimplemented) && err.Phase == PhaseWrite && !another {
			return 0, false // too large a message stays too large
		}
		if another {
			return 0, true
		}
		return r.delay(), true
	}
	if r.sent >= r.o.attempts || parentRetried(ctx) {
		return 0, false
	}
	switch err.Outcome {
	case Refused:
		switch {
		case err.Code == ResourceExhausted:
			wait = r.delay()
		case err.Code == Unavailable && !another:
			return max(r.delay(), err.RetryAfter), true
		case r.refused || !another:
			return 0, false
		default:
			r.refused = true
			return err.RetryAfter, true
		}
	case Executed:
		if !r.m.repeatable(r.o) || !slices.Contains(r.o.retryOn, err.Code) {
			return 0, false
		}
		wait = r.delay()
	default:
		if !r.m.repeatable(r.o) {
			return 0, false
		}
		if !r.m.idempotent(r.o) {
			// Only the instance that may have run the call knows its key.
			r.bound, another = r.last, false
		}
		if !another {
			wait = r.delay()
		}
	}
	again = r.c.budget.withdraw(nanotime())
	r.denied = !again
	return max(wait, err.RetryAfter), again
}

// untried reports whether the view has an endpoint that this call has not used.
func (r *retrying) untried(v *view) bool {
	if v.only != nil {
		return !slices.Contains(r.tried, v.only.Endpoint)
	}
	return v.usable > 0 && len(r.tried) < maxAttempts && func() bool {
		for e := range v.byPick {
			if !slices.Contains(r.tried, e) {
				return true
			}
		}
		return false
	}()
}

// delay is full jitter: a random part of a bound that doubles.
func (r *retrying) delay() time.Duration {
	bound := min(firstDelay<<min(r.delays, 10), maxDelay)
	r.delays++
	return time.Duration(rand.Int64N(int64(bound))) + time.Millisecond
}

// note enters an attempt that began at a nanotime and failed with err.
func (r *retrying) note(e *endpoint, err *Error, began int64) {
	if err.Outcome != NotSent {
		r.sent++
	}
	if r.ran != OutcomeUnknown && (err.Outcome == OutcomeUnknown || err.Outcome == Executed) {
		r.ran = err.Outcome
	}
	if e == nil {
		return
	}
	if r.first == nil {
		r.first = e
	}
	r.last = e
	if !slices.Contains(r.tried, e.Endpoint) && len(r.tried) < maxAttempts {
		r.tried = append(r.tried, e.Endpoint)
	}
	if len(r.attempts) < maxNotedAttempts {
		r.attempts = append(r.attempts, AttemptInfo{e.Instance().Address, err.Outcome, time.Duration(nanotime() - began), err.Message})
	}
}

const maxNotedAttempts = 16

// parentRetried reports whether ctx belongs to a handler that serves a retry: the chain of
// retries stops there.
func parentRetried(ctx context.Context) bool {
	c := callFrom(ctx)
	return c != nil && c.attempt > 0
}
