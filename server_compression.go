package anser

import (
	"fmt"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
)

// packing describes the compression of a request that names one.
type packing struct {
	compressor compress.Compressor
	plain      bool // the payload of the request is not compressed
	forced     bool // the client wants every reply compressed
}

// compressionRefused returns the error of a call with a compression that the server does not
// accept.
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

// decodePacked decodes a compressed request.
func (s *Server) decodePacked(p *packing, cd codec.Codec, payload []byte, in any) *Error {
	b := scratch.Get().(*[]byte)
	defer putScratch(b)
	out, err := unpack((*b)[:0], payload, p.compressor, s.o.maxMessage, s.o.maxExpansion, false)
	*b = out
	if err != nil {
		return err.refusal()
	}
	if err := unmarshal(cd, out, in, true); err != nil {
		return undecodable(cd, err)
	}
	return nil
}

// Decompress returns the decompressed message of a request over another protocol, within the limits
// [MaxMessage] and [MaxExpansion]. Call it after [ProtocolConn.Admit]: before that nothing is
// known of the client. It is safe for concurrent use. The error is for the caller of the method.
func (s *Server) Decompress(c compress.Compressor, message []byte) ([]byte, *Error) {
	if s.usable() != nil || c == nil {
		return nil, refusal(Internal, "anser.Server.Decompress: the server is not usable, or there is no compressor")
	}
	out, err := unpack(nil, message, c, s.o.maxMessage, s.o.maxExpansion, false)
	if err != nil {
		return nil, err.refusal()
	}
	return out, nil
}

// refusal returns the error of the request.
func (e *unpackError) refusal() *Error {
	fault := refusal(e.code, "the request: %s", e.text)
	fault.limit = e.limit
	if e.code == ResourceExhausted {
		fault.cause = ErrTooLarge
		fault = fault.WithRetryAfter(RetryNever)
	}
	return fault
}

func undecodable(cd codec.Codec, err error) *Error {
	return refusal(InvalidArgument, "decode the request with %s: %v", cd.Name(), err)
}

// packReply compresses the payload frame[head:] of a reply, if the setting of the server says so.
func (s *Server) packReply(m *method, p *packing, frame []byte, start, head int) ([]byte, error) {
	z := *s.o.replies
	z.compressor = p.compressor
	if p.forced && z.mode == Dynamic {
		z.mode = Forced
	}
	b := scratch.Get().(*[]byte)
	defer putScratch(b)
	*b = append((*b)[:0], frame[head:]...)
	out, packed, err := z.append(frame[:head], *b, m.gains.Of(z.compressor))
	if err != nil {
		return frame, err
	}
	if packed {
		out[start+replyCompressionOffset] = z.compressor.ID()
	}
	return out, nil
}

// streamPacking returns how the messages of a stream whose REQUEST says p are compressed.
func (s *Server) streamPacking(m *method, p *packing) *streamPacking {
	z := &streamPacking{compression: *s.o.replies, gain: m.gains.Of(p.compressor), times: s.o.maxExpansion}
	z.compressor = p.compressor
	if p.forced && z.mode == Dynamic {
		z.mode = Forced
	}
	return z
}

// CompressCalls sets how the calls of a server to its clients, with [Session.Client] and
// [Server.Broadcast], and the replies to them are compressed: with c, as [Compress] does for the
// calls of a client. [Compress] as an option of such a call takes precedence. A client that does
// not accept the algorithm of c gets its calls uncompressed; [AcceptCompression] on the server
// that it passes to [Handlers] sets what it accepts.
func CompressCalls(c compress.Compressor, opts ...CompressOption) ServerOption {
	z, mistake := compressionOf(c, opts)
	return serverOption(func(o *serverOptions) {
		o.calls = z
		o.wants(mistake == nil, "anser.CompressCalls: %w", mistake)
	})
}

// CompressReplies sets how a server compresses the replies to calls that ask for it, such as the
// calls of a client with [Compress]. The default is [Dynamic], and every reply where the client's
// mode is [Forced]; with [Never], no reply is compressed. A reply uses the algorithm of its
// request.
func CompressReplies(opts ...CompressOption) ServerOption {
	return serverOption(func(o *serverOptions) {
		o.replies = newCompression(nil, opts)
		o.wants(o.replies.mistake == nil, "anser.CompressReplies: %w", o.replies.mistake)
	})
}

// AcceptCompression sets which algorithms the server accepts; the default is [compress.BuiltIn],
// which is gzip and deflate. Without arguments the server accepts none. Package compress/all has
// every algorithm. An algorithm replaces an earlier one with the same number. Clients learn which
// algorithms the server accepts when they connect.
func AcceptCompression(c ...compress.Compressor) ServerOption {
	return serverOption(func(o *serverOptions) {
		o.compressors = nil
		for _, c := range c {
			if o.wants(c != nil, "anser.AcceptCompression: a compressor is nil") &&
				o.wants(c.ID() != compress.NoneID, "anser.AcceptCompression: compressor %q has the number 0, which means none: use %d to 255", c.Name(), compress.FirstFree) {
				o.compressors = append(o.compressors, c)
			}
		}
	})
}
