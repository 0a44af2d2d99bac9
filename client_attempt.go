package anser

import (
	"context"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// pick returns the endpoint for the first attempt, or nil if there is none.
func (c *Client) pick(k *call, m *clientMethod) *endpoint {
	v := c.cluster.View()
	if v == nil {
		return nil
	}
	if around := m.health.View(); around != nil { // as ForCall does
		v = around
	}
	if k.route != nil {
		v = v.ForRoute(k.route)
	}
	k.pick.Method, k.pick.Tried = m.name, nil
	return v.Pick(&k.pick)
}

// setPickRequest sets what balancers learn about the call.
func (k *call) setPickRequest(ctx context.Context, m *clientMethod, in any, o *callOptions, payload []byte) (fault *Error) {
	k.pick.Key, k.pick.Payload = o.hashKey, payload
	if o.hashBy != nil && o.hashKey == 0 {
		k.pick.Key, fault = o.keyOf(ctx, m, in)
	}
	return fault
}

// keyOf asks the function of HashBy for the key.
func (o *callOptions) keyOf(ctx context.Context, m *clientMethod, in any) (key uint64, fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, NotSent, PhaseEncode, nil, "the function of anser.HashBy panicked on %T: %v", in, p)
		}
	}()
	if text := o.hashBy(ctx, m.name, in); text != "" {
		key = balance.Hash(text)
	}
	return key, nil
}

// attempt sends the call to the endpoint and waits for its reply. A oneway call has no reply.
func (k *call) attempt(ctx context.Context, e *endpoint, m *clientMethod) *Error {
	conn, err := k.start(ctx, e, m)
	if err != nil || k.oneway {
		return err
	}
	return k.settle(e, conn, m, conn.wait(ctx, k))
}

// start sends the call to the endpoint. If it succeeds, settle follows, unless the call is oneway.
func (k *call) start(ctx context.Context, e *endpoint, m *clientMethod) (*callerHalf, *Error) {
	k.trailers = nil // from the previous attempt
	e.Begin()
	conn := e.Host.pickConn(k.slot)
	if conn == nil {
		var err *Error
		var started bool
		if conn, started, err = k.connect(ctx, e, m); err != nil || started {
			return conn, err
		}
	}
	if k.again {
		var err *Error
		if conn, err = k.rightConn(e, conn); err != nil {
			e.Abort()
			err.Address = e.Instance().Address
			return nil, err
		}
	}
	if k.compression != nil || e.Host.observers.followMessages() {
		if err := k.prepare(ctx, e, conn, m); err != nil {
			return nil, err
		}
	}
	if k.oneway {
		return conn, k.send(ctx, e, conn, m)
	}
	if k.pending != nil {
		k.pending.startOn(conn)
	}
	if err := conn.start(ctx, k, &m.methodName); err != nil {
		if err == errWouldWait {
			return nil, k.takeBack(e, m)
		}
		return nil, k.settle(e, conn, m, err)
	}
	return conn, nil
}

// takeBack ends an attempt that would need to wait for room, and returns errWouldWait.
func (k *call) takeBack(e *endpoint, m *clientMethod) *Error {
	e.Abort()
	if k.observed != nil {
		k.observeReply(e, m, errWouldWait)
	}
	return errWouldWait
}

// send hands a oneway call to the connection.
func (k *call) send(ctx context.Context, e *endpoint, conn *callerHalf, m *clientMethod) *Error {
	if err := conn.send(ctx, k, &m.methodName); err != nil {
		return k.settle(e, conn, m, err)
	}
	k.observed = nil
	e.Abort() // no reply will report the outcome
	return nil
}

// prepare compresses the request for the connection, and notifies the observers. After an error
// the attempt is over.
func (k *call) prepare(ctx context.Context, e *endpoint, conn *callerHalf, m *clientMethod) *Error {
	if k.compression != nil {
		if err := k.compressRequest(e, conn, m); err != nil {
			return err
		}
	}
	if e.Host.observers.followMessages() {
		return k.observe(ctx, e, m)
	}
	return nil
}

