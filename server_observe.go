package anser

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// execution is what is known of a call that runs.
type execution struct {
	arrived mono.Time // when the request had arrived
	began   mono.Time // when the call began to run; 0: the clock was not read
	ended   mono.Time // the end of the call, if observers asked for it; otherwise 0
	job     *job      // of a call that runs on a worker, or nil
	lends   bool      // a large reply is not copied to be written
	lent    lentReply // such a reply, which follows the frame's head
	phase   panicPhase
	choice  TraceChoice // of a call that may be measured, if an observer chooses trace contexts

	measured bool   // measure reports the call to observers
	fault    *Error // how the call ends, for them
}

// handle notes that the handler begins to run.
//
//go:noinline
func (e *execution) handle(ctx *callContext) {
	e.phase, e.fault, e.measured = panicRun, errExited, ctx.method.measures != nil
	ctx.method.calls.Add(ctx.conn.lane, 1)
}

// room returns the buffer for the reply: that of the job, if there is one, and else out.
func (e *execution) room(out []byte) []byte {
	if e.job == nil {
		return out
	}
	return e.job.room()
}

// size returns the bytes of the encoded request.
func (e *execution) size(payload []byte) int {
	if e.job != nil && e.job.decoded {
		return e.job.size
	}
	return len(payload)
}

// observedCall is a call of which observers learn. It is pooled, and not on the stack of the
// handler: see answer.
type observedCall struct {
	ctx     context.Context // of the handler
	info    CallInfo
	follow  bool        // they follow calls; otherwise only messages
	traced  bool        // the trace context is chosen
	choice  TraceChoice // if it is not
	arrived mono.Time   // when the request had arrived
	last    mono.Time   // end of the last step
	timed   bool        // that was the end of the call
}

var observedCalls = sync.Pool{New: func() any { return new(observedCall) }}

// mayFollow reports whether observers may follow a call, which follow decides. size is that of the
// request.
func (s *Server) mayFollow(ctx *callContext, size int) bool {
	w := s.o.observers
	return w != nil && (!w.measures || !ctx.isOrdinary(size))
}

// isOrdinary reports whether a call, with a request of that size, is one that observers measure if
// they can: see [Observer].
func (c *callContext) isOrdinary(size int) bool {
	return size <= timedCoding && !c.oneway && !c.method.largeReply.Load() && (c.extras == nil || c.extras.key == "" && c.extras.protocol == nil)
}

// follow returns a record for a call that observers follow, or nil for one that is measured or that
// they do not learn of. size is that of the request.
//
//go:noinline
func (s *Server) follow(ctx *callContext, size int, run *execution) *observedCall {
	w := s.o.observers
	switch {
	case w.messages || w.calls && (w.follows || !ctx.isOrdinary(size)):
		return observedCalls.Get().(*observedCall)
	case w.trace != nil:
		c := &run.choice
		if s.chooseTrace(ctx, c); c.Follow || isTrace(&c.Parent) && c.Parent.TraceID != c.Own.TraceID { // only the id of a span is kept
			x := observedCalls.Get().(*observedCall)
			x.info.Trace, x.info.Parent, x.traced = c.Own, c.Parent, true
			return x
		}
	}
	return nil
}

// chooseTrace asks the observer of traces about a call, and keeps the trace context that it chose.
func (s *Server) chooseTrace(ctx *callContext, c *TraceChoice) {
	defer s.recoverObserver(ctx.method.name, "an observer panicked on the trace of a call")
	*c = TraceChoice{}
	if t := ctx.inheritedTrace(); t != nil {
		c.Parent = *t
	}
	s.o.observers.trace(ctx, ctx.kind(), c)
	if isTrace(&c.Own) {
		ctx.keepTrace(&c.Own, &c.Parent)
	}
}

func (c *callContext) kind() CallKind {
	return CallKind{Server: true, Method: c.method.name, Stream: c.isStream(), Oneway: c.oneway}
}

