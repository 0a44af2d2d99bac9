package anser

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

const (
	defaultAttempts = 3

	firstDelay = 50 * time.Millisecond
	maxDelay   = time.Second
)

// attempts decides about the attempts of a call that follow the first one, or about all of them if
// there was no instance to pick. Calls, futures, oneway messages and streams share it. They differ
// in how an attempt is started and how its end is awaited.
type attempts struct {
	c         *Client
	o         *callOptions
	m         *clientMethod
	codec     codec.Codec
	out       any // where the reply goes; with codec, of a call whose goroutine waits for its attempts
	sent      int // attempts of which at least a byte may have been sent
	delays    int // waits so far
	refused   bool
	ran       Outcome   // OutcomeUnknown or Executed after an attempt that was, else 0
	first     *endpoint // of the first attempt
	last      *endpoint // of the last one
	bound     *endpoint // the only one that knows the idempotency key of the call, or nil
	denied    bool      // the budget had no retry left
	since     mono.Time // time of the first attempt that found no connection
	elsewhere bool      // the last attempt found no connection: the next one goes to a connected instance
	tried     []*balance.Endpoint
	list      []AttemptInfo
	by        *answer // gets the attempt that is answered, or nil
}

// newAttempts is not inlined for the sake of the frame of complete.
//
//go:noinline
func newAttempts(c *Client, x *callState, out any) *attempts {
	return &attempts{c: c, o: x.o, m: x.m, codec: x.codec, out: out, by: x.by}
}

// run makes attempts until one succeeds, and decodes its reply. e and err are as for next.
func (a *attempts) run(ctx context.Context, k *call, e *endpoint, err *Error) *Error {
	bounded, cancel := k.bound(ctx)
	defer cancel()
	for {
		if e, err = a.next(bounded, k, e, err); err != nil {
			return err
		}
		a.prepare(bounded, k)
		if err = a.attempt(bounded, k, e); err == nil {
			a.answered(k, e, a.sent)
			return nil
		}
	}
}

// answered records the attempt that was answered.
func (a *attempts) answered(k *call, e *endpoint, attempt int) {
	noteAnswer(a.o, a.by, k, e, attempt)
	if a.by != nil {
		a.by.failed = a.list
	}
	if a.o.inv != nil {
		a.o.inv.picked.failed = a.list
	}
}

// attempt makes an attempt at e, and decodes its reply.
func (a *attempts) attempt(ctx context.Context, k *call, e *endpoint) *Error {
	if err := k.attempt(ctx, e, a.m); err != nil {
		return err
	}
	return k.decode(e, a.codec, a.out)
}

// next returns the endpoint for the next attempt of the call k. The attempt before it failed with
// err at e; both are nil if there was none. next waits for the list of instances, for a connection
// if the last attempt found none, and between attempts. An error is that of the call, which is
// over.
func (a *attempts) next(ctx context.Context, k *call, e *endpoint, err *Error) (*endpoint, *Error) {
	if err != nil {
		a.note(k, e, err)
	}
	for {
		changed := a.c.cluster.Changed() // before the list is read, to notice one that comes meanwhile
		v, fault := a.c.awaitView(ctx)
		if fault != nil {
			if err != nil && err.Outcome != NotSent {
				fault = err // closing the client does not change the outcome of the attempt
			}
			return nil, a.final(fault)
		}
		if a.c.router != nil && len(a.list) == 0 { // there may have been no rules before
			if k.route, fault = a.c.route(ctx, a.m.name, outgoing(ctx)); fault != nil {
				return nil, a.final(fault)
			}
		}
		v = v.ForCall(&a.m.health, k.route)
		if err != nil {
			changed = a.c.cluster.Changed() // a change by the attempt itself is no reason to hurry
		} else if e, err = a.pick(ctx, k, v); err == nil {
			return e, nil
		}
		wait, again := a.decide(ctx, err, v)
		if !again {
			if err.Outcome == NotSent && err.Phase == PhaseDial && isGivenUp(ctx, err) {
				err = givenUp(ctx, err)
			}
			return nil, a.final(err)
		}
		if a.bound != nil && !k.again {
			k.kept, k.again = keptKey{}, true
			if k.unsure {
				k.kept = k.sent
			}
		}
		if wait > 0 && !a.pause(ctx, wait, changed, v, err) {
			if errors.Is(ctx.Err(), context.Canceled) {
				err = givenUp(ctx, err)
			}
			return nil, a.final(err)
		}
		err = nil
	}
}

