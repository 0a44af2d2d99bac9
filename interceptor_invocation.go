package anser

import (
	"time"

	"github.com/anser-rpc/anser/codec"
)

// answered records the instance that answered.
func (inv *Invocation) answered(address string, attempt int) {
	inv.Address, inv.Attempt = address, attempt
}

// Codec returns the codec of the messages of the call, with which an interceptor can measure,
// compare or copy them. It is nil if no codec handles the types on the client, and for an
// Invocation that an interceptor made itself.
func (inv *Invocation) Codec() codec.Codec {
	if inv.side == nil {
		return nil
	}
	return inv.side.codecOf(inv)
}

// Timeout returns, on the client, how long the call may take if its context has no deadline; see
// the option [Timeout]. 0 means no limit. On the server it is always 0: the context has the
// deadline.
func (inv *Invocation) Timeout() time.Duration {
	if inv.options == nil {
		return 0
	}
	return inv.options.timeout
}

// SetTimeout sets the timeout of a client's call that continues with next, instead of the option
// [Timeout]. If that was given to the call, the new value applies along with the deadline of the
// context, otherwise only without one. 0 means no limit. Like
// SetAttempts and SetMode it does nothing on a server, and for a stream, which has the options that
// it was opened with.
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

// SetMode does the same for the option [WithFailMode]. [Failsafe] and [Failback] act outside the
// interceptors: here they mean Failover and Failfast, which the call uses inside.
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

// OnMessage makes f see the messages of a stream on the server, if it is called before next: those
// of the client when the handler receives them, before it has them, and those of the handler
// before they are sent. A message belongs to the stream: f must not change it, or keep it or
// anything that it points to. f runs on the goroutine of the handler that receives or sends, so
// calls of it may be concurrent if the handler uses several. Only the last f that was given is
// called. It does nothing for a call that is not a stream, on a client, and for a stream that is
// forwarded (see [Forward]).
func (inv *Invocation) OnMessage(f func(message any, sent bool)) { inv.messages = f }

// SetTrailer stores md where the caller asked for it with the option [Trailer]. It is for a client
// interceptor that answers without calling next. On the server it does nothing: the trailers of a
// handler are set with the function [SetTrailer].
func (inv *Invocation) SetTrailer(md Metadata) {
	if inv.options != nil && inv.options.trailer != nil {
		*inv.options.trailer = md
	}
}

// Detach returns an Invocation of the same method with the same options. It may be given to next
// even after the call has returned, as it shares nothing with the call. request and reply must
// therefore be messages other than the call's, of the same types; on the server reply is nil. The
// trailers of a client's call are stored in *trailer if it is not nil.
//
// It is for interceptors that answer several calls with one, or one call with several. A copy of
// the struct would share what belongs to the call. A stream cannot be detached.
func (inv *Invocation) Detach(request, reply any, trailer *Metadata) *Invocation {
	d := *inv
	d.Request, d.Reply, d.Address, d.Attempt, d.picked = request, reply, "", 0, picked{}
	if inv.options != nil {
		o := *inv.options
		o.trailer, o.inv, o.traced = trailer, &d, nil
		d.options = &o
	}
	return &d
}