// measure tells the observers of a call that they do not follow. request is the size of its
// message, and answer that of the frame of its answer.
//
//go:noinline
func (s *Server) measure(ctx *callContext, t *execution, request, answer int) {
	t.measured = false
	returned := false
	defer func() {
		if !returned {
			s.observerPanicked(recover(), ctx.method.name, "an observer panicked at the end of a call")
		}
	}()
	t.ended = mono.Now()
	reply := 0
	if t.fault == nil {
		if reply = replyBytes(answer); reply > timedCoding {
			ctx.method.largeReply.Store(true)
		}
	}
	c := Measurement{
		Duration: max(t.ended.Sub(t.arrived), 0), Queue: max(t.began.Sub(t.arrived), 0),
		RequestBytes: request, ReplyBytes: reply, Attempt: int(ctx.attempt), Err: t.fault,
		Sampled: s.o.observers.trace != nil && ctx.trace != nil && ctx.trace.Flags&1 != 0,
	}
	for i := range ctx.method.measures {
		if m := &ctx.method.measures[i]; m.count(ctx, c) && m.ended != nil {
			s.tellMeasured(ctx, m, &c, t.arrived)
		}
	}
	returned = true
}

//go:noinline
func (s *Server) tellMeasured(ctx *callContext, m *measure, c *Measurement, arrived mono.Time) {
	x := observedCalls.Get().(*observedCall)
	i := &x.info
	i.Server, i.Method, i.Attempt, i.Measured, i.began = true, ctx.method.name, c.Attempt, true, arrived
	i.Duration, i.Queue, i.Handle, i.RequestBytes, i.ReplyBytes, i.Err = c.Duration, c.Queue, c.Duration-c.Queue, c.RequestBytes, c.ReplyBytes, asError(c.Err)
	if t := ctx.trace; t != nil && s.o.observers.trace != nil {
		i.Trace = t.Trace
		if t.parent != [8]byte{} {
			i.Parent = Trace{TraceID: t.TraceID, SpanID: t.parent, Flags: t.Flags}
		}
	}
	m.ended(ctx, i)
	*x = observedCall{}
	observedCalls.Put(x)
}

// observeCall tells the observers that a call begins.
func (s *Server) observeCall(x *observedCall, ctx *callContext, arrived, began mono.Time, size int) {
	x.ctx = ctx
	if !s.o.observers.calls {
		return
	}
	if k := ctx.protocolCall(); k != nil {
		size = k.size
	}
	m := ctx.method
	if x.arrived, x.last = arrived, began; began == 0 {
		x.last = mono.Now()
	}
	i := &x.info
	i.Server, i.Method, i.Stream, i.Oneway, i.Attempt, i.began = true, m.name, ctx.isStream(), ctx.oneway, int(ctx.attempt), arrived
	i.Forward = ctx.extras != nil && ctx.extras.forwarded != nil
	i.RequestBytes, i.Queue = size, max(x.last.Sub(arrived), 0)
	if s.o.observers.trace != nil && !x.traced {
		s.chooseTrace(ctx, &x.choice)
		i.Trace, i.Parent = x.choice.Own, x.choice.Parent
	}
	x.ctx = s.o.observers.callBegan(ctx, i)
	x.follow = true
}

