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
	out, packed, err := z.append(frame[:head], *b, m.gains.Of(z.compressor))
	if err != nil {
		return frame, err
	}
	if packed {
		out[start+replyCompressionOffset] = z.compressor.ID()
	}
	return out, nil
}

// streamPacking returns how the messages of a stream are compressed whose REQUEST says p.
func (s *Server) streamPacking(m *method, p *packing) *streamPacking {
	z := &streamPacking{compression: *s.o.replies, gain: m.gains.Of(p.compressor), times: s.o.maxExpansion}
	z.compressor = p.compressor
	if p.forced && z.mode == Dynamic {
		z.mode = Forced
	}
	return z
}

// CompressCalls sets how the calls are compressed that a server makes to its clients, with [Session.Client] and
// [Server.Broadcast], and their replies: with c, as [Compress] does it for the calls of a client. [Compress] as an
// option of such a call goes before it. A client that does not take the algorithm of c gets its calls uncompressed;
// what it takes is set with [AcceptCompression] for the server that it gives to [Handlers].
func CompressCalls(c compress.Compressor, opts ...CompressOption) ServerOption {
	z, mistake := compressionOf(c, opts)
	return serverOption(func(o *serverOptions) {
		o.calls = z
		o.wants(mistake == nil, "anser.CompressCalls: %w", mistake)
	})
}

// CompressReplies sets how a server compresses the replies to calls that ask for it, as those of a
// client with [Compress] do. The default is [Dynamic], and every reply where the client's mode is
// [Forced]; with [Never], no reply is compressed. A reply has the algorithm of its request.
func CompressReplies(opts ...CompressOption) ServerOption {
	return serverOption(func(o *serverOptions) {
		o.replies = newCompression(nil, opts)
		o.wants(o.replies.mistake == nil, "anser.CompressReplies: %w", o.replies.mistake)
	})
}

// AcceptCompression sets which algorithms the server takes; the default is [compress.BuiltIn], which is gzip and
// deflate, and with no argument it is none. Package compress/all has every algorithm. One with the number of
// another replaces it. Clients learn what the server takes when they connect.
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
