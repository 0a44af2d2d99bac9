package anser

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// observedCall is a call of which observers learn.
type observedCall struct {
	ctx     context.Context // of the handler
	info    CallInfo
	follow  bool      // they follow calls; otherwise only messages
	arrived mono.Time // when the request had arrived
	last    mono.Time // end of the last step
	timed   bool      // that was the end of the call
}

// observeCall tells the observers that a call begins.
func (s *Server) observeCall(ctx *callContext, arrived mono.Time, size int) observedCall {
	x := observedCall{ctx: ctx}
	if x.follow = s.o.observers.calls; !x.follow {
		return x
	}
	if k := ctx.protocolCall(); k != nil {
		size = k.size
	}
	m := ctx.method
	x.arrived, x.last = arrived, mono.Now()
	x.info = CallInfo{
		Server: true, Method: m.name, Stream: ctx.isStream(), Oneway: ctx.oneway, Forward: ctx.extras != nil && ctx.extras.forwarded != nil,
		Attempt: int(ctx.attempt), RequestBytes: size, Queue: max(x.last.Sub(arrived), 0),
	}
	if trace := s.o.observers.trace; trace != nil {
		x.info.Trace, x.info.Parent = trace(ctx, x.info)
		if ctx.extras != nil && isTrace(&x.info.Trace) {
			ctx.extras.trace = x.info.Trace
		}
	}
	x.ctx = s.o.observers.callBegan(ctx, &x.info)
	return x
}

// step returns the time since the last step.
func (x *observedCall) step() (took time.Duration) {
	if !x.follow {
		return 0
	}
	now := mono.Now()
	took, x.last = now.Sub(x.last), now
	return took
}

// endObserved tells the observers that a call has ended. size is that of the reply.
func (s *Server) endObserved(x *observedCall, fault error, size int) {
	if !x.follow {
		return
	}
	defer s.recoverObserver(x.info.Method, "an observer panicked at the end of a call")
	if !x.timed {
		x.step()
	}
	x.info.Duration, x.info.ReplyBytes, x.info.Err = max(x.last.Sub(x.arrived), 0), size, fault
	s.o.observers.callEnded(x.ctx, &x.info)
}

