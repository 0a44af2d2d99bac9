package anser

import (
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/gain"
)

// streamPacking is the compression of the messages of a stream. This side compresses the messages
// that it sends as its options say; received ones are compressed if the peer chooses to. All use
// the algorithm that the stream was opened with.
type streamPacking struct {
	compression
	gain  *gain.Estimator // of the method's messages that this side sends
	times int             // limit of the expansion of a message
}

// compressionID returns the compression that messages of the stream may have, or 0 for none.
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
	out, packed, err := z.append(st.shrunk[:0], payload, z.gain)
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

// unpack returns the payload of a compressed message. It fails the stream if that is not possible.
func (st *stream) unpack(payload []byte) ([]byte, error) {
	out, err := unpack(st.plain[:0], payload, st.packing.compressor, st.limit, st.packing.times, st.side.isClient())
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
