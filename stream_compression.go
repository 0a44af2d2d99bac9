package anser

import (
	"slices"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/wire"
)

// streamPacking is how the messages of a stream are compressed: those that this side sends as its options say, and
// the others if the other side wants it, all with the algorithm that the stream was opened with.
type streamPacking struct {
	compression
	payoff *payoff // of the method's messages that this side sends
	times  int     // by how much a message may grow
}

// compressionID is the compression that messages of the stream may have, or 0.
func (st *stream) compressionID() uint8 {
	if st.packing == nil {
		return compress.NoneID
	}
	return st.packing.compressor.ID()
}

// pack compresses the payload of a message if it pays. The caller holds turn.
func (st *stream) pack(payload []byte) (_ []byte, compression uint8, fault *Error) {
	z := st.packing
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, OutcomeUnknown, PhaseEncode, nil, "the compressor %s panicked: %v", z.compressor.Name(), p)
		}
	}()
	out, packed, err := z.append(st.shrunk[:0], payload, z.payoff)
	if err != nil {
		return nil, 0, failure(Internal, OutcomeUnknown, PhaseEncode, err, "%v", err)
	}
	if st.shrunk = out; cap(out) > maxKeptMessage {
		st.shrunk = nil
	}
	if !packed {
		return payload, compress.NoneID, nil
	}
	return out, z.compressor.ID(), nil
}

// unpack returns the payload of a message that came compressed. It fails the stream where that is not possible.
func (st *stream) unpack(payload []byte) ([]byte, error) {
	out, err := unpack(st.plain[:0], payload, st.packing.compressor, st.limit, st.packing.times)
	if err != nil {
		code := err.code
		if code == InvalidArgument {
			code = st.badMessage
		}
		st.hit(err.limit)
		return nil, st.giveUp(failure(code, OutcomeUnknown, PhaseDecode, err.cause, "a message: %s", err.text))
	}
	st.plain = out
	return out, nil
}

// dress completes the REQUEST of a stream that may be compressed, for the connection that was picked, and returns how
// the messages behind it are.
func (r *opening) dress(o *opened, conn *clientConn) (z *streamPacking, fault *Error) {
	c := r.options.compression
	e := o.endpoint
	if c == nil || !conn.peer.Understands(c.compressor.ID()) || c.to != nil && !c.to(*e.Instance()) {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, NotSent, PhaseEncode, nil, "the compressor %s panicked: %v", c.compressor.Name(), p)
		}
	}()
	z = &streamPacking{compression: *c, payoff: o.method.payoffs.of(c.compressor), times: conn.host.maxExpansion}
	frame, first := slices.Clone(o.call.frame[:r.head]), o.call.frame[r.head:]
	flags, packed := wire.FlagPlain, false
	if len(first) > 0 {
		var err error
		if frame, packed, err = z.append(frame, first, z.payoff); err != nil {
			return nil, failure(Internal, NotSent, PhaseEncode, err, "%v", err)
		}
	}
	if packed {
		flags = 0
	}
	if z.mode == Forced {
		flags |= wire.FlagForced
	}
	frame[flagsOffset] |= byte(flags)
	frame[requestCompressionOffset] = z.compressor.ID()
	wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
	o.call.frame = frame
	return z, nil
}

// streamPacking returns how the messages of a stream are compressed whose REQUEST says p.
func (s *Server) streamPacking(m *method, p *packing) *streamPacking {
	z := &streamPacking{compression: *s.o.replies, payoff: m.payoffs.of(p.compressor), times: s.o.maxExpansion}
	z.compressor = p.compressor
	if p.forced && z.mode == Dynamic {
		z.mode = Forced
	}
	return z
}
