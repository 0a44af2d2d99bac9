package anser

import (
	"crypto/rand"
	"fmt"
	"runtime/debug"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// execute decodes the request, runs the handler, and appends the frame of its reply or error to out.
// Nothing that the user's code does reaches beyond this call.
func (s *Server) execute(ctx *callContext, cd codec.Codec, payload, out []byte) (result []byte) {
	m := ctx.method
	m.calls.Add(1)
	phase := "decode the request"
	defer func() {
		if p := recover(); p != nil {
			result = s.panicked(ctx, out, phase, p)
		}
	}()
	in := m.newRequest()
	if err := cd.Unmarshal(payload, in); err != nil {
		return appendFault(out, ctx, refusal(InvalidArgument, "decode the request with %s: %v", cd.Name(), err))
	}
	phase = "run the handler"
	reply, err := m.run(ctx, in)
	if ctx.oneway {
		return out
	}
	if err != nil {
		return appendFault(out, ctx, handlerError(err))
	}
	phase = "encode the reply"
	start := len(out)
	result = wire.AppendReplyHead(out, ctx.id, m.flags(), ctx.codec, 0, ctx.trailers())
	if result, err = cd.Append(result, reply); err != nil {
		return appendFault(out, ctx, &Error{Code: Internal, Outcome: Executed, Message: fmt.Sprintf("encode the reply with %s: %v", cd.Name(), err)})
	}
	size := len(result) - start - wire.HeaderSize
	if uint64(size) > ctx.conn.peerSays.MaxFrame {
		return appendFault(out, ctx, &Error{
			Code: ResourceExhausted, Outcome: Executed,
			Message: fmt.Sprintf("the reply of %d bytes is over the client's limit of %d: raise it there with anser.MaxMessage, or ask for less", size, ctx.conn.peerSays.MaxFrame),
		})
	}
	wire.PutLength(result[start:], uint32(size))
	return result
}

func (m *method) flags() wire.Flags {
	if m.idempotent {
		return wire.FlagIdempotent
	}
	return 0
}

func appendFault(out []byte, ctx *callContext, e *Error) []byte {
	ctx.method.failed.Add(1)
	if ctx.oneway {
		return out
	}
	b := e.body()
	b.Metadata = ctx.trailers()
	return ctx.conn.appendError(out, ctx.id, ctx.method.flags(), &b)
}

// appendError appends an ERROR frame that the client accepts. What is too large is cut or left out,
// as a frame over the client's limit would cost it the connection.
func (c *serverConn) appendError(out []byte, id uint64, flags wire.Flags, b *wire.ErrorBody) []byte {
	limit := int(c.peerSays.MaxFrame)
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

// panicked turns a panic of the user's code into an error that tells the caller nothing but an id, by which
// the server's log is found.
func (s *Server) panicked(ctx *callContext, out []byte, phase string, p any) []byte {
	s.stats.panics.Add(1)
	id := rand.Text()[:10]
	s.log.Error("a handler panicked", "method", ctx.method.name, "phase", phase, "id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return appendFault(out, ctx, &Error{
		Code: Internal, Outcome: Executed,
		Message: fmt.Sprintf("the handler panicked; the server's log has the details under id %s", id),
	})
}