// prepare completes the request of k for another attempt.
func (a *attempts) prepare(ctx context.Context, k *call) {
	k.frame[attemptOffset] = uint8(min(int(a.o.earlier)+a.sent, wire.MaxAttempt))
	k.shrinkTimeout(ctx)
	if a.sent+1 >= a.o.attempts {
		k.mover = nil // there is no attempt left
	}
	k.beginLate(mono.Now())
}

// decide says whether the call may be tried again after err, and after which wait.
func (a *attempts) decide(ctx context.Context, err *Error, view *view) (wait time.Duration, again bool) {
	s := a.situation(ctx, err, view)
	a.elsewhere = a.free() && err.Outcome == NotSent && err.Phase == PhaseDial
	v := s.verdict(err)
	if v&onlyOnce != 0 {
		a.refused = true
	}
	if v&sameLife != 0 {
		a.bound = a.last
	}
	if v&afterWait != 0 {
		wait = a.delay()
	}
	again = v&tryAgain != 0
	if v&fromBudget != 0 {
		again = a.c.budget.Withdraw(mono.Now())
		a.denied = !again
	}
	// The random wait comes on top of the server's advice: calls that were refused together with
	// the same advice must not come back together.
	return wait + max(err.RetryAfter, 0), again
}

// situation returns what decides about the call after err.
func (a *attempts) situation(ctx context.Context, err *Error, view *view) situation {
	s := newSituation(a.o, a.m, err)
	free := a.free()
	s.over = ctx.Err() != nil
	s.bound = a.o.pinned || a.bound != nil
	s.several = free && view.Total > 1
	s.another = free && a.untried(view)
	// A stream may fail to get a connection of its own from a connected instance: each instance is
	// tried once without a wait.
	s.fresh = !a.elsewhere || s.another && err.cause != nil
	s.absent = a.absent(err)
	s.spent = a.sent >= a.o.attempts || parentRetried(ctx)
	s.refused = a.refused
	return s
}

// newSituation returns the situation of a call with other instances to go to and attempts left.
func newSituation(o *callOptions, m *clientMethod, err *Error) situation {
	s := situation{failfast: o.mode == Failfast, several: true, another: true, fresh: true, listed: slices.Contains(o.retryOn, err.Code)}
	switch {
	case o.keyed:
		s.repeat = repeatByKey
	case m.mayRunTwice(o):
		s.repeat = repeatAnywhere
	}
	return s
}

// isFinal reports whether no attempt follows the first one of a call, which failed with err.
func isFinal(err *Error, o *callOptions, m *clientMethod) bool {
	s := newSituation(o, m, err)
	s.spent = o.attempts <= 1
	return s.verdict(err) == giveUp
}

// free reports whether the call may go to any instance.
func (a *attempts) free() bool { return a.o.mode.elsewhere() && !a.o.pinned && a.bound == nil }

// absentFor is how long a call is tried whose client has never reached an instance, if nothing
// listens at the fixed addresses: the server may be about to start. Where an instance was reached,
// it may be about to come back.
const absentFor = 2 * time.Second

// absent reports whether that time is over, which begins when an attempt first finds no connection.
func (a *attempts) absent(err *Error) bool {
	if err.Outcome != NotSent || err.Phase != PhaseDial {
		return false
	}
	now := mono.Now()
	if a.since == 0 {
		a.since = now
	}
	return a.c.source.resolver == nil && !a.c.cluster.Met() && now.Sub(a.since) >= absentFor
}

// untried reports whether the view has an endpoint that this call has not used.
func (a *attempts) untried(v *view) bool {
	return (v.Usable == 1 || len(a.tried) < maxAttempts) && v.HasOther(a.tried)
}

// delay is full jitter: a random part of a bound that doubles.
func (a *attempts) delay() time.Duration {
	bound := min(firstDelay<<min(a.delays, 10), maxDelay)
	a.delays++
	return time.Duration(rand.Int64N(int64(bound))) + time.Millisecond
}

// note records the attempt of k at e, which failed with err.
func (a *attempts) note(k *call, e *endpoint, err *Error) {
	outcome := err.Outcome
	if err.mayHaveRun {
		outcome = OutcomeUnknown
	}
	if outcome != NotSent {
		a.sent++
	}
	if a.ran != OutcomeUnknown && (outcome == OutcomeUnknown || outcome == Executed) {
		a.ran = outcome
	}
	if e == nil {
		return
	}
	if a.first == nil {
		a.first = e
	}
	a.last = e
	notePick(a.o, a.by, k)
	late := err.Phase == PhaseDial && err.cause == nil // it may still be the first one to connect
	if !late && !slices.Contains(a.tried, e.Endpoint) && len(a.tried) < maxAttempts {
		a.tried = append(a.tried, e.Endpoint)
	}
	if len(a.list) < maxNotedAttempts {
		a.list = append(a.list, AttemptInfo{
			Address: e.Instance().Address, Code: err.Code, Outcome: outcome, Reason: k.pick.Reason, Duration: mono.Since(k.began), Message: err.Message,
		})
	}
}

