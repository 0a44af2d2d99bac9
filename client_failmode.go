package anser

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/balance"

	"github.com/anser-rpc/anser/internal/mono"
)

// noInstance is the error of a call for which there is no instance, or none in the route that the
// router wants.
func (c *Client) noInstance(route *Route) *Error {
	if route != nil {
		return failure(Unavailable, NotSent, PhasePick, nil, "the rules leave no instance of %q to this call (%s): does one of that kind run, or is a rule too strict?", c.serviceName(), route.Name)
	}
	return failure(Unavailable, NotSent, PhasePick, nil, "no instance of %q is known: is one registered and running?", c.serviceName())
}

// callWithMode makes a call with options of its own, starting outside the interceptors. by, if it
// is not nil, gets the attempt that was answered.
func (c *Client) callWithMode(ctx context.Context, name string, in, out any, o *callOptions, by *answer) error {
	mode := o.mode
	if inside := mode.inside(); inside != mode {
		inner := *o
		inner.mode = inside
		o = &inner
	}
	switch mode {
	case Failsafe:
		return c.ignore(name, out, c.callInside(ctx, name, in, out, o, by))
	case Failback:
		return c.failback(ctx, name, in, out, o)
	}
	return c.callInside(ctx, name, in, out, o, by)
}

// callInside makes the call through the interceptors. by is as for callWithMode.
func (c *Client) callInside(ctx context.Context, name string, in, out any, o *callOptions, by *answer) error {
	switch {
	case c.chain != nil:
		inv := newInvocation(c, name, in, out, o, by)
		inv.Oneway = o.oneway
		err := c.runInterceptors(ctx, inv)
		if by != nil {
			by.info.Address, by.info.Attempt, by.picked = inv.Address, inv.Attempt, inv.picked
		}
		return err
	case o.oneway:
		return c.send(ctx, name, in, o, by)
	}
	x := callState{by: by}
	if err := c.begin(ctx, &x, name, in, out, o, nil); err != nil {
		return err
	}
	return c.complete(ctx, &x, out, false)
}

// ignore logs the error of a call with the mode Failsafe and returns nil, unless the client had no
// instance to call or the call is a mistake.
func (c *Client) ignore(name string, out any, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok && (e.Phase == PhaseEncode || e.Phase == PhaseResolve || e.Phase == PhasePick) {
		return err
	}
	c.ignored.Add(1)
	if n := c.ignoredSeen.Note(mono.Now()); n > 0 {
		c.o.log.Warn("calls failed, and their fail mode is failsafe: see Debug for each of them", "calls", n, "method", name, "err", err)
	}
	c.o.log.Debug("a call failed, and its fail mode is failsafe", "method", name, "err", err)
	zero(out)
	return nil
}

// zero empties a reply that may have been decoded in part.
func zero(out any) {
	if t, ok := out.(*Tuple); ok {
		t.clear()
		return
	}
	if v := reflect.ValueOf(out); v.Kind() == reflect.Pointer && !v.IsNil() {
		v.Elem().SetZero()
	}
}

// another returns a pointer to a new message of the type of m, which is a pointer.
func another(m any) (any, error) {
	if t, ok := m.(*Tuple); ok {
		return t.of.new(), nil
	}
	t := reflect.TypeOf(m)
	if t == nil || t.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("it is a %T and not a pointer", m)
	}
	return reflect.New(t.Elem()).Interface(), nil
}

// unsuitable returns why a stream, or a message without a reply, cannot be sent with the options
// of its call, or nil. The client's own modes for calls become Failover for them.
func (o *callOptions) unsuitable(client *callOptions, what string, modes ...FailMode) *Error {
	if o.keyed {
		return failure(InvalidArgument, NotSent, PhaseEncode, nil, "%s has no idempotency key, as it is never sent again: leave anser.IdempotencyKey out", what)
	}
	for _, m := range modes {
		if o.mode != m {
			continue
		}
		if o.mode != client.mode {
			return failure(InvalidArgument, NotSent, PhaseEncode, nil, "%s cannot have the fail mode %s: leave anser.WithFailMode out", what, m)
		}
		o.mode = Failover
	}
	return nil
}

// invokeSpecial carries out a call whose first attempt differs: several attempts run at once, or
// the call is bound to one instance.
func (c *Client) invokeSpecial(ctx context.Context, k *call, a *attempts) error {
	var e *endpoint
	var fault *Error
	switch {
	case a.o.pinned:
		e, fault = c.pinned(ctx, k, a)
	case a.o.mode == Backup:
		k, e, fault = c.backup(ctx, k, a)
	case a.o.mode == Fork:
		k, e, fault = c.fork(ctx, k, a)
	default:
		fault = failure(InvalidArgument, NotSent, PhaseEncode, nil, "there is no fail mode %d", a.o.mode)
	}
	if fault == nil && e != nil {
		a.answered(k, e, int(k.frame[attemptOffset]))
	} else if e == nil && fault != nil {
		fault = a.final(fault)
	} else {
		fault = a.run(ctx, k, e, fault)
	}
	if a.o.trailer != nil {
		*a.o.trailer = metadataOf(k.trailers)
	}
	c.pool.putCall(k)
	if fault != nil {
		fault.Method = a.m.name
		return fault
	}
	return nil
}

// pinned makes the first attempt of a call that goes to one instance.
func (c *Client) pinned(ctx context.Context, k *call, a *attempts) (*endpoint, *Error) {
	e := c.cluster.Find(a.o.at)
	if e == nil {
		return nil, nil // there may be no list yet
	}
	k.pick.Reason = balance.PickedByCaller
	return e, a.attempt(ctx, k, e)
}

// cloneForAttempt makes k a copy of the call of, for a further attempt with the number n that runs
// at the same time.
func (k *call) cloneForAttempt(of *call, n int) {
	k.frame = append(k.frame[:0], of.frame...)
	k.head, k.codec, k.deadline, k.compression, k.route = of.head, of.codec, of.deadline, of.compression, of.route
	k.settled, k.mover = of.settled, nil // the concurrent attempt is at another instance
	k.frame[attemptOffset] = uint8(n)
	k.pick.Method, k.pick.Key, k.pick.Payload = of.pick.Method, of.pick.Key, nil
	k.began = mono.Now()
	if of.compression != nil {
		k.plain = append(k.plain[:0], of.plain...)
		k.pick.Payload = k.plain
	} else {
		k.pick.Payload = k.frame[k.head:]
	}
}
