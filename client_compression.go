package anser

import (
	"slices"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/wire"
)

// compressRequest completes the frame of a call that may be compressed, for the connection that
// was picked: servers differ in the algorithms that they accept. If it fails, the call is over.
func (k *call) compressRequest(e *endpoint, c *callerHalf, m *clientMethod) (fault *Error) {
	z := k.compression
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, NotSent, PhaseEncode, nil, "the compressor %s panicked: %v", z.compressor.Name(), p)
		}
		if fault != nil {
			e.Abort()
			fault.Address, fault.RetryAfter = e.Instance().Address, RetryNever
		}
	}()
	if z.forwarded {
		return k.compressForward(c)
	}
	k.frame = k.frame[:k.head]
	flags := wire.Flags(k.frame[flagsOffset]) &^ (wire.FlagPlain | wire.FlagForced)
	id := compress.NoneID
	if c.peer.Understands(z.compressor.ID()) && (z.to == nil || z.to(*e.Instance())) {
		frame, packed, err := z.append(k.frame, k.plain, m.gains.Of(z.compressor))
		if err != nil {
			return failure(Internal, NotSent, PhaseEncode, err, "%v", err)
		}
		id, k.frame = z.compressor.ID(), frame
		if !packed {
			flags |= wire.FlagPlain
		}
		if z.mode == Forced {
			flags |= wire.FlagForced
		}
	} else {
		k.frame = append(k.frame, k.plain...)
	}
	k.frame[flagsOffset], k.frame[requestCompressionOffset] = byte(flags), id
	wire.PutLength(k.frame, uint32(len(k.frame)-wire.HeaderSize))
	return nil
}

// compressRequest completes the REQUEST of a stream that may be compressed, for the connection that
// was picked, and returns the compression of the messages that follow.
func (r *streamOpening) compressRequest(o *clientStream, conn *callerHalf) (z *streamPacking, fault *Error) {
	c := r.options.compression
	e := o.endpoint
	if c != nil && c.forwarded {
		return r.compressForward(o, conn)
	}
	if c == nil || !conn.peer.Understands(c.compressor.ID()) || c.to != nil && !c.to(*e.Instance()) {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, NotSent, PhaseEncode, nil, "the compressor %s panicked: %v", c.compressor.Name(), p)
		}
	}()
	z = &streamPacking{compression: *c, gain: o.method.gains.Of(c.compressor), times: conn.host.maxExpansion}
	frame, first := slices.Clone(o.call.frame[:o.call.head]), o.call.frame[o.call.head:]
	flags, packed := wire.FlagPlain, false
	if len(first) > 0 {
		var err error
		if frame, packed, err = z.append(frame, first, z.gain); err != nil {
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

// Compress sets how the requests and replies of calls are compressed: with c, in the mode [Dynamic]
// unless an option says otherwise. As an option of a client it applies to all calls on the client's
// connections, as an option of a call to that call. With nil or [compress.None], the default,
// nothing is compressed.
//
// The messages of a stream are treated like requests and replies, each on its own; as an option of
// [Open] it applies to the stream. A server that does not accept the algorithm of c gets its calls
// uncompressed.
func Compress(c compress.Compressor, opts ...CompressOption) DialCallOption {
	z, mistake := compressionOf(c, opts)
	return dialCallOption(func(o *callOptions) {
		o.compression = z
		o.wants(mistake == nil, "anser.Compress: %w", mistake)
	})
}
