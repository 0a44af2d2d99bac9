package anser

import (
	"errors"
	"slices"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// admit decides whether the call may run. refused is the error of the call, err that of the
// connection.
func (c *calleeHalf) admit(s *reading, n *named, h wire.Header, r *wire.Request, fault error) (cd codec.Codec, refused *Error, err error) {
	srv := c.server
	if r.Metadata != nil || fault != nil {
		if refused, err = c.admitHead(s, r, fault); refused != nil || err != nil {
			return nil, refused, err
		}
	}
	if n.method == nil {
		return nil, s.notServed(srv, n, r.Method), nil
	}
	if stream := n.method.converse != nil; stream != (h.Flags&wire.FlagStream != 0) {
		if stream {
			return nil, refusal(Unimplemented, "method %q is a stream: use anser.Open", n.method.name), nil
		}
		return nil, refusal(Unimplemented, "method %q is not a stream: use anser.Call", n.method.name), nil
	}
	if r.Compression != 0 && srv.compressors[r.Compression] == nil {
		return nil, srv.compressionRefused(r.Compression), nil
	}
	cd = srv.codec(n.method, r.Codec)
	if cd == nil {
		return nil, refusal(Unimplemented, "codec %d is not known here: this server has %s", r.Codec, srv.codecNames(nil)), nil
	}
	if only := n.method.only; only != nil && !only[r.Codec] {
		return nil, refusal(Unimplemented, "method %q does not take the codec %s: choose one of %s", n.method.name, cd.Name(), srv.codecNames(only)), nil
	}
	if len(r.Payload) > srv.o.maxMessage && (r.Compression == 0 || h.Flags&wire.FlagPlain != 0) {
		return nil, srv.tooLarge(len(r.Payload)), nil
	}
	if s.drained && h.ID != s.spared {
		return nil, refusal(Unavailable, "the connection is draining: make the call on another one"), nil
	}
	return cd, nil, nil
}

// admitHead checks the metadata of a request, which has the fault as a frame, if any.
func (c *calleeHalf) admitHead(s *reading, r *wire.Request, fault error) (refused *Error, err error) {
	if r.Metadata != nil {
		_, key, err := wire.ParseRequestMetadata(r.Metadata, c.server.settings.MaxMetadata)
		if s.key = key; err != nil {
			var broken *wire.Error
			if errors.As(err, &broken) {
				return nil, broken
			}
			fault = err
		}
	}
	if fault == nil {
		return nil, nil
	}
	var bad *wire.CallError
	errors.As(fault, &bad)
	refused = refusal(Code(bad.Code), "%s", bad.Text).WithRetryAfter(RetryNever)
	if refused.Code == ResourceExhausted {
		refused.limit = limitMetadata
	}
	return refused, nil
}

func (s *Server) tooLarge(size int) *Error {
	e := over(limitMessage, "the message of %d bytes is over the limit of %d: %s, or send less", size, s.o.maxMessage, raiseOn(false))
	e.cause = ErrTooLarge
	return e.WithRetryAfter(RetryNever)
}

// notServed refuses a call of an unknown method. Looking for a method that may have been meant
// takes time where there are many methods, so it is done once per name, and for a few names only.
func (s *reading) notServed(srv *Server, n *named, number uint32) *Error {
	switch {
	case srv.o.authorizer != nil:
		// A hint would reveal methods that the caller may not know.
		return refusal(Unimplemented, "the method is not served here")
	case n.name == "":
		return refusal(Unimplemented, "method %d is not served here", number)
	case n.hint == "" && s.hints < maxHints:
		s.hints++
		n.hint = srv.suggest(n.name, false)
	}
	return refusal(Unimplemented, "method %q is not served here%s", n.name, n.hint)
}

// newContext takes a context from the slab.
func (c *calleeHalf) newContext(s *reading, m *method, h wire.Header, r *wire.Request) *callContext {
	if len(s.slab) == 0 {
		s.slab = make([]callContext, slabSize)
	}
	ctx := &s.slab[0]
	s.slab = s.slab[1:]
	ctx.conn, ctx.method, ctx.id = c, m, h.ID
	ctx.attempt, ctx.priority, ctx.codec = r.Attempt, r.Priority, r.Codec
	ctx.oneway = h.Flags&wire.FlagOneway != 0
	if r.Timeout != 0 {
		left := min(r.Timeout, uint64(maxTimeout/time.Microsecond))
		ctx.deadline = s.arrived.Add(time.Duration(left) * time.Microsecond)
	}
	if h.Flags&wire.FlagTrace != 0 {
		if len(s.traces) == 0 {
			s.traces = make([]heldTrace, slabSize)
		}
		ctx.trace = &s.traces[0]
		s.traces = s.traces[1:]
		ctx.trace.Trace = r.Trace
	}
	if r.Metadata != nil || r.Compression != 0 {
		if len(s.extras) == 0 {
			s.extras = make([]callExtras, slabSize)
		}
		ctx.extras = &s.extras[0]
		s.extras = s.extras[1:]
		ctx.extras.metadata = slices.Clone(r.Metadata)
		if r.Metadata != nil {
			ctx.extras.key = s.key
		}
		if r.Compression != 0 {
			ctx.extras.packing = &packing{
				compressor: c.server.compressors[r.Compression],
				plain:      h.Flags&wire.FlagPlain != 0, forced: h.Flags&wire.FlagForced != 0,
			}
		}
	}
	return ctx
}
