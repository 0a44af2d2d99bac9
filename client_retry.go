package anser

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

const (
	defaultAttempts = 3

	firstDelay = 50 * time.Millisecond
	maxDelay   = time.Second
)

// retrying is the state of a call whose first attempt failed.
type retrying struct {
	c         *Client
	o         *callOptions
	m         *clientMethod
	codec     codec.Codec
	out       any // where the reply goes
	sent      int // attempts of which at least a byte may have been sent
	delays    int // waits so far
	refused   bool
	ran       Outcome   // OutcomeUnknown or Executed after an attempt that was, else 0
	first     *endpoint // of the first attempt
	last      *endpoint // of the last one
	bound     *endpoint // that alone knows what became of the call, or nil
	denied    bool      // the budget had no retry left
	since     int64     // nanotime of the first failure
	elsewhere bool      // the last attempt found no connection: the next one goes where one stands
	tried     []*balance.Endpoint
	attempts  []AttemptInfo
}

// newRetrying is not inlined for the sake of the frame of answer.
//
//go:noinline
func newRetrying(c *Client, x *callState, out any) *retrying {
	return &retrying{c: c, o: x.o, m: x.m, codec: x.codec, out: out}
}

// decide says whether the call may be tried again after err, and after which wait.
func (r *retrying) decide(ctx context.Context, err *Error, view *view) (wait time.Duration, again bool) {
	s := r.situation(ctx, err, view)
	r.elsewhere = r.free() && err.Outcome == NotSent && err.Phase == PhaseDial
	v := s.verdict(err)
	if v&onlyOnce != 0 {
		r.refused = true
	}
	if v&sameLife != 0 {
		r.bound = r.last
	}
	if v&afterWait != 0 {
		wait = r.delay()
	}
	again = v&tryAgain != 0
	if v&fromBudget != 0 {
		again = r.c.budget.Withdraw(nanotime())
		r.denied = !again
	}
	return max(wait, err.RetryAfter), again
}

// situation returns what decides about the call after err.
func (r *retrying) situation(ctx context.Context, err *Error, view *view) situation {
	s := newSituation(r.o, r.m, err)
	free := r.free()
	s.over = ctx.Err() != nil
	s.bound = r.o.pinned || r.bound != nil
	s.several = free && view.total > 1
	s.another = free && r.untried(view)
	// A stream may fail to get a connection of its own where another one is: that is tried once at each
	// instance without a wait.
	s.fresh = !r.elsewhere || s.another && err.cause != nil
	s.absent = r.absent(err)
	s.spent = r.sent >= r.o.attempts || parentRetried(ctx)
	s.refused = r.refused
	return s
}

// newSituation returns the situation of a call with other instances to go to and attempts left.
func newSituation(o *callOptions, m *clientMethod, err *Error) situation {
	s := situation{failfast: o.mode == Failfast, several: true, another: true, fresh: true, listed: slices.Contains(o.retryOn, err.Code)}
	switch {
	case m.idempotent(o):
		s.repeat = repeatAnywhere
	case o.keyed:
		s.repeat = repeatByKey
	}
	return s
}

// free reports whether the call may go to any instance.
func (r *retrying) free() bool { return r.o.mode.elsewhere() && !r.o.pinned && r.bound == nil }

// absentFor is for how long a call is tried whose client has never reached an instance, and at whose fixed addresses nothing
// listens. The server may be about to start; once an instance was there, it may be about to come back.
const absentFor = 2 * time.Second

// absent reports whether that time is over. It begins with the first attempt that found no connection.
func (r *retrying) absent(err *Error) bool {
	if err.Outcome != NotSent || err.Phase != PhaseDial {
		return false
	}
	now := nanotime()
	if r.since == 0 {
		r.since = now
	}
	return r.c.source.resolver == nil && !r.c.cluster.met.Load() && now-r.since >= int64(absentFor)
}

