package anser

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// execute decodes the request, runs the handler, and appends the frame of its reply or error to
// out. A panic of the user's code does not leave this function.
//
// Everything that is not needed while the handler runs is in functions of its own: a handler that
// waits keeps the stack of its goroutine, which would be twice as large with a frame of 1 KiB
// here. Workers run most calls in job.execute, whose frame is still smaller.
//
// run has the times that are known, for observers, and gets the end. On a worker, the reply goes to
// the buffer of its job.
func (s *Server) execute(ctx *callContext, cd codec.Codec, payload, out []byte, run *execution) (result []byte) {
	if s.mayFollow(ctx, run.size(payload)) {
		if x := s.follow(ctx, run.size(payload), run); x != nil {
			return s.executeObserved(x, ctx, cd, payload, out, run)
		}
	}
	if ctx.method.measures != nil && run.began == 0 {
		run.began = mono.Now()
	}
	run.phase = panicDecode
	defer func() {
		if p := recover(); p != nil {
			run.fault = s.panicError(ctx, run.phase, p)
			result = appendUnfinished(out, ctx, run.fault)
		}
		if run.measured {
			s.measure(ctx, run, run.size(payload), len(result)-len(out)+len(run.lent.payload))
		}
	}()
	in, fault := s.decodeRequest(ctx, cd, payload, run)
	if fault != nil {
		return appendRefusal(out, ctx, fault)
	}
	run.handle(ctx)
	reply, err := ctx.method.run(ctx, in)
	return s.answerWith(ctx, cd, reply, err, out, run)
}

// answerWith appends the frame that answers a call whose handler has returned.
func (s *Server) answerWith(ctx *callContext, cd codec.Codec, reply any, err error, out []byte, run *execution) (result []byte) {
	if run.fault = nil; err != nil {
		run.fault = handlerError(err)
		return appendFault(out, ctx, run.fault)
	}
	if ctx.oneway {
		return out
	}
	run.phase, run.fault = panicEncode, errExited
	if result, run.fault = s.appendReply(ctx, cd, reply, run.room(out), run); run.fault != nil {
		return appendFault(out, ctx, run.fault)
	}
	return result
}

// decodeRequest returns the decoded request, or why the call is refused.
func (s *Server) decodeRequest(ctx *callContext, cd codec.Codec, payload []byte, run *execution) (in any, fault *Error) {
	if k := ctx.protocolCall(); k != nil {
		return k.request, nil
	}
	if run.job != nil && run.job.decoded {
		if run.job.fault == errExited {
			runtime.Goexit()
		}
		return run.job.message, run.job.fault
	}
	in = ctx.method.newRequest()
	if ctx.extras != nil && ctx.extras.packing != nil && !ctx.extras.packing.plain {
		fault = s.decodePacked(ctx.extras.packing, cd, payload, in)
	} else if run.job != nil && run.job.large != nil && keepPayload(cd, payload, in) {
		run.job.large = nil // the handler has it
	} else if err := unmarshalRequest(cd, payload, in); err != nil {
		fault = undecodable(cd, err)
	}
	if run.job != nil && !borrows(cd) {
		run.job.dropRequest()
	}
	return in, fault
}

// appendReply appends the frame of a reply, or returns the error that takes its place. The rest of
// the frame may be in run.lent.
func (s *Server) appendReply(ctx *callContext, cd codec.Codec, reply any, out []byte, run *execution) ([]byte, *Error) {
	if k := ctx.protocolCall(); k != nil {
		k.reply = reply
		return out, nil
	}
	start := len(out)
	result := wire.AppendReplyHead(out, ctx.id, ctx.method.flags(), ctx.codec, 0, ctx.trailers())
	head := len(result)
	lends := run.lends && (ctx.extras == nil || ctx.extras.packing == nil)
	if lends {
		if lent := lendable(cd, reply); lent != nil {
			if fault := ctx.endReply(result[start:], len(lent)); fault != nil {
				return nil, fault
			}
			run.lent.payload = lent
			return result, nil
		}
	}
	result, err := cd.Append(result, reply)
	if err != nil {
		return nil, &Error{Code: Internal, Outcome: Executed, Message: fmt.Sprintf("encode the reply with %s: %v", cd.Name(), err)}
	}
	if ctx.extras != nil && ctx.extras.packing != nil {
		if result, err = s.packReply(ctx.method, ctx.extras.packing, result, start, head); err != nil {
			return nil, &Error{Code: Internal, Outcome: Executed, Message: err.Error()}
		}
	}
	if fault := ctx.endReply(result[start:], 0); fault != nil {
		return nil, fault
	}
	if lends && run.job != nil && len(result)-head >= lendFrom {
		run.lent = lentReply{payload: result[head:], room: run.job.lendRoom(result)}
		return result[:head], nil
	}
	return result, nil
}

// endReply completes the frame of a reply, of which lent bytes follow.
func (c *callContext) endReply(frame []byte, lent int) *Error {
	size := len(frame) - wire.HeaderSize + lent
	if uint64(size) > c.conn.peer.MaxFrame {
		return c.replyTooLong(size)
	}
	wire.PutLength(frame, uint32(size))
	return nil
}