// connect waits for a connection. If the call may go to another instance, it does not wait for a
// late connection. started reports that the call is open on the connection.
func (k *call) connect(ctx context.Context, e *endpoint, m *clientMethod) (conn *callerHalf, started bool, err *Error) {
	if k.atOnce {
		e.Abort()
		if k.pending != nil {
			return nil, false, errWouldWait
		}
		return nil, false, failure(Unavailable, NotSent, PhaseDial, nil, "there is no connection now")
	}
	patient := k.settled || e.Lonely()
	k.patient = k.pending == nil && ctx.Done() == nil // as in start
	makes := patient && k.patient && k.mayMake(e.Host)
	if k.mayBeEarly(e.Host) {
		conn, started, err = e.Host.earlyConn(ctx, k, &m.methodName, patient, makes)
	} else {
		conn, err = e.Host.waitConn(ctx, k.deadline, patient, makes, nil)
	}
	if err != nil {
		noteUnreached(e, err)
		return nil, false, err
	}
	if !started { // else k belongs to the connection
		k.shrinkTimeout(ctx)
		k.beginLate(mono.Now()) // the time to connect says nothing about how fast the instance answers
	}
	return conn, started, nil
}

// mayMake reports whether the caller, which waits for nothing but its reply, may make a connection
// to the host on its own goroutine: whether its time is longer than that takes.
func (k *call) mayMake(h *host) bool {
	return k.stream == nil && !k.oneway && h.makesInTime() &&
		(k.deadline == 0 || mono.Until(k.deadline) > h.connectTimeout)
}

// noteUnreached ends an attempt that got no connection, and completes its error.
func noteUnreached(e *endpoint, err *Error) {
	if err.cause == nil { // being late need not mean anything
		e.Abort()
	} else {
		e.Fail(mono.Now().Nanoseconds())
	}
	err.Address = e.Instance().Address
}

// settle reports the result of an attempt to the balancer, and completes its error.
func (k *call) settle(e *endpoint, conn *callerHalf, m *clientMethod, err *Error) *Error {
	if k.loan != nil {
		k.loan.recall()
		k.loan = nil
	}
	if err == nil {
		now := conn.progress.lastRead.Load() // when the reply arrived; reading the clock has a cost
		e.End(now.Nanoseconds(), now.Sub(k.began))
		m.learn(k.flags)
		if e.Counting() {
			e.Succeeded(&m.health, now.Sub(k.began))
		}
		if k.observed != nil {
			k.observeReply(e, m, nil)
		}
		return nil
	}
	now := mono.Now()
	switch {
	case err.Code == Canceled || err.isOfRequest():
		e.Abort()
	case err.Outcome == Executed || err.Code == DeadlineExceeded:
		e.End(now.Nanoseconds(), now.Sub(k.began))
	default:
		e.Fail(now.Nanoseconds())
	}
	k.recordFailure(e, conn, m, err)
	if err.Outcome == OutcomeUnknown {
		k.sent, k.unsure = conn.sentTo(k.began), true
	}
	if err.Remote {
		m.learn(k.flags)
	}
	err.Address = e.Instance().Address
	if k.observed != nil {
		k.observeReply(e, m, err)
	}
	return err
}

// recordFailure counts an attempt that failed with err against the instance. Errors that say
// nothing about the instance, and errors that its connections reveal anyway, are left to settle
// and the host.
func (k *call) recordFailure(e *endpoint, conn *callerHalf, m *clientMethod, err *Error) {
	if err.Code == Canceled && err.Outcome != Executed || err.isOfRequest() || !e.Suspect() {
		return
	}
	switch err.Outcome {
	case Executed:
		e.Returned(&m.health, uint8(err.Code), mono.Since(k.began))
		return
	case Refused:
		switch err.Code {
		case ResourceExhausted:
			e.Shed(&m.health)
			return
		case DeadlineExceeded: // the call arrived too late
			return
		case Unimplemented: // the method is missing, not the instance
		default:
			e.Refused(&m.health)
			return
		}
	case OutcomeUnknown:
		if err.Code == DeadlineExceeded && conn != nil && conn.progress.lastRead.Load() <= k.began {
			e.Starved(&m.health)
			return
		}
	}
	e.Failed(&m.health)
}

// isOfRequest reports whether the attempt failed because of the request, so that the failure says
// nothing about the instance. An instance that refuses because it is overloaded, draining or too
// old answers fast, and must not attract more calls by it.
func (e *Error) isOfRequest() bool {
	switch {
	case e.Outcome == NotSent:
		return e.Code == ResourceExhausted // the request is too large, or there are too many
	case e.Outcome != Refused:
		return false
	case e.RetryAfter < 0:
		return true
	}
	return e.Code == InvalidArgument || e.Code == PermissionDenied || e.Code == Unauthenticated
}

// learn records what the server declared about the method.
func (m *clientMethod) learn(flags wire.Flags) {
	if flags&wire.FlagIdempotent != 0 && !m.learned.Load() {
		m.learned.Store(true)
	}
}