const maxNotedAttempts = 16

// parentRetried reports whether ctx belongs to a handler that serves a retry: the chain of
// retries stops there.
func parentRetried(ctx context.Context) bool {
	c := servedFrom(ctx)
	return c != nil && c.isRetry()
}

// isGivenUp reports whether a call without a connection ends because of ctx and not because of err:
// its caller has cancelled it at the moment when the attempt or a pause ended, or its deadline has
// passed and the connection was merely late.
func isGivenUp(ctx context.Context, err *Error) bool {
	return errors.Is(ctx.Err(), context.Canceled) || ctx.Err() != nil && err.cause == nil
}

// givenUp is the error of a call that ended with ctx after an attempt that failed with err.
func givenUp(ctx context.Context, err *Error) *Error {
	e := contextFailure(ctx, err.Outcome, err.Phase)
	e.Message += " before another attempt; the last one: " + err.Message
	e.Address = err.Address
	return e
}

// pick returns the endpoint for an attempt.
func (a *attempts) pick(ctx context.Context, k *call, v *view) (*endpoint, *Error) {
	cl := a.c.cluster
	switch {
	case a.o.pinned:
		if e := cl.Find(a.o.at); e != nil {
			k.pick.Reason = balance.PickedByCaller
			return e, nil
		}
		return nil, failure(Unavailable, NotSent, PhasePick, nil, "no instance with the key %q is known, and anser.At lets the call go to no other", a.o.at)
	case v.Total == 0:
		return nil, a.c.noInstance(k.route)
	case a.bound != nil && !cl.Has(a.bound):
		return nil, failure(Unavailable, NotSent, PhasePick, nil, "the instance %s, which alone knows the idempotency key, is gone", a.bound.Instance().Address)
	case a.bound != nil:
		k.settled, k.pick.Reason = true, balance.PickedAgain
		return a.bound, nil
	case a.o.mode == Failtry && a.first != nil && cl.Has(a.first):
		k.pick.Reason = balance.PickedAgain
		return a.first, nil
	case a.elsewhere && v.Total > 1:
		e, err := a.c.reach(ctx, k, a.m, a.tried)
		k.pick.Reason = balance.PickedConnected
		return e, err
	}
	k.pick.Method, k.pick.Tried = a.m.name, nil
	if a.o.mode.elsewhere() {
		k.pick.Tried = a.tried
	}
	e := v.Pick(&k.pick)
	k.pick.Tried = nil
	if e == nil {
		return nil, failure(Unavailable, NotSent, PhasePick, nil, "no instance of %q can be picked", a.c.serviceName())
	}
	return e, nil
}

// pause waits before the next attempt; a change of the instances ends the wait of a call that was
// not sent. It reports whether there is time for the next attempt.
func (a *attempts) pause(ctx context.Context, wait time.Duration, changed <-chan struct{}, v *view, err *Error) bool {
	if !a.elsewhere || v.Total < 2 { // else the next attempt makes connections
		a.c.cluster.RedialNow()
	}
	if err.Outcome != NotSent {
		changed = nil
	}
	began := mono.Now()
	t := time.NewTimer(wait)
	defer t.Stop()
	defer func() {
		if n := len(a.list); n > 0 {
			a.list[n-1].Pause += mono.Since(began)
		}
	}()
	select {
	case <-t.C:
	case <-changed:
	case <-a.c.ctx.Done(): // the next attempt finds the client closed
	case <-ctx.Done():
		return false
	}
	if !a.untried(v) {
		a.tried = a.tried[:0]
	}
	return true
}

// final completes the error of a call that is given up.
func (a *attempts) final(err *Error) *Error {
	if a.ran != 0 && err.Outcome != Executed {
		err.Outcome = a.ran // the last attempt did not run, or its outcome is unknown; an earlier attempt ran
	}
	// If a handler makes this call, its caller should not retry that one: retries have failed
	// here, or the budget allows no more because too many calls fail. See handlerError.
	err.spent = a.sent > 1 || a.denied
	err.Attempt = max(len(a.list)-1, 0)
	if len(a.list) > 1 {
		err.Attempts = a.list
	}
	return err
}
