package anser

import (
	"errors"
	"fmt"
	"time"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/registry"
)

// CompressOption says which messages are compressed; see [Compress] and [CompressReplies].
type CompressOption interface{ applyCompress(*compression) }

type compressOption func(*compression)

func (f compressOption) applyCompress(z *compression) { f(z) }

// CompressMode says which messages are compressed. It is a [CompressOption].
type CompressMode uint8

// The modes.
const (
	// Dynamic compresses messages from a size on ([CompressFrom]) for which it pays: what it costs
	// and saves is learned for each method and direction ([CompressPrice]). It is the default.
	Dynamic CompressMode = iota
	// Forced compresses every message, whatever it costs and whether it becomes smaller or not.
	Forced
	// Never compresses no message.
	Never
)

func (m CompressMode) applyCompress(z *compression) {
	if z.wants(m <= Never, "CompressMode(%d): want anser.Dynamic (%d), anser.Forced (%d) or anser.Never (%d)", m, Dynamic, Forced, Never) {
		z.mode = m
	}
}

// String returns the name of the mode in lower case.
func (m CompressMode) String() string {
	switch m {
	case Dynamic:
		return "dynamic"
	case Forced:
		return "forced"
	case Never:
		return "never"
	}
	return "unknown compression mode"
}

// CompressFrom sets from how many bytes on a message is compressed in the mode [Dynamic]; the default
// is 200.
func CompressFrom(bytes int) CompressOption {
	return compressOption(func(z *compression) {
		if z.wants(bytes >= 0, "anser.CompressFrom(%d): want at least 0", bytes) {
			z.from = bytes
		}
	})
}

// CompressPrice sets how long compressing may take for each byte that it saves in the mode [Dynamic];
// the default is 40 ns, which a link of 200 Mbit/s needs for a byte. Where a method's messages
// cost more, or shrink by less than a tenth, they travel as they are, and a few are tried again
// later.
func CompressPrice(perByte time.Duration) CompressOption {
	return compressOption(func(z *compression) {
		if z.wants(perByte >= 0, "anser.CompressPrice(%v): want at least 0", perByte) {
			z.price = perByte
		}
	})
}

// CompressTo compresses calls only on connections to instances for which want returns true, such as
// those in another zone. A client uses it with [Compress]; replies follow their requests. The
// function is called for each attempt of a call, from several goroutines at once.
func CompressTo(want func(in registry.Instance) bool) CompressOption {
	return compressOption(func(z *compression) { z.to = want })
}

const (
	defaultCompressFrom  = 200
	defaultCompressPrice = 40 * time.Nanosecond
)