// replyTooLong is the error of a call whose reply the client does not accept.
func (c *callContext) replyTooLong(size int) *Error {
	return &Error{
		Code: ResourceExhausted, Outcome: Executed,
		Message: fmt.Sprintf("the reply of %d bytes is over the client's limit of %s: %s, or ask for less", size, frameLimit(c.conn.peer.MaxFrame), raiseOn(true)),
	}
}

// unmarshalRequest decodes into a zero value, which may refer to payload until the handler has
// returned: payload is not overwritten before.
func unmarshalRequest(cd codec.Codec, payload []byte, in any) error {
	switch cd := cd.(type) {
	case codec.FreshUnmarshaler:
		return cd.UnmarshalFresh(payload, in)
	case codec.Borrower:
		return cd.UnmarshalBorrowed(payload, in)
	}
	return cd.Unmarshal(payload, in)
}

// borrows reports whether a message may refer to the encoded request until the handler has
// returned.
func borrows(cd codec.Codec) bool {
	if _, fresh := cd.(codec.FreshUnmarshaler); fresh {
		return false
	}
	_, borrows := cd.(codec.Borrower)
	return borrows
}

func (m *method) flags() wire.Flags {
	if m.idempotent {
		return wire.FlagIdempotent
	}
	return 0
}

// panicPhase is a phase of a call in which the user's code may panic.
type panicPhase uint8

const (
	panicRequest panicPhase = iota
	panicDecode
	panicRun
	panicEncode
	panicForward
)

// panicTexts are the texts of the caller's errors.
var panicTexts = [...]string{
	panicRequest: "an observer panicked on the request",
	panicDecode:  "the codec panicked on the request",
	panicRun:     "the handler panicked",
	panicEncode:  "the codec panicked on the reply",
	panicForward: "the function of anser.Forward panicked",
}

// appendFault appends the error of a call that ran.
func appendFault(out []byte, ctx *callContext, e *Error) []byte {
	ctx.method.failed.Add(1)
	return appendError(out, ctx, e)
}

// appendRefusal appends the error of a call that did not run.
func appendRefusal(out []byte, ctx *callContext, e *Error) []byte {
	ctx.conn.server.refused(ctx, ctx.method, e)
	return appendError(out, ctx, e)
}

// appendError appends the error of a call, unless the caller no longer needs it.
func appendError(out []byte, ctx *callContext, e *Error) []byte {
	if k := ctx.protocolCall(); k != nil {
		k.reply, k.fault = nil, e
		return out
	}
	if ctx.oneway {
		return out
	}
	b := e.body()
	b.Metadata = ctx.trailers()
	return ctx.conn.appendError(out, ctx.id, ctx.method.flags(), &b)
}

// appendError appends an ERROR frame that the client accepts. Parts that are too large are cut or
// left out, since a frame over the client's limit would end the connection.
func (c *calleeHalf) appendError(out []byte, id uint64, flags wire.Flags, b *wire.ErrorBody) []byte {
	limit := int(c.peer.MaxFrame)
	if n := min(limit/2, wire.MaxMessage); len(b.Message) > n {
		b.Message = b.Message[:n-len("…")] + "…"
	}
	room := limit - wire.ErrorSize - len(b.Message)
	if len(b.Details)+len(b.Metadata) > room {
		b.Details = nil
	}
	if len(b.Metadata) > room {
		b.Metadata = nil
	}
	return wire.AppendError(out, id, flags, b)
}

// panicked turns a panic of the user's code into an error that contains only an id, by which the
// entry in the server's log is found.
func (s *Server) panicked(ctx *callContext, out []byte, phase panicPhase, p any) []byte {
	return appendUnfinished(out, ctx, s.panicError(ctx, phase, p))
}

// appendUnfinished appends the error of a call that panicked.
func appendUnfinished(out []byte, ctx *callContext, e *Error) []byte {
	if e.Outcome == Refused {
		return appendRefusal(out, ctx, e)
	}
	return appendFault(out, ctx, e)
}

// panicError logs a panic of the user's code in one of the phases of a call, and returns the error
// of the call.
func (s *Server) panicError(ctx *callContext, phase panicPhase, p any) *Error {
	e := s.logPanic(ctx, phase, p)
	if phase == panicDecode || phase == panicRequest {
		e.Outcome, e.RetryAfter = Refused, RetryNever
	}
	return e
}

// logPanic logs a panic of the user's code, and returns the error of the call.
func (s *Server) logPanic(ctx *callContext, phase panicPhase, p any) *Error {
	s.stats.panics.Add(1)
	id := rand.Text()[:10]
	text := panicTexts[phase]
	s.log.Error(text, "method", ctx.method.name, "id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return &Error{Code: Internal, Outcome: Executed, Message: fmt.Sprintf("%s; the server's log has the details under id %s", text, id)}
}