// end returns the end of the call.
func (e *execution) end() mono.Time {
	if e.ended != 0 {
		return e.ended
	}
	return mono.Now()
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

// endObserved tells the observers that a call has ended, and returns when that was, or 0 if they do
// not follow calls. size is that of the reply. It is the last use of x.
func (s *Server) endObserved(x *observedCall, fault error, size int) (ended mono.Time) {
	if x.follow {
		if !x.timed {
			x.step()
		}
		ended = x.last
		x.info.Duration, x.info.ReplyBytes, x.info.Err = max(x.last.Sub(x.arrived), 0), size, fault
		s.tellEnd(x)
	}
	*x = observedCall{}
	observedCalls.Put(x)
	return ended
}

func (s *Server) tellEnd(x *observedCall) {
	defer s.recoverObserver(x.info.Method, "an observer panicked at the end of a call")
	s.o.observers.callEnded(x.ctx, &x.info)
}

// recoverObserver is deferred around observers that must not change the result of a call.
func (s *Server) recoverObserver(method, text string) {
	s.observerPanicked(recover(), method, text)
}

// observerPanicked reports what recover has returned, unless it is nil.
func (s *Server) observerPanicked(p any, method, text string) {
	if p != nil {
		s.stats.panics.Add(1)
		s.log.Error(text, "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// observeRefusal tells the observers of a call that did not begin. ctx and m may be nil.
func (s *Server) observeRefusal(ctx *callContext, m *method, e *Error) {
	info := &CallInfo{Server: true, Err: e}
	if m != nil {
		info.Method, info.Stream = m.name, m.handle == nil
	}
	c := context.Background()
	if ctx != nil {
		c, info.Oneway, info.Attempt = ctx, ctx.oneway, int(ctx.attempt)
	}
	defer s.recoverObserver(info.Method, "an observer panicked on a refused call")
	s.o.observers.callEnded(c, info)
}

// executeObserved is execute for a call that observers follow.
func (s *Server) executeObserved(x *observedCall, ctx *callContext, cd codec.Codec, payload, out []byte, run *execution) (result []byte) {
	var fault *Error
	phase, reported, ran := panicRequest, false, false
	fault, result = errExited, out // unless it returns, as the handler may end its goroutine
	defer func() {
		if p := recover(); p != nil {
			fault = s.panicError(ctx, phase, p)
			result = appendObserved(out, ctx, fault, ran)
		}
		if reported {
			s.observeReply(ctx, answerOf(ctx, fault, result[len(out):]))
		}
		size := 0
		if fault == nil {
			size = replyBytes(len(result) - len(out) + len(run.lent.payload))
		}
		run.ended = s.endObserved(x, asError(fault), size)
	}()
	requestSize := run.size(payload)
	s.observeCall(x, ctx, run.arrived, run.began, requestSize)
	if fault = s.observeRequest(ctx, requestSize); fault != nil {
		return appendObserved(out, ctx, fault, false)
	}
	phase, reported, fault = panicDecode, s.o.observers.messages && !ctx.oneway, errExited
	in, fault2 := s.decodeRequest(ctx, cd, payload, run)
	if requestSize > timedCoding {
		x.info.Decode = x.step()
	}
	if fault = fault2; fault != nil {
		return appendObserved(out, ctx, fault, false)
	}
	phase, ran, fault = panicRun, true, errExited
	ctx.method.calls.Add(ctx.conn.lane, 1)
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
	phase, fault = panicEncode, errExited
	run.lends = run.lends && !reported // they get the whole frame
	result, fault = s.appendReply(ctx, cd, reply, run.room(out), run)
	if took := x.step(); large {
		x.info.Encode = took
	} else {
		x.info.Handle = took
	}
	x.timed = true
	if fault != nil {
		return appendObserved(out, ctx, fault, true)
	}
	if now := len(result)-len(out)+len(run.lent.payload) > timedCoding; now != large {
		ctx.method.largeReply.Store(now)
	}
	return result
}

// answerOf returns the frame that answers a call. If the goroutine of the handler ends, there is
// none yet.
func answerOf(ctx *callContext, fault *Error, frame []byte) []byte {
	if fault == errExited {
		return appendError(nil, ctx, fault)
	}
	return frame
}

// replyBytes returns the size of the message in the frame of a reply; 0 if there is no frame.
func replyBytes(frame int) int { return max(frame-wire.HeaderSize-wire.ReplySize, 0) }

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
	x := observedCalls.Get().(*observedCall)
	phase, reported, ran := panicRequest, false, false
	fault := errExited
	defer func() {
		if p := recover(); p != nil {
			fault = s.panicError(ctx, phase, p)
			frame = appendObserved(nil, ctx, fault, ran)
		}
		if reported {
			s.observeReply(ctx, answerOf(ctx, fault, frame))
		}
		s.endObserved(x, asError(fault), 0)
	}()
	s.observeCall(x, ctx, arrived, 0, int(first))
	if fault = s.observeRequest(ctx, int(first)); fault != nil {
		return appendObserved(nil, ctx, fault, false)
	}
	phase, reported, ran, fault = panicRun, s.o.observers.messages, true, errExited
	ctx.method.calls.Add(ctx.conn.lane, 1)
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