// redialNow has connections made that wait for their turn, if the next attempt does not see to that itself.
func (r *retrying) redialNow(v *view) {
	if !r.elsewhere || v.total < 2 {
		r.c.cluster.redialNow()
	}
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
	late := err.Phase == PhaseDial && err.cause == nil // it may be the first one to connect all the same
	if !late && !slices.Contains(r.tried, e.Endpoint) && len(r.tried) < maxAttempts {
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
	c := servedFrom(ctx)
	return c != nil && c.isRetry()
}

// furtherAttempts goes on after a first attempt that failed with err at e, or that could not be
// made because there is nothing to pick from (err is nil).
func (c *Client) furtherAttempts(ctx context.Context, k *call, r *retrying, e *endpoint, err *Error) *Error {
	bounded, cancel := k.bound(ctx)
	defer cancel()
	for {
		changed := c.cluster.changes() // from here on: a list that comes while this one is looked at counts
		v, fault := c.cluster.wait(bounded)
		if fault != nil {
			if err != nil && err.Outcome != NotSent {
				fault = err // closing the client does not change what became of the attempt
			}
			return r.final(fault)
		}
		if c.router != nil && e == nil && err == nil && len(r.attempts) == 0 { // there may have been no rules before
			if k.route, fault = c.route(ctx, r.m.name, outgoing(ctx)); fault != nil {
				return r.final(fault)
			}
		}
		v = v.forCall(r.m, k.route)
		if e == nil && err == nil {
			if v.total > 0 {
				e, err = c.again(bounded, k, r, v)
				if err == nil {
					if r.o.inv != nil {
						r.o.inv.answered(e.Instance().Address, r.sent)
					}
					return nil
				}
			} else {
				err = c.noInstance(k.route)
			}
		}
		if e != nil {
			changed = c.cluster.changes() // what the attempt itself changed is no reason to hurry
		}
		r.note(e, err, k.began)
		wait, again := r.decide(bounded, err, v)
		if !again {
			return r.final(err)
		}
		if r.bound != nil && !k.again {
			k.kept, k.again = k.sent, true
		}
		if wait > 0 {
			r.redialNow(v)
			if !c.waitRetry(bounded, wait, changed, err) {
				if errors.Is(ctx.Err(), context.Canceled) {
					err = givenUp(ctx, err)
				}
				return r.final(err)
			}
			if !r.untried(v) {
				r.tried = r.tried[:0]
			}
		}
		e, err = nil, nil
	}
}

// givenUp is the error of a call whose caller cancelled it after an attempt that failed with err.
func givenUp(ctx context.Context, err *Error) *Error {
	e := contextFailure(ctx, err.Outcome, err.Phase)
	e.Message += " before another attempt; the last one: " + err.Message
	e.Address = err.Address
	return e
}

// again makes one more attempt. An endpoint without an error has answered, and the reply is decoded.
func (c *Client) again(ctx context.Context, k *call, r *retrying, v *view) (*endpoint, *Error) {
	e, fault := c.pickAgain(ctx, k, r, v)
	if fault != nil {
		return nil, fault
	}
	k.frame[attemptOffset] = uint8(min(int(r.o.earlier)+r.sent, wire.MaxAttempt))
	k.shrinkTimeout(ctx)
	if r.sent+1 >= r.o.attempts {
		k.mover = nil // there is no attempt left
	}
	k.began = nanotime()
	err := e.attempt(ctx, k, r.m)
	if err == nil {
		err = e.decode(r.codec, k, r.out)
	}
	return e, err
}

// pickAgain returns the endpoint of one more attempt.
func (c *Client) pickAgain(ctx context.Context, k *call, r *retrying, v *view) (*endpoint, *Error) {
	switch {
	case r.o.pinned:
		if e := c.cluster.find(r.o.at); e != nil {
			return e, nil
		}
		return nil, failure(Unavailable, NotSent, PhasePick, nil, "no instance with the key %q is known, and anser.At lets the call go to no other", r.o.at)
	case r.bound != nil && !c.cluster.has(r.bound):
		return nil, failure(Unavailable, NotSent, PhasePick, nil, "the instance %s, which alone knows the idempotency key, is gone", r.bound.Instance().Address)
	case r.bound != nil:
		k.settled = true
		return r.bound, nil
	case r.o.mode == Failtry && r.first != nil && c.cluster.has(r.first):
		return r.first, nil
	case r.elsewhere && v.total > 1:
		return c.reach(ctx, k, r.m, r.tried)
	}
	k.pick.Method, k.pick.Tried = r.m.name, nil
	if r.o.mode.elsewhere() {
		k.pick.Tried = r.tried
	}
	e := v.pick(&k.pick)
	k.pick.Tried = nil
	if e == nil {
		return nil, failure(Unavailable, NotSent, PhasePick, nil, "no instance of %q can be picked", c.serviceName())
	}
	return e, nil
}

// waitRetry waits before the next attempt; a change of the instances ends the wait of a call that
// was not sent. It reports whether there is time for the next attempt.
func (c *Client) waitRetry(ctx context.Context, wait time.Duration, changed <-chan struct{}, err *Error) bool {
	if err.Outcome != NotSent {
		changed = nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-c.ctx.Done(): // the next attempt finds the client closed
	case <-ctx.Done():
		return false
	}
	return true
}

// final completes the error of a call that is given up.
func (r *retrying) final(err *Error) *Error {
	if r.ran != 0 && err.Outcome != Executed {
		err.Outcome = r.ran // the last attempt was not run, or nobody knows; an earlier one was
	}
	// Who called the handler that makes this call should not send that again: it has been tried in vain, or
	// so much fails that nothing is tried any more. See handlerError.
	err.spent = r.sent > 1 || r.denied
	err.Attempt = max(len(r.attempts)-1, 0)
	if len(r.attempts) > 1 {
		err.Attempts = r.attempts
	}
	return err
}
