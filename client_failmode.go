package anser

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/registry"
)

// FailMode says what the client does with an attempt that failed, or how it makes several at once.
type FailMode uint8

// The fail modes. What may be tried again at all depends on the outcome, in every mode: a call whose
// outcome is unknown is never sent twice unless its method is idempotent or it has an [IdempotencyKey].
// That there is no instance is an error in every mode. docs/governance/failmodes.md tells more.
const (
	// Failover tries another instance. It is the default.
	Failover FailMode = iota
	// Failfast gives up at once.
	Failfast
	// Failtry tries the same instance.
	Failtry
	// Failsafe is Failover, and a call that fails all the same returns nil with a reply that is zero; the
	// error goes to the client's log. Errors remain errors where no instance was found, or where the
	// request cannot be encoded. Interceptors see every error.
	Failsafe
	// Failback makes one attempt. A call that fails in a way that it may be sent again is queued, tried
	// again in the background until it succeeds or [FailbackLimits] end it, and returns an error at once
	// that matches [ErrQueued]. Its reply goes nowhere.
	Failback
	// Backup makes a second attempt at another instance when the first one takes longer than 95 % of the
	// method's calls do, uses the reply that comes first, and cancels the other attempt. It is for
	// idempotent methods: with others, and where an attempt fails, it is Failover. See [BackupShare] and
	// [BackupAfter].
	Backup
	// Fork calls several instances at once, uses the first reply, and cancels the other attempts. The method
	// must be known to be idempotent. See [Forks].
	Fork
)

var failModeNames = [...]string{"failover", "failfast", "failtry", "failsafe", "failback", "backup", "fork"}

// String returns the name of the mode in lower case.
func (m FailMode) String() string {
	if int(m) < len(failModeNames) {
		return failModeNames[m]
	}
	return "unknown fail mode"
}

// elsewhere reports whether the mode tries another instance after one failed.
func (m FailMode) elsewhere() bool { return m != Failfast && m != Failtry }

// Forks sets how many instances a call with the mode [Fork] goes to at once: 2 to 5, the default is 2. Where
// there are fewer, it goes to all.
func Forks(n int) DialCallOption {
	return dialCallOption(func(o *callOptions) {
		if o.wants(n >= defaultForks && n <= maxAttempts, "anser.Forks(%d): want %d to %d", n, defaultForks, maxAttempts) {
			o.forks = n
		}
	})
}

const defaultForks = 2

// At sends a call to the instance with the key (see [registry.Instance.Key]) and to no other. When the client
// knows no such instance, the call fails at once. In the modes that go to another instance or to several,
// it is tried again at this one. [Client.Instances] has the keys.
func At(key string) CallOption {
	return callOption(func(o *callOptions) { o.at, o.pinned = key, true })
}

// Instances waits until the client has a list of instances, and returns those that a call could go to, sorted
// by key, be they reachable or not. That there is none is an error.
func (c *Client) Instances(ctx context.Context) ([]registry.Instance, error) {
	if err := c.usable(ctx, ""); err != nil {
		return nil, err
	}
	if _, fault := c.cluster.wait(ctx); fault != nil {
		return nil, fault
	}
	var list []registry.Instance
	for _, in := range c.cluster.status().Instances {
		list = append(list, in.Instance)
	}
	if len(list) == 0 {
		return nil, c.nobody(nil)
	}
	return list, nil
}

// nobody is the error of a call for which there is no instance, or none in the route that the router wants.
func (c *Client) nobody(route *Route) *Error {
	if route != nil {
		return failure(Unavailable, NotSent, PhasePick, nil, "the rules leave no instance of %q to this call (%s): does one of that kind run, or is a rule too strict?", c.serviceName(), route.Name)
	}
	return failure(Unavailable, NotSent, PhasePick, nil, "no instance of %q is known: is one registered and running?", c.serviceName())
}

// inside is the mode that a call has inside of the interceptors.
func (m FailMode) inside() FailMode {
	switch m {
	case Failsafe:
		return Failover
	case Failback:
		return Failfast
	}
	return m
}

