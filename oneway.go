package anser

import (
	"context"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/wire"
)

// OnewayMethod is the name of a oneway method with the type of its message: no reply and no error travels
// back, and a message arrives once or not at all. As a constant that both sides share it says so where the
// contract is:
//
//	const Log anser.OnewayMethod[Record] = "Log.Write"
type OnewayMethod[A any] string

// Handle serves the method on s; see the function [HandleOneway].
func (m OnewayMethod[A]) Handle(s *Server, h func(ctx context.Context, in *A) error, opts ...HandleOption) error {
	return HandleOneway(s, string(m), h, opts...)
}

// Send sends a message to the method through c; see the function [Send].
func (m OnewayMethod[A]) Send(ctx context.Context, c *Client, in *A, opts ...CallOption) error {
	return Send(ctx, c, string(m), in, opts...)
}

// Send calls the method oneway: nothing comes back, not even an error, and the message arrives at most once.
//
// A nil error says that the message is in the hands of a connection: it waits to be written, or was. If the
// connection is lost, so is the message. Until then Send looks for another instance as [Call] does, so that an
// error says that nothing was sent. The context and the time of the call bound this, and the handler. Send
// waits while the connection has 1 MiB of requests that the server does not take.
//
// Any method may be called oneway. A server drops the reply, and refuses a oneway call that is over a limit
// without a word: it counts it.
//
// Of the fail modes, [Backup] and [Fork] make no sense here and are refused, as is an [IdempotencyKey].
func Send[A any](ctx context.Context, c *Client, method string, in *A, opts ...CallOption) error {
	return c.Send(ctx, method, in, opts...)
}

// Send calls the method oneway with the message in; the function [Send] is the typed form.
func (c *Client) Send(ctx context.Context, method string, in any, opts ...CallOption) error {
	if err := c.usable(ctx, method); err != nil {
		return err
	}
	o := c.o.call.with(opts)
	o.oneway = true
	if fault := o.unsuitable(&c.o.call, "a oneway message", Backup, Fork); fault != nil {
		fault.Method = method
		return fault
	}
	if o.mode == Failsafe || o.mode == Failback {
		return c.perform(ctx, method, in, nil, o)
	}
	if c.intercepts(method) {
		inv := newInvocation(c, method, in, nil, o)
		inv.Oneway = true
		return c.intercepted(ctx, inv)
	}
	return c.send(ctx, method, in, o)
}

// send makes the attempts of a oneway call, of which the first one that gets as far as a connection is the
// last.
func (c *Client) send(ctx context.Context, name string, in any, o *callOptions) error {
	m, err := c.method(name)
	if err != nil {
		return err
	}
	k := c.pool.getCall()
	defer c.pool.putCall(k)
	k.began = nanotime()
	_, fault := c.encode(ctx, k, m, in, nil, o)
	if fault != nil {
		fault.Method = name
		return fault
	}
	k.frame[flagsOffset] |= byte(wire.FlagOneway)
	c.budget.Deposit()
	k.oneway, k.atOnce = true, o.atOnce
	defer func() { k.oneway, k.atOnce = false, false }()
	e := c.pick(k, m)
	if o.pinned {
		e = c.cluster.find(o.at)
	}
	if e != nil {
		if fault = e.attempt(ctx, k, m); fault == nil {
			if o.inv != nil {
				o.inv.answered(e, 0)
			}
			return nil
		}
	}
	if fault = c.furtherAttempts(ctx, k, &retrying{c: c, o: o, m: m}, e, fault); fault != nil {
		fault.Method = name
		return fault
	}
	return nil
}

// send hands the oneway call k to a connection of the endpoint.
func (e *endpoint) send(ctx context.Context, k *call, m *clientMethod) *Error {
	e.Begin()
	conn := e.host.pickConn(k.slot)
	if conn == nil && k.atOnce {
		e.Abort()
		return failure(Unavailable, NotSent, PhaseDial, nil, "there is no connection now")
	}
	if conn == nil {
		var err *Error
		if conn, err = e.connect(ctx, k); err != nil {
			return err
		}
	}
	if k.compression != nil || e.host.observers != nil {
		if err := e.prepare(ctx, conn, k, m); err != nil {
			return err
		}
	}
	if err := conn.send(ctx, k, m); err != nil {
		return e.settle(conn, k, m, err)
	}
	k.observed = nil
	e.Abort() // nothing will tell how it went
	return nil
}

// flagsOffset is where the flags stand in a frame.
const flagsOffset = 5

// send hands the oneway call k to the connection. When it fails nothing was sent.
func (c *clientConn) send(ctx context.Context, k *call, m *clientMethod) *Error {
	if uint64(len(k.frame)-wire.HeaderSize) > c.peer.MaxFrame {
		return c.tooLong(k)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := int32(len(c.buf) >> 10); n >= growWaiting || c.waiting.Load() > 0 {
		c.waiting.Store(n)
		if err := c.awaitRoomLocked(ctx, k); err != nil {
			return err
		}
	}
	if c.err != nil || c.draining {
		return c.goneLocked()
	}
	if c.trust != nil && c.trust.lapsed(nanotime()) {
		return clientLapsed(NotSent)
	}
	number := c.numberLocked(m)
	if number == 0 {
		return errNamesUsedUp()
	}
	c.lastID++
	at := len(c.buf)
	c.appendLocked(k.frame)
	putUint64(c.buf[at+idOffset:], c.lastID)
	putUint32(c.buf[at+methodOffset:], number)
	c.flushElsewhereLocked() // nobody waits, and most likely there is more to send
	return nil
}

// HandleOneway serves the method name, which is only ever called oneway, with h. A call that wants a reply
// is refused. What h returns goes nowhere: an error is counted (see [Server.Stats]), and what else is to
// be done about it, such as logging, is for h or an [Interceptor] to do. The rest is as for [Handle].
func HandleOneway[A any](s *Server, name string, h func(ctx context.Context, in *A) error, opts ...HandleOption) error {
	if h == nil {
		return s.refuseMethod(fmt.Errorf("method %q has no handler: the function is nil", name))
	}
	return s.add(opts, &method{
		name:       name,
		oneway:     true,
		newRequest: func() any { return new(A) },
		handle: func(ctx context.Context, in any) (any, error) {
			if c := callFrom(ctx); c != nil && !c.oneway {
				return nil, refusal(Unimplemented, "method %q is oneway: use anser.Send", name).WithRetryAfter(RetryNever)
			}
			return onewayReply, h(ctx, in.(*A))
		},
		request: reflect.TypeFor[A](),
		reply:   reflect.TypeFor[None](),
	})
}

// onewayReply stands for the reply of a call that has none.
var onewayReply = new(None)
