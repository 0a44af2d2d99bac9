package anser

import (
	"time"

	"github.com/anser-rpc/anser/codec"
)

// answered notes which instance gave the reply.
func (inv *Invocation) answered(address string, attempt int) {
	inv.Address, inv.Attempt = address, attempt
}

// Codec returns the codec in which the messages of the call travel, with which an interceptor can
// measure, compare or copy them. It is nil if no codec handles the types on the client, and for an
// Invocation that an interceptor made itself.
func (inv *Invocation) Codec() codec.Codec {
	if inv.side == nil {
		return nil
	}
	return inv.side.codecOf(inv)
}

// Timeout returns, on the client, how long the call may take if its context has no deadline: see the
// option [Timeout]. 0 means no bound; it is 0 on the server too, where the context has the deadline.
func (inv *Invocation) Timeout() time.Duration {
	if inv.options == nil {
		return 0
	}
	return inv.options.timeout
}

// SetTimeout bounds a call of a client that goes on with next to d, in place of the option [Timeout]; as that
// it counts where the context has no deadline. 0 means no bound. With SetAttempts and SetMode it does nothing
// on a server, and for a stream, which has the options that it was opened with.
func (inv *Invocation) SetTimeout(d time.Duration) {
	if o := inv.changeable(); o != nil {
		o.timeout = d
	}
}

// SetAttempts does the same for the option [Attempts].
func (inv *Invocation) SetAttempts(n int) {
	if o := inv.changeable(); o != nil {
		o.setAttempts("Invocation.SetAttempts", n)
	}
}

// SetMode does the same for the option [WithFailMode]. [Failsafe] and [Failback] work around the interceptors: here they are
// Failover and Failfast, which is what the call is inside of them.
func (inv *Invocation) SetMode(m FailMode) {
	if o := inv.changeable(); o != nil {
		o.setMode("Invocation.SetMode", m.inside())
	}
}

// changeable returns the options that belong to this call alone, or nil.
func (inv *Invocation) changeable() *callOptions {
	if inv.Stream {
		return nil
	}
	return inv.options
}

// SetTrailer stores md where the caller of a client's call asked for it with the option [Trailer], for an
// interceptor that answers without calling next. On the server it does nothing: a handler's trailers
// are set with the function [SetTrailer].
func (inv *Invocation) SetTrailer(md Metadata) {
	if inv.options != nil && inv.options.trailer != nil {
		*inv.options.trailer = md
	}
}

// Detach returns an Invocation of the same method and with the same options, which may be given to
// next even after the call has returned: nothing that belongs to the call is touched through it. So
// request and reply have to be other messages than the call's, of the same types; on the server
// reply is nil. Trailers of a client's call go to *trailer if it is not nil.
//
// It is for interceptors that answer several calls with one, or one with several. A copy of the struct would
// not do, as it shares what belongs to the call. A stream cannot be detached.
func (inv *Invocation) Detach(request, reply any, trailer *Metadata) *Invocation {
	d := *inv
	d.Request, d.Reply, d.Address, d.Attempt = request, reply, "", 0
	if inv.options != nil {
		o := *inv.options
		o.trailer, o.inv = trailer, &d
		d.options = &o
	}
	return &d
}
