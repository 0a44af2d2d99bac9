package anser

import (
	"fmt"
	"sync"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/wire"
)

// Where the compression stands in the frame of a REQUEST and of a REPLY.
const (
	requestCompressionOffset = wire.HeaderSize + 5
	replyCompressionOffset   = wire.HeaderSize + 1
)

// dress completes the frame of a call that may be compressed, for the connection that was picked: what
// one server takes another one need not. A call for which that fails is over.
func (k *call) dress(e *endpoint, c *clientConn, m *clientMethod) (fault *Error) {
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
	k.frame = k.frame[:k.head]
	flags := wire.Flags(k.frame[flagsOffset]) &^ (wire.FlagPlain | wire.FlagForced)
	id := compress.NoneID
	if c.peer.Understands(z.compressor.ID()) && (z.to == nil || z.to(*e.Instance())) {
		frame, packed, err := z.append(k.frame, k.plain, m.payoffs.of(z.compressor))
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

// asked reports whether the reply of the call may have the compression.
func (k *call) asked(compression uint8) bool {
	return k.compression != nil && k.frame[requestCompressionOffset] == compression
}

// unpackReply returns the payload of a reply that came compressed. It runs on the caller's goroutine.
func (k *call) unpackReply(h *host) ([]byte, *Error) {
	out, err := unpack(k.plain[:0], k.reply(), k.compression.compressor, h.maxMessage, h.maxExpansion)
	k.plain = out
	if err != nil {
		code := err.code
		if code == InvalidArgument { // nobody's argument: the server has sent it
			code = Internal
		}
		return nil, failure(code, Executed, PhaseDecode, err.cause, "the reply: %s", err.text)
	}
	return out, nil
}

// packing is what a server has to know of a request that names a compression.
type packing struct {
	compressor compress.Compressor
	plain      bool // the payload of the request is not compressed
	forced     bool // the client wants every reply compressed
}

// compressionRefused says why a call with a compression that the server does not take fails.
func (s *Server) compressionRefused(id uint8) *Error {
	return refusal(Unimplemented, "compression %d is not known here: this server takes %s; send the request with one of those, or uncompressed, or give the server the algorithm with anser.AcceptCompression", id, s.compressionNames())
}

// compressionNames lists the algorithms for an error message.
func (s *Server) compressionNames() string {
	names := "none"
	for id, c := range s.compressors {
		if c != nil {
			names += fmt.Sprintf(", %d %s", id, c.Name())
		}
	}
	return names
}

// scratch holds the buffers for messages before or after compression.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

func putScratch(b *[]byte) {
	if cap(*b) <= maxKeptMessage {
		scratch.Put(b)
	}
}

// decodePacked decodes a request that came compressed.
func (s *Server) decodePacked(p *packing, cd codec.Codec, payload []byte, in any) *Error {
	b := scratch.Get().(*[]byte)
	defer putScratch(b)
	out, err := unpack((*b)[:0], payload, p.compressor, s.o.maxMessage, s.o.maxExpansion)
	*b = out
	if err != nil {
		fault := refusal(err.code, "the request: %s", err.text)
		fault.limit = err.limit
		if err.code == ResourceExhausted {
			fault = fault.WithRetryAfter(RetryNever)
		}
		return fault
	}
	if err := unmarshal(cd, out, in, true); err != nil {
		return undecodable(cd, err)
	}
	return nil
}

func undecodable(cd codec.Codec, err error) *Error {
	return refusal(InvalidArgument, "decode the request with %s: %v", cd.Name(), err)
}

// packReply compresses the payload frame[head:] of a reply, if the server's setting wants it.
func (s *Server) packReply(m *method, p *packing, frame []byte, start, head int) ([]byte, error) {
	z := *s.o.replies
	z.compressor = p.compressor
	if p.forced && z.mode == Dynamic {
		z.mode = Forced
	}
	b := scratch.Get().(*[]byte)
	defer putScratch(b)
	*b = append((*b)[:0], frame[head:]...)
	out, packed, err := z.append(frame[:head], *b, m.payoffs.of(z.compressor))
	if err != nil {
		return frame, err
	}
	if packed {
		out[start+replyCompressionOffset] = z.compressor.ID()
	}
	return out, nil
}
