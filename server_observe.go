package anser

import (
	"fmt"
	"runtime/debug"

	"github.com/anser-rpc/anser/wire"
)

// observeRequest passes a request to the observers, any of which may refuse it.
func (s *Server) observeRequest(ctx *callContext, size int) *Error {
	if k := ctx.protocolCall(); k != nil {
		size = k.size
	}
	err := s.o.observers.request(ctx, MessageInfo{Server: true, Method: ctx.method.name, Attempt: int(ctx.attempt), Codec: ctx.codec, Bytes: size})
	if err != nil {
		err.Outcome = Refused
	}
	return err
}

// observeReply passes the frame that answers a call to the observers of a server.
func (s *Server) observeReply(ctx *callContext, frame []byte) {
	defer func() {
		if p := recover(); p != nil { // the call is over: no caller gets this error
			s.stats.panics.Add(1)
			s.log.Error("an observer panicked on the reply", "method", ctx.method.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	info := MessageInfo{Server: true, Method: ctx.method.name, Attempt: int(ctx.attempt), Codec: ctx.codec}
	if k := ctx.protocolCall(); k != nil {
		if k.fault != nil {
			fault := *k.fault
			fault.Method = ctx.method.name
			info.Err = &fault
		}
		s.o.observers.reply(ctx, info)
		return
	}
	if len(frame) < wire.HeaderSize {
		return
	}
	h, err := wire.ParseHeader(frame)
	if err != nil {
		return
	}
	if body := frame[wire.HeaderSize:]; h.Type == wire.TypeError {
		if e, err := wire.ParseError(h.Flags, body); err == nil {
			fault := remoteError(&e)
			fault.Remote, fault.Method = false, ctx.method.name
			info.Err = fault
		}
	} else if r, err := wire.ParseReply(h.Flags, body); err == nil && h.Type == wire.TypeReply {
		info.Bytes = len(r.Payload)
	}
	s.o.observers.reply(ctx, info)
}
