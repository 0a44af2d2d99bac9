package anser

import (
	"context"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

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
	var f *followedCall
	var by *answer
	if c.o.observers.followCalls() {
		f = c.callBegan(ctx, method, callKind{oneway: true})
		ctx, by = f.ctx, &f.by
	}
	err := c.callWithMode(ctx, method, in, nil, o, by)
	if f != nil {
		c.callEnded(f, err)
	}
	return err
}

// send makes the attempts of a oneway call. The first one that is handed to a connection is the
// last. by, if it is not nil, gets the attempt that was handed over.
func (c *Client) send(ctx context.Context, name string, in any, o *callOptions, by *answer) error {
	m, err := c.method(name)
	if err != nil {
		return err
	}
	k := c.pool.getCall()
	defer c.pool.putCall(k)
	k.began = mono.Now()
	if k.traced = o.traced; by != nil {
		k.traced = by
	}
	_, fault := c.encode(ctx, k, m, in, nil, o)
	if fault != nil {
		fault.Method = name
		return fault
	}
	k.frame[flagsOffset] |= byte(wire.FlagOneway)
	c.budget.Deposit(k.slot)
	k.oneway, k.atOnce = true, o.atOnce
	defer func() { k.oneway, k.atOnce = false, false }()
	var e *endpoint
	if o.pinned {
		e, k.pick.Reason = c.cluster.Find(o.at), balance.PickedByCaller
	} else {
		e = c.pick(k, m)
	}
	if e != nil {
		if fault = k.attempt(ctx, e, m); fault == nil {
			noteAnswer(o, by, k, e, 0)
			return nil
		}
	}
	if fault = (&attempts{c: c, o: o, m: m, by: by}).run(ctx, k, e, fault); fault != nil {
		fault.Method = name
		return fault
	}
	return nil
}

// send hands the oneway call k to the connection. When it fails nothing was sent.
func (c *callerHalf) send(ctx context.Context, k *call, m *methodName) *Error {
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
	if c.draining || !c.takesFramesLocked() {
		return c.goneLocked()
	}
	if c.trust != nil && c.trust.lapsed(mono.Now()) {
		return clientLapsed(NotSent)
	}
	number := c.numberLocked(m)
	if number == 0 {
		return errNamesUsedUp()
	}
	c.lastID++
	at := len(c.buf)
	c.appendLocked(k.frame)
	putUint64(c.buf[at+idOffset:], c.lastID|c.idBit)
	putUint32(c.buf[at+methodOffset:], number)
	c.flushInBackgroundLocked() // no caller waits, and most likely more messages follow
	return nil
}
