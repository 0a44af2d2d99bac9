package anser

import (
	"context"
	"errors"
	"sync"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
)

// The end of the calls, streams and connections that a client may no longer have.
//
// A renewed identity is applied at once to the open calls of its connection. All other changes are
// found by the maintenance of the server: once a second it asks for the version of the policy, and
// for each connection whose identity can be revoked whether it was. It looks at a connection when
// the identity ends. The policy is asked about open calls only after its version has changed.
//
// A call may be admitted during such a change. The side that changes first stores the new proof, or
// the version that it has seen, and then looks at the open calls. The reader goroutine first adds
// the call to the open ones, and then compares what mayCall has used with what is stored (confirm).
// So one of the two sees the other. A handler that runs on the reader goroutine is added when
// another goroutine takes over the reading, and is checked again then (recheck).

// policyChanged stores the version of the policy, and reports whether it differs from the last
// one, or is unknown because the authorizer panicked.
func (s *Server) policyChanged() bool {
	if s.o.authorizer == nil {
		return false
	}
	version, ok := s.policyVersion()
	return s.policySeen.Swap(version) != version || !ok
}

// tendTrust ends the calls and streams that the client may no longer have, and returns when to
// check again. changed says that the policy has changed.
func (c *serverConn) tendTrust(now mono.Time, changed bool) (due mono.Time) {
	srv, st := c.server, c.auth.now.Load()
	due = upkeep.Never
	if st == nil || c.verdict.Load() != nil { // the client has not shown a credential yet, or the connection is about to end
		return due
	}
	switch {
	case st.drain == 0:
	case now < st.drain:
		due = st.drain
	default:
		c.spawn(func() { c.startDrain(srv.o.grace) })
	}
	switch {
	case srv.isRevoked(st.identity):
		srv.countAuthFailure(c, revoked, errRevoked)
		c.cutAll()
		c.failWith(errUnauthenticated)
	case st.lapsed(now):
		c.cutAll()
		if now.Sub(st.expires) >= srv.o.handshakeTimeout {
			srv.countAuthFailure(c, lapsed, errors.New("the identity has ended and was not renewed"))
			c.failWith(errUnauthenticated)
		}
		return now.Add(upkeep.Interval)
	case changed:
		c.sweep()
	}
	if st.expires != 0 {
		due = min(due, st.expires)
	}
	if st.identity.Revoked != nil {
		due = min(due, now.Add(upkeep.Interval))
	}
	return due
}

var errRevoked = errors.New("the identity was revoked")

// isRevoked reports whether an identity was revoked. A panic counts as yes.
func (s *Server) isRevoked(id *Identity) (yes bool) {
	if id.Revoked == nil {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			s.panickedOnTrust("a function Identity.Revoked panicked", p)
			yes = true
		}
	}()
	return id.Revoked()
}

// lapsed reports whether the identity has ended.
func (p *verifiedIdentity) lapsed(now mono.Time) bool { return p.expires != 0 && now >= p.expires }

func (t *connAuth) lapsed(now mono.Time) bool { return t.now.Load().lapsed(now) }

// cutAll ends all calls and streams of the client, and those of the server to the client.
func (c *serverConn) cutAll() {
	c.cut(errLapsed, c.openCalls()...)
	if half := c.toClient.Load(); half != nil {
		(*half).cutOff()
	}
}

// sweep ends the calls and streams that the policy does not allow to the current identity.
func (c *calleeHalf) sweep() {
	srv := c.server
	if srv.o.authorizer == nil {
		return
	}
	open := c.openCalls()
	if len(open) == 0 {
		return
	}
	id := c.identity()
	_, ok := srv.policyVersion()
	verdicts := make(map[*method]bool)
	var over []*callContext
	for _, ctx := range open {
		allowed, known := verdicts[ctx.method]
		if !known {
			allowed = ok && srv.allows(id, ctx.method.name)
			verdicts[ctx.method] = allowed
		}
		if !allowed {
			over = append(over, ctx)
		}
	}
	c.cut(errDenied, over...)
}

// confirm checks a call that has just been added to the open calls again, if something has
// changed since it was admitted. The reader goroutine calls it.
func (c *calleeHalf) confirm(n *named, ctx *callContext) {
	srv := c.server
	same := n.decided == c.auth.now.Load() && n.version == srv.policySeen.Load()
	if srv.o.authorizer != nil && !same {
		c.recheck(ctx)
	}
}