// recoverObserver is deferred around observers that must not change the result of a call.
func (s *Server) recoverObserver(method, text string) {
	if p := recover(); p != nil {
		s.stats.panics.Add(1)
		s.log.Error(text, "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// observeRefusal tells the observers of a call that did not begin. ctx and m may be nil.
func (s *Server) observeRefusal(ctx *callContext, m *method, e *Error) {
	info := CallInfo{Server: true, Err: e}
	if m != nil {
		info.Method, info.Stream = m.name, m.handle == nil
	}
	c := context.Background()
	if ctx != nil {
		c, info.Oneway, info.Attempt = ctx, ctx.oneway, int(ctx.attempt)
	}
	defer s.recoverObserver(info.Method, "an observer panicked on a refused call")
	s.o.observers.callEnded(c, &info)
}

// executeObserved is execute with observers.
func (s *Server) executeObserved(ctx *callContext, cd codec.Codec, payload, out []byte, arrived mono.Time) (result []byte) {
	var x observedCall
	var fault *Error
	phase, reported, ran := panicRequest, false, false
	fault, result = errExited, out // unless it returns, as the handler may end its goroutine
	defer func() {
		if p := recover(); p != nil {
			fault = s.panicError(ctx, phase, p)
			result = appendObserved(out, ctx, fault, ran)
		}
		if reported {
			s.observeReply(ctx, result[len(out):])
		}
		size := 0
		if fault == nil && len(result) > len(out) {
			size = len(result) - len(out) - wire.HeaderSize - wire.ReplySize
		}
		s.endObserved(&x, asError(fault), size)
	}()
	x = s.observeCall(ctx, arrived, len(payload))
	if fault = s.observeRequest(ctx, len(payload)); fault != nil {
		return appendObserved(out, ctx, fault, false)
	}
	phase, reported = panicDecode, s.o.observers.messages && !ctx.oneway
	in, fault2 := s.decodeRequest(ctx, cd, payload)
	if len(payload) > timedCoding {
		x.info.Decode = x.step()
	}
	if fault = fault2; fault != nil {
		return appendObserved(out, ctx, fault, false)
	}
	phase, ran, fault = panicRun, true, errExited
	ctx.method.calls.Add(1)
	reply, err := ctx.method.run(x.ctx, in)
	large := ctx.method.largeReply.Load()
	if large || ctx.oneway || err != nil {
		x.info.Handle = x.step()
	}
	if fault = nil; err != nil {
		fault = handlerError(err)
		return appendObserved(out, ctx, fault, true)
	}
	if ctx.oneway {
		return out
	}
	phase = panicEncode
	result, fault = s.appendReply(ctx, cd, reply, out)
	if took := x.step(); large {
		x.info.Encode = took
	} else {
		x.info.Handle = took
	}
	x.timed = true
	if fault != nil {
		return appendObserved(out, ctx, fault, true)
	}
	if now := len(result)-len(out) > timedCoding; now != large {
		ctx.method.largeReply.Store(now)
	}
	return result
}

// timedCoding is the size in bytes from which on the coding of a message is timed by itself. With
// small messages, reading the clock would cost more than that.
const timedCoding = 1 << 10

// appendObserved appends the error of a call that observers know.
func appendObserved(out []byte, ctx *callContext, e *Error, ran bool) []byte {
	if ran {
		return appendFault(out, ctx, e)
	}
	ctx.conn.server.countRefusal(ctx.method, e)
	return appendError(out, ctx, e)
}

// converseObserved is converse with observers.
func (s *Server) converseObserved(ctx *callContext, st anyStream, first int64, arrived mono.Time) (frame []byte) {
	var x observedCall
	phase, reported, ran := panicRequest, false, false
	fault := errExited
	defer func() {
		if p := recover(); p != nil {
			fault = s.panicError(ctx, phase, p)
			frame = appendObserved(nil, ctx, fault, ran)
		}
		if reported {
			s.observeReply(ctx, frame)
		}
		s.endObserved(&x, asError(fault), 0)
	}()
	x = s.observeCall(ctx, arrived, int(first))
	if fault = s.observeRequest(ctx, int(first)); fault != nil {
		return appendObserved(nil, ctx, fault, false)
	}
	phase, reported, ran, fault = panicRun, s.o.observers.messages, true, errExited
	ctx.method.calls.Add(1)
	err := ctx.method.stream(x.ctx, st)
	if fault = nil; err != nil {
		fault = handlerError(err)
		return appendFault(nil, ctx, fault)
	}
	return wire.AppendEnd(nil, ctx.id, ctx.trailers())
}

// observeRequest passes a request to the observers, any of which may refuse it.
func (s *Server) observeRequest(ctx *callContext, size int) *Error {
	if !s.o.observers.messages {
		return nil
	}
	if k := ctx.protocolCall(); k != nil {
		size = k.size
	}
	err := s.o.observers.request(ctx, MessageInfo{Server: true, Method: ctx.method.name, Attempt: int(ctx.attempt), Codec: ctx.codec, Bytes: size})
	if err != nil {
		err.Outcome = Refused
	}
	return err
}

// observeReply passes the frame that answers a call to the observers of a server, and returns what
// they got.
func (s *Server) observeReply(ctx *callContext, frame []byte) MessageInfo {
	defer s.recoverObserver(ctx.method.name, "an observer panicked on the reply")
	info := MessageInfo{Server: true, Method: ctx.method.name, Attempt: int(ctx.attempt), Codec: ctx.codec}
	if k := ctx.protocolCall(); k != nil {
		if k.fault != nil {
			fault := *k.fault
			fault.Method = ctx.method.name
			info.Err = &fault
		}
		s.o.observers.reply(ctx, info)
		return info
	}
	if len(frame) < wire.HeaderSize {
		return info
	}
	h, err := wire.ParseHeader(frame)
	if err != nil {
		return info
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
	return info
}
