package anser

import "context"

// maxLagging is how many calls of a client that were started without a goroutine of their own may have one
// because no connection stands, or none takes more bytes.
const maxStartingLater = 1024

// startLater begins the call on a goroutine, as it has to wait before it can be sent. There are not too many such.
func (p *pending) startLater() {
	bounded, cancel := p.k.bound(p.ctx)
	defer cancel()
	select {
	case p.c.startingLater <- struct{}{}:
	case <-bounded.Done():
		fault := contextFailure(bounded, NotSent, PhaseDial)
		fault.Method = p.m.name
		fault.Message = "no connection yet: " + fault.Message
		p.finish(fault)
		return
	}
	go func() {
		defer func() { <-p.c.startingLater }()
		p.startWhenConnected()
	}()
}

// startWhenConnected waits for a connection to the endpoint that was picked, and for room on it, and begins the call, which then
// needs this goroutine no more. Where there is no connection to be had it goes on as after an attempt that failed.
//
// It picks only where begin found nothing to pick from. To pick again for a connection that was waited for would mean
// to wait again: a balancer that goes round picks another endpoint each time.
func (p *pending) startWhenConnected() {
	ctx, cancel := p.stoppable()
	defer cancel()
	bounded, done := p.k.bound(ctx)
	defer done()
	if p.e == nil {
		if p.e = p.firstPick(bounded); p.e == nil {
			p.further(nil, nil)
			return
		}
	}
	p.e.Begin()
	conn := p.e.host.pickConn(p.k.slot)
	if conn == nil {
		var fault *Error
		if conn, fault = p.e.connect(bounded, p.k); fault != nil && !p.k.settled {
			conn = p.elsewhere(bounded)
		}
		if conn == nil {
			p.further(p.e, fault)
			return
		}
	}
	p.waits = true
	p.send(ctx, conn)
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if stopped { // before there was a connection to tell it to
		p.stop()
	}
}

// elsewhere takes the attempt, for which the endpoint that was picked has no connection, to one that has. It returns nil if
// there is none in time; p.e is that which was picked then.
func (p *pending) elsewhere(ctx context.Context) *clientConn {
	e, fault := p.c.reach(ctx, p.k, p.m, nil)
	if fault != nil {
		return nil
	}
	conn := e.host.pickConn(p.k.slot)
	if conn == nil { // it was lost
		return nil
	}
	p.k.shrinkTimeout(ctx)
	p.k.began = nanotime()
	p.e = e
	e.Begin()
	return conn
}

// firstPick waits for the list of instances and picks one, or returns nil. With a router that is for further, as there
// may be rules now for which the call was not routed.
func (p *pending) firstPick(ctx context.Context) *endpoint {
	if p.c.router != nil {
		return nil
	}
	if _, fault := p.c.cluster.wait(ctx); fault != nil {
		return nil
	}
	return p.c.pick(p.k, p.m)
}

// errNoRoom is why a call is not started by its caller, who is not to wait for room.
var errNoRoom = failure(Unavailable, NotSent, PhaseWrite, nil, "the connection takes no more bytes now")
