package anser

import "context"

// maxStartingLater is the number of a client's calls started without a goroutine that may have one
// because there is no connection, or none accepts more bytes.
const maxStartingLater = 1024

// laterAttempts is the state of a future that got no answer to its first attempt, or could not
// start it at once.
type laterAttempts struct {
	ctx      context.Context // ends with that of the call, with Cancel, and with the call
	cancel   context.CancelFunc
	attempts attempts
}

// startLater begins the call on a goroutine, because it must wait before it can be sent. If there
// are too many such goroutines, startLater waits for one to end.
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
		p.proceed(nil)
	}()
}

// proceed makes attempts until one is sent, or the call is given up. The reader goroutine of the
// connection ends the attempt, so that no goroutine waits for it. fault is the error of the last
// attempt, which was at p.e. Without one, the first attempt is made at the endpoint that was
// picked for it: picking another one could mean waiting for its connection in turn.
func (p *pending) proceed(fault *Error) {
	l := p.makeLater()
	bounded, cancel := p.k.bound(l.ctx)
	defer cancel()
	p.k.atOnce = false
	for {
		if fault != nil || p.e == nil {
			if p.e, fault = l.attempts.next(bounded, p.k, p.e, fault); fault != nil {
				fault.Method = p.m.name
				p.finish(fault)
				return
			}
			l.attempts.prepare(bounded, p.k)
		}
		if fault = p.start(l.ctx); fault == nil {
			break
		}
	}
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if stopped { // before there was a connection to cancel it on
		p.stop()
	}
}

// makeLater returns p.later, made the first time.
func (p *pending) makeLater() *laterAttempts {
	if p.later != nil {
		return p.later
	}
	l := &laterAttempts{attempts: attempts{c: p.c, o: p.o, m: p.m}}
	l.ctx, l.cancel = p.ctx, func() {}
	if p.ctx != nil { // a nil one is an error of the call
		l.ctx, l.cancel = context.WithCancel(p.ctx)
	}
	p.mu.Lock()
	p.later = l
	stopped := p.stopped
	p.mu.Unlock()
	if stopped {
		l.cancel()
	}
	return l
}

// perform makes a call through interceptors, or several attempts at once, in functions that return
// when it is over.
func (p *pending) perform(name string, in any) {
	p.finish(p.c.callWithMode(p.makeLater().ctx, name, in, p.out, p.o, p.by()))
}