// Compress sets how the requests and replies of calls are compressed: with c, in the mode [Dynamic]
// unless an option says otherwise. As an option of a client it holds for all calls on the client's
// connections, as one of a call for that call. With nil or [compress.None] nothing is compressed,
// which is the default.
//
// The messages of a stream are treated like requests and replies, each by itself; as an option of [Open] it holds for
// the stream. A server that does not take the algorithm of c gets its calls uncompressed.
func Compress(c compress.Compressor, opts ...CompressOption) DialCallOption {
	z, mistake := compressionOf(c, opts)
	return dialCallOption(func(o *callOptions) {
		o.compression = z
		o.wants(mistake == nil, "anser.Compress: %w", mistake)
	})
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

// compressionOf returns nil where nothing is to be compressed.
func compressionOf(c compress.Compressor, opts []CompressOption) (z *compression, mistake error) {
	z = newCompression(c, opts)
	if c == nil || c.ID() == compress.NoneID || z.mode == Never {
		return nil, z.mistake
	}
	return z, z.mistake
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

// MaxExpansion sets how many times its size a message of more than 1 MiB may have after
// decompression; the default is 100. A message may have 1 MiB and MaxMessage bounds it in any case. Senders that
// are made with this package send a message uncompressed that would gain more than 100 times.
func MaxExpansion(times int) Option {
	return sideOption(func(o *sideOptions) {
		if o.wants(times >= 1, "anser.MaxExpansion(%d): want at least 1", times) {
			o.maxExpansion = times
		}
	})
}

const (
	defaultExpansion = 100
	// freeExpansion is the size up to which a message may come from any number of bytes.
	freeExpansion = 1 << 20
)

// compression is how messages are compressed. It is not changed once it was made.
type compression struct {
	compressor compress.Compressor
	mode       CompressMode
	from       int
	price      time.Duration // for a saved byte
	to         func(registry.Instance) bool
	mistake    error // an option that cannot work
}

// wants reports ok, and notes a mistake if it is false.
func (z *compression) wants(ok bool, format string, args ...any) bool {
	if !ok && z.mistake == nil {
		z.mistake = fmt.Errorf(format, args...)
	}
	return ok
}

func newCompression(c compress.Compressor, opts []CompressOption) *compression {
	z := &compression{compressor: c, from: defaultCompressFrom, price: defaultCompressPrice}
	for _, opt := range opts {
		if z.wants(opt != nil, "an option of compression is nil") {
			opt.applyCompress(z)
		}
	}
	return z
}

// append appends a message to dst, compressed if the mode wants it and otherwise as it is. packed says
// which. What it learns is noted at p.
func (z *compression) append(dst, message []byte, p *payoff) (out []byte, packed bool, err error) {
	if !z.worthTrying(len(message), p) {
		p.plain.Add(1)
		return append(dst, message...), false, nil
	}
	began := nanotime()
	out, err = z.compressor.Append(dst, message)
	if err != nil {
		return dst, false, fmt.Errorf("compress the message with %s: %w", z.compressor.Name(), err)
	}
	size := len(out) - len(dst)
	p.note(len(message), size, nanotime()-began, z)
	if !z.worthSending(len(message), size) {
		p.plain.Add(1)
		return append(out[:len(dst)], message...), false, nil
	}
	p.packed.Add(1)
	return out, true, nil
}

// worthTrying reports whether a message of the size is to be compressed, as far as is known before.
func (z *compression) worthTrying(size int, p *payoff) bool {
	switch z.mode {
	case Forced:
		return true
	case Never:
		return false
	}
	return size >= z.from && !p.skips()
}

// worthSending reports whether a compressed message is to be sent. A receiver takes one that gains a
// lot for an attack, and one that gains little only makes it work.
func (z *compression) worthSending(before, after int) bool {
	if before > expansion(before, after, defaultExpansion) {
		return false
	}
	return z.mode == Forced || before-after >= before/minGain
}

// minGain is the share of a message, one in so many bytes, that compressing it has to save.
const minGain = 10

// expansion returns how large a message of size compressed bytes may become under a limit.
func expansion(limit, size, times int) int { return min(limit, max(freeExpansion, times*size)) }

// unpack appends the decompressed message to dst. limit bounds it in bytes, times in relation to its
// compressed size. It is for requests, replies and the messages of streams. With an error it returns dst, which
// may have been moved to where there is more room.
func unpack(dst, message []byte, c compress.Compressor, limit, times int) ([]byte, *unpackError) {
	most := expansion(limit, len(message), times)
	out, err := c.Decompress(dst, message, most)
	if err == nil && len(out)-len(dst) <= most {
		return out, nil
	}
	if cap(out) > cap(dst) {
		dst = out[:len(dst)] // for the next message: bombs would have it made anew each time
	}
	switch {
	case err != nil && errors.Is(err, compress.ErrChecksum):
		return dst, &unpackError{code: DataLoss, cause: err, text: fmt.Sprintf("decompress with %v", err)}
	case err != nil && !errors.Is(err, compress.ErrTooLarge):
		return dst, &unpackError{code: InvalidArgument, cause: err, text: fmt.Sprintf("decompress with %v", err)}
	case most < limit:
		return dst, &unpackError{ResourceExhausted, limitExpansion, err, fmt.Sprintf(
			"%d bytes of %s become more than %d, over the limit of %d times: send the message uncompressed, or raise the limit with anser.MaxExpansion",
			len(message), c.Name(), most, times)}
	default:
		return dst, &unpackError{ResourceExhausted, limitMessage, err, fmt.Sprintf(
			"the message is over the limit of %d bytes after decompression with %s: raise it with anser.MaxMessage, or send less",
			limit, c.Name())}
	}
}

// unpackError says why a message cannot be decompressed. Where it arrived decides about the rest.
type unpackError struct {
	code  Code
	limit limit // noLimit: it is broken
	cause error
	text  string
}
