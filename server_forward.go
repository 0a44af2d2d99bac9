package anser

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/anser-rpc/anser/wire"
)

// upstream is what calls are forwarded to: a Client.
type upstream interface {
	// forward forwards a call, and does not wait; see [forwarding].
	forward(ctx context.Context, f forwarding) stopper
	// openForward opens the stream that belongs to one of a caller. It may wait for a connection.
	openForward(ctx context.Context, f forwarding) (*stream, error)
}

// forwarder forwards the calls of methods that a server does not serve; see [Forward]. Such a call
// passes the checks of every call and is in the tables of its connection, so that cancels, drains,
// limits and the end of an identity apply to it. It has no goroutine: the goroutine that reads the
// connection of the caller sends the request, and the one that reads the connection to the other
// server appends the reply. Neither waits.
type forwarder struct {
	route func(ctx context.Context, call *ForwardCall) (upstream, string, error)

	mu      sync.RWMutex // guards the fields below
	methods map[string]*method
}

// maxListed is the number of methods that have counters of their own. A client may call any number
// of others.
const maxListed = 4096

// maxUnlisted is the number of methods without an answer for which a connection keeps counters. A
// client may invent names.
const maxUnlisted = 256

func newForwarder(route func(ctx context.Context, call *ForwardCall) (upstream, string, error)) *forwarder {
	return &forwarder{route: route, methods: make(map[string]*method)}
}

func (p *forwarder) announced(n *named, name string) bool {
	p.mu.RLock()
	m := p.methods[name]
	p.mu.RUnlock()
	if m != nil {
		n.forwarded, n.name = m, m.name // which takes no memory of the connection
	}
	return m != nil
}

func (p *forwarder) each(f func(m *method)) {
	p.mu.RLock()
	list := slices.Collect(maps.Values(p.methods))
	p.mu.RUnlock()
	for _, m := range list {
		f(m)
	}
}

// list gives a method counters of its own, once a call of it was answered: before that the name may
// be any.
func (p *forwarder) list(m *method) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.methods[m.name] != nil {
		return // the connection finds that one with its next call
	}
	m.listed.Store(true) // before others can find it
	if len(p.methods) < maxListed {
		p.methods[m.name] = m
	}
}

// method returns what counts the calls of n, or nil if its name cannot be one.
func (p *forwarder) method(c *calleeHalf, s *reading, n *named) *method {
	switch {
	case n.forwarded != nil && n.forwarded.listed.Load():
	case n.name == "" || strings.HasPrefix(n.name, builtinPrefix):
		return nil
	case p.announced(n, n.name):
		s.unknown -= len(n.name)
	case n.forwarded == nil:
		m := p.newMethod(c.server, n.name)
		if c.expect(s, m); s.unlisted < maxUnlisted {
			s.unlisted++
			n.forwarded = m
		}
		return m
	}
	return n.forwarded
}

// newMethod returns what counts the calls of a name on one connection until it is listed.
func (p *forwarder) newMethod(srv *Server, name string) *method {
	m := &method{name: name, mode: runConcurrent, newRequest: func() any { return new([]byte) }, handle: p.handle, converse: p.converse}
	m.limits = srv.newMethodLimits(m, new(handleOptions))
	if len(srv.o.interceptors) > 0 {
		m.chain = chain(srv.o.interceptors, func(ctx context.Context, inv *Invocation) (err error) {
			if inv.Stream {
				return m.streamWith(ctx, inv)
			}
			inv.Reply, err = m.handle(ctx, inv.Request)
			return err
		})
	}
	return m
}

func (p *forwarder) forward(c *calleeHalf, s *reading, n *named, h wire.Header, r wire.Request, fault error) error {
	m := p.method(c, s, n)
	var refused *Error
	if c.auth != nil {
		refused = c.authorize(s.now, n)
	}
	if refused == nil {
		var err error
		if refused, err = p.admit(c, s, n, m, h, &r, fault); err != nil {
			return err
		}
	}
	var taken uint8
	if refused == nil && m.limits != nil {
		taken, refused = m.limits.admit(Priority(r.Priority), s.waited())
	}
	if refused != nil {
		return c.turnDown(s, m, h, refused)
	}
	k := p.newCall(c, s, m, h, &r)
	k.ctx.priority |= taken
	switch {
	case k.ctx.expired(s.now):
		refused = errExpired
	case k.extras.key != "" && h.Flags&(wire.FlagOneway|wire.FlagStream) != 0:
		refused = errKeyedMessage
	case h.Flags&wire.FlagStream != 0:
		return c.openStream(s, n, k.ctx, opaqueCodec(r.Codec), r.Payload)
	case m.chain != nil && k.opaque():
		refused = c.server.compressionRefused(r.Compression)
	case m.chain != nil:
		_, err := c.handToWorker(s, n, k.ctx, opaqueCodec(r.Codec), r.Payload, false)
		return err
	default:
		if c.unread.Any() {
			if s.greets { // this goroutine itself must write what the client reads
				c.flush(s) // an error ends the connection
			}
			c.awaitReading()
		}
		k.held, refused = c.take(k.ctx, len(r.Payload))
	}
	if refused != nil {
		return c.refuse(s, k.ctx, refused)
	}
	if c.auth != nil {
		c.confirm(n, k.ctx)
	}
	k.start(&r, h.Flags)
	return nil
}

var errKeyedMessage = refusal(InvalidArgument, "a stream or oneway call has no idempotency key").WithRetryAfter(RetryNever)

// admit decides whether a call may be forwarded, as calleeHalf.admit does. The codec and the
// algorithm of a compressed message need not be known here.
func (p *forwarder) admit(c *calleeHalf, s *reading, n *named, m *method, h wire.Header, r *wire.Request, fault error) (refused *Error, err error) {
	srv := c.server
	if r.Metadata != nil || fault != nil {
		if refused, err = c.admitHead(s, r, fault); refused != nil || err != nil {
			return refused, err
		}
	}
	switch {
	case m == nil:
		return s.notServed(srv, n, r.Method), nil
	case len(r.Payload) > srv.o.maxMessage && (r.Compression == 0 || h.Flags&wire.FlagPlain != 0):
		return srv.tooLarge(len(r.Payload)), nil
	case s.drained && h.ID != s.spared:
		return errDraining, nil
	}
	return nil, nil
}

// awaitReading waits until a client reads that has left replies unread. Meanwhile it makes no
// further calls, so what waits for it is bounded.
func (c *calleeHalf) awaitReading() {
	if c.accepted == nil {
		return // the reader of a client's connection must not wait
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waitRoomLocked(context.Background()) // an error ends the connection
}