// recheck ends a call that the policy does not allow now.
func (c *calleeHalf) recheck(ctx *callContext) {
	if c.server.mayGoOn(ctx) {
		return
	}
	c.cut(errDenied, ctx)
}

// mayGoOn reports whether the policy allows an open call now.
func (s *Server) mayGoOn(ctx *callContext) bool {
	if s.o.authorizer == nil {
		return true
	}
	_, ok := s.policyVersion()
	return ok && s.allows(ctx.conn.identity(), ctx.method.name)
}

// openCalls returns the contexts of the calls and streams that are open, without a call whose
// handler runs on the reader goroutine.
func (c *calleeHalf) openCalls() (open []*callContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running.Len() > 0 {
		open = make([]*callContext, 0, c.running.Len())
		c.running.Each(func(ctx *callContext) { open = append(open, ctx) })
	}
	return open
}

// cut ends calls and streams whose handlers may have done something by now: the callers get the
// error why with the outcome Unknown, and the contexts of the handlers end. It does not wait for
// a client that does not read.
func (c *calleeHalf) cut(why *Error, calls ...*callContext) {
	if len(calls) == 0 {
		return
	}
	e := *why
	e.Outcome = OutcomeUnknown
	b := e.body()
	var frames []byte
	var taken []*callContext
	c.mu.Lock()
	for _, ctx := range calls {
		if c.running.Take(ctx.id) == nil {
			continue // it has ended
		}
		taken = append(taken, ctx)
		if st := ctx.stream(); st != nil {
			st.overLocked(&e) // the frame is the last one
		}
		if k := ctx.protocolCall(); k != nil {
			k.cutOff(&e)
		} else if !ctx.oneway {
			frames = c.appendError(frames, ctx.id, 0, &b)
		}
	}
	// Counted before their ends can be seen.
	c.server.stats.cutOff.Add(int64(len(taken)))
	if why == errDenied {
		c.server.stats.denied.Add(int64(len(taken)))
	}
	for _, ctx := range taken {
		// Before the caller learns of it, so that a call which waits does not run after that. A
		// stream gets its reason first, below. The end of a call that was forwarded needs this
		// lock.
		if k := ctx.protocolCall(); ctx.stream() == nil && (k == nil || k.stream == nil) && (ctx.extras == nil || ctx.extras.forwarded == nil) {
			ctx.end(context.Canceled)
		}
	}
	if len(frames) > 0 && c.err == nil && !c.closing {
		c.appendLocked(frames)
		c.flushInBackgroundLocked()
	}
	c.mu.Unlock()
	for _, ctx := range taken {
		ctx.stopStream(&e)
		ctx.end(context.Canceled)
	}
	c.finishDrain()
}

// orphans are the calls with idempotency keys that run on although their connection was lost:
// their callers may come back for the replies. They end with the identity that they were admitted
// for. The zero value is ready for use.
type orphans struct {
	mu sync.Mutex // guards by; taken under a connection's mu
	by map[*callContext]struct{}
}

func (o *orphans) add(ctx *callContext) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil {
		o.by = make(map[*callContext]struct{})
	}
	o.by[ctx] = struct{}{}
}

func (o *orphans) remove(ctx *callContext) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.by, ctx)
}

// tend ends the calls that may not go on, and reports whether there were any calls. When the
// policy has changed, it is called after the connections have been checked, so that a call whose
// connection is lost meanwhile is seen in one of the two places.
func (o *orphans) tend(now mono.Time, changed bool) (any bool) {
	o.mu.Lock()
	list := make([]*callContext, 0, len(o.by))
	for ctx := range o.by {
		list = append(list, ctx)
	}
	o.mu.Unlock()
	for _, ctx := range list {
		srv, st := ctx.conn.server, ctx.conn.auth.now.Load()
		if !srv.isRevoked(st.identity) && !st.lapsed(now) && (!changed || srv.mayGoOn(ctx)) {
			continue
		}
		srv.stats.cutOff.Add(1)
		ctx.end(context.Canceled)
		o.remove(ctx)
	}
	return len(list) > 0
}