// perform makes a call with options of its own from the outermost point on: around the interceptors.
func (c *Client) perform(ctx context.Context, name string, in, out any, o *callOptions) error {
	mode := o.mode
	if inside := mode.inside(); inside != mode {
		inner := *o
		inner.mode = inside
		o = &inner
	}
	switch mode {
	case Failsafe:
		return c.ignore(name, out, c.behind(ctx, name, in, out, o))
	case Failback:
		return c.failback(ctx, name, in, out, o)
	}
	return c.behind(ctx, name, in, out, o)
}

// behind makes the call through the interceptors.
func (c *Client) behind(ctx context.Context, name string, in, out any, o *callOptions) error {
	switch {
	case c.chain != nil:
		inv := newInvocation(c, name, in, out, o)
		inv.Oneway = o.oneway
		return c.intercepted(ctx, inv)
	case o.oneway:
		return c.send(ctx, name, in, o)
	}
	return c.invoke(ctx, name, in, out, o, nil)
}

// ignore logs the error of a call with the mode Failsafe and returns nil, unless nobody was there to call or
// the call is a mistake.
func (c *Client) ignore(name string, out any, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok && (e.Phase == PhaseEncode || e.Phase == PhaseResolve || e.Phase == PhasePick) {
		return err
	}
	c.ignored.Add(1)
	c.o.log.Warn("a call failed, and its fail mode is failsafe", "method", name, "err", err)
	zero(out)
	return nil
}

// zero empties a reply, of which some may have been decoded.
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

// unsuitable says why a message that nobody answers, or a stream, cannot be sent with the options of
// its call, or nil. What the client has for its calls becomes Failover for others.
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

// invokeApart carries out a call whose first attempt is not made like that of others: because there are several
// at once, or because it is bound to one instance.
func (c *Client) invokeApart(ctx context.Context, k *call, r *retrying) error {
	var e *endpoint
	var fault *Error
	switch {
	case r.o.pinned:
		e, fault = c.pinned(ctx, k, r)
	case r.o.mode == Backup:
		k, e, fault = c.backup(ctx, k, r)
	case r.o.mode == Fork:
		k, e, fault = c.fork(ctx, k, r)
	default:
		fault = failure(InvalidArgument, NotSent, PhaseEncode, nil, "there is no fail mode %d", r.o.mode)
	}
	if fault == nil && e != nil {
		if r.o.inv != nil {
			r.o.inv.answered(e, int(k.frame[attemptOffset]))
		}
	} else if e == nil && fault != nil {
		fault = r.final(fault)
	} else {
		fault = c.furtherAttempts(ctx, k, r, e, fault)
	}
	if r.o.trailer != nil {
		*r.o.trailer = metadataOf(k.trailers)
	}
	c.pool.putCall(k)
	if fault != nil {
		fault.Method = r.m.name
		return fault
	}
	return nil
}

// pinned makes the first attempt of a call that goes to one instance.
func (c *Client) pinned(ctx context.Context, k *call, r *retrying) (*endpoint, *Error) {
	e := c.cluster.find(r.o.at)
	if e == nil {
		return nil, nil // there may be no list yet
	}
	fault := e.attempt(ctx, k, r.m)
	if fault == nil {
		fault = e.decode(r.codec, k, r.out)
	}
	return e, fault
}

// find returns the endpoint with the key of an instance, or nil.
func (cl *cluster) find(key string) *endpoint {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.endpoints[key]
}

// like makes k a copy of the call of, for a further attempt with the number n that runs at the same time.
func (k *call) like(of *call, n int) {
	k.frame = append(k.frame[:0], of.frame...)
	k.plain = append(k.plain[:0], of.plain...)
	k.head, k.codec, k.deadline, k.compression, k.route = of.head, of.codec, of.deadline, of.compression, of.route
	k.settled, k.mover = of.settled, nil // the one that runs at the same time is elsewhere
	k.frame[attemptOffset] = uint8(n)
	k.pick.Method, k.pick.Key, k.pick.Payload = of.pick.Method, of.pick.Key, nil
	k.began = nanotime()
	if of.compression != nil {
		k.pick.Payload = k.plain
	} else {
		k.pick.Payload = k.frame[k.head:]
	}
}
