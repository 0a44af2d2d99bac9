package anser

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/gain"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// CompressOption configures which messages are compressed; see [Compress] and [CompressReplies].
type CompressOption interface{ applyCompress(*compression) }

type compressOption func(*compression)

func (f compressOption) applyCompress(z *compression) { f(z) }

// CompressMode selects which messages are compressed. It is a [CompressOption].
type CompressMode uint8

// The modes.
const (
	// Dynamic compresses messages of at least [CompressFrom] bytes for which it pays: cost and gain
	// are learned per method and direction, and compared by [CompressPrice]. It is the default.
	Dynamic CompressMode = iota
	// Forced compresses every message, whatever the cost and even if it does not become smaller.
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

// CompressFrom sets the smallest size in bytes of a message that is compressed in the mode
// [Dynamic]; the default is 200.
func CompressFrom(bytes int) CompressOption {
	return compressOption(func(z *compression) {
		if z.wants(bytes >= 0, "anser.CompressFrom(%d): want at least 0", bytes) {
			z.from = bytes
		}
	})
}

// CompressPrice sets how long compression may take per byte that it saves in the mode [Dynamic];
// the default is 40 ns, which is the time that a link of 200 Mbit/s needs for a byte. Messages of a
// method that cost more, or that shrink by less than a tenth, are sent uncompressed, and a few are
// tried again later.
func CompressPrice(perByte time.Duration) CompressOption {
	return compressOption(func(z *compression) {
		if z.wants(perByte >= 0, "anser.CompressPrice(%v): want at least 0", perByte) {
			z.price = perByte
		}
	})
}

// CompressTo compresses calls only on connections to instances for which want returns true, such as
// instances in another zone. It is used by a client with [Compress]; replies are compressed like
// their requests. The function is called once per attempt of a call, from several goroutines at
// once.
func CompressTo(want func(in registry.Instance) bool) CompressOption {
	return compressOption(func(z *compression) {
		if z.wants(want != nil, "anser.CompressTo: the function is nil: leave the option out for all instances") {
			z.to = want
		}
	})
}

const (
	defaultCompressFrom  = 200
	defaultCompressPrice = 40 * time.Nanosecond
)

// compressionOf returns nil if nothing is compressed.
func compressionOf(c compress.Compressor, opts []CompressOption) (z *compression, mistake error) {
	z = newCompression(c, opts)
	if c == nil || c.ID() == compress.NoneID || z.mode == Never {
		return nil, z.mistake
	}
	return z, z.mistake
}

const (
	defaultExpansion = 100
	// freeExpansion is the size up to which a message may come from any number of bytes.
	freeExpansion = 1 << 20
)

// compression configures how messages are compressed. It is immutable.
type compression struct {
	compressor compress.Compressor
	mode       CompressMode
	from       int
	price      time.Duration // per byte saved
	to         func(registry.Instance) bool
	mistake    error // an invalid option

	// Of a call that is forwarded.
	forwarded bool
	received  bool // the request came compressed
}

// wants returns ok, and records a mistake if it is false.
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

// append appends a message to dst, compressed if the mode says so, and reports whether it is. p
// records the cost and the gain.
func (z *compression) append(dst, message []byte, p *gain.Estimator) (out []byte, packed bool, err error) {
	if !z.worthTrying(len(message), p) {
		p.Plain.Add(1)
		return append(dst, message...), false, nil
	}
	began := mono.Now()
	out, err = z.compressor.Append(dst, message)
	if err != nil {
		return dst, false, fmt.Errorf("compress the message with %s: %w", z.compressor.Name(), err)
	}
	size := len(out) - len(dst)
	took := mono.Since(began)
	p.Note(len(message), size, took)
	if z.mode == Dynamic {
		p.Judge(len(message), size, took, minGain, z.price)
	}
	if !z.worthSending(len(message), size) {
		p.Plain.Add(1)
		return append(out[:len(dst)], message...), false, nil
	}
	p.Packed.Add(1)
	return out, true, nil
}

// worthTrying reports whether to compress a message of the size, as far as is known beforehand.
func (z *compression) worthTrying(size int, p *gain.Estimator) bool {
	switch z.mode {
	case Forced:
		return true
	case Never:
		return false
	}
	return size >= z.from && !p.Skip()
}

// worthSending reports whether to send the compressed form of a message. A receiver takes a message
// that expands a lot for an attack, and one that expands little only costs it work.
func (z *compression) worthSending(before, after int) bool {
	if before > expansion(before, after, defaultExpansion) {
		return false
	}
	return z.mode == Forced || before-after >= before/minGain
}

// minGain is the part of a message, one in minGain bytes, that compression must save.
const minGain = 10

// expansion returns the limit for the decompressed size of a message of size compressed bytes.
func expansion(limit, size, times int) int { return min(limit, max(freeExpansion, times*size)) }

// unpack appends the decompressed message to dst: a request, a reply or a message of a stream.
// limit bounds its size in bytes, times bounds it relative to the compressed size; both are those
// of the client or the server. With an error it returns dst, which may have been moved to a larger
// buffer.
func unpack(dst, message []byte, c compress.Compressor, limit, times int, client bool) ([]byte, *unpackError) {
	most := expansion(limit, len(message), times)
	out, err := c.Decompress(dst, message, most)
	if err == nil && len(out)-len(dst) <= most {
		return out, nil
	}
	if cap(out) > cap(dst) {
		dst = out[:len(dst)] // for the next message: bombs would make it allocate each time
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
			"the message is over the limit of %d bytes after decompression with %s: %s, or send less",
			limit, c.Name(), raiseOn(client))}
	}
}

// unpackError says why a message cannot be decompressed. The caller turns it into an error of its
// side.
type unpackError struct {
	code  Code
	limit limit // noLimit: the message is corrupt
	cause error
	text  string
}

// CompressionStats are the counters for the messages of one method and one algorithm: the requests
// of a client or the replies of a server, and the messages of streams that the side sent. The
// counters only grow.
type CompressionStats struct {
	Method    string
	Algorithm string
	Packed    int64         // messages sent compressed
	Plain     int64         // messages sent uncompressed: too small, or not worth it
	Before    int64         // bytes given to the algorithm
	After     int64         // bytes that it returned
	Time      time.Duration // time spent compressing
	Resting   bool          // Dynamic has found that compression does not pay, and retries later
}

// appendCompressionStats appends the entries of a method.
func appendCompressionStats(list []CompressionStats, method string, gains *gain.Table) []CompressionStats {
	for p := range gains.All() {
		list = append(list, CompressionStats{
			Method: method, Algorithm: p.Name, Packed: p.Packed.Load(), Plain: p.Plain.Load(),
			Before: p.Before.Load(), After: p.After.Load(), Time: time.Duration(p.Spent.Load()), Resting: p.Resting(),
		})
	}
	return list
}

// sortCompression sorts the entries by method and algorithm.
func sortCompression(list []CompressionStats) {
	slices.SortFunc(list, func(a, b CompressionStats) int {
		if c := strings.Compare(a.Method, b.Method); c != 0 {
			return c
		}
		return strings.Compare(a.Algorithm, b.Algorithm)
	})
}
