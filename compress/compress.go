// Package compress defines how the payload of a message is compressed, and contains the algorithms
// that every server accepts by default: gzip and deflate. Snappy, zstd and lz4 are packages below
// it. The formats are normative: see docs/protocol.md §13a.
//
// Decompression is bounded. It stops at a limit, it allocates in proportion to the actual bytes
// and never for a length that is only declared, and it never panics on a peer's bytes.
package compress

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// The algorithm numbers on the wire; see docs/protocol.md §13. Applications use FirstFree and
// above.
const (
	NoneID    uint8 = 0
	GzipID    uint8 = 1
	DeflateID uint8 = 2
	SnappyID  uint8 = 3
	ZstdID    uint8 = 4
	LZ4ID     uint8 = 5
	FirstFree uint8 = 64
)

// Compressor compresses and decompresses payloads. Implementations are safe for concurrent use,
// and keep neither of their arguments.
type Compressor interface {
	// ID is the algorithm's number on the wire.
	ID() uint8
	// Name is the algorithm's lower-case name, for options and messages: "gzip".
	Name() string
	// Append appends the compressed form of src to dst and returns the extended slice, which may
	// share dst's memory. The two slices must not overlap. If it fails, the bytes of dst are
	// unchanged.
	Append(dst, src []byte) ([]byte, error)
	// Decompress appends the decompressed form of src to dst, and returns the extended slice. It
	// fails with ErrTooLarge if the result exceeds limit bytes, with ErrChecksum if the result
	// differs from the original data, and with other errors if src is truncated, malformed or
	// followed by more bytes. On an error, too, the returned slice belongs to the caller, but its
	// bytes after dst are undefined. It allocates in proportion to the bytes of src that it has
	// read, whatever lengths src declares.
	Decompress(dst, src []byte, limit int) ([]byte, error)
}

// ErrTooLarge means that a message would exceed the limit after decompression.
var ErrTooLarge = errors.New("the decompressed message exceeds the limit")

// ErrChecksum means that a message does not match the checksum sent with it.
var ErrChecksum = errors.New("the checksum is wrong: the message was changed on its way")

// BuiltIn returns the compressors that servers accept by default: gzip and deflate. The other
// algorithms are packages below this one, so that only programs that use them link them; package
// all includes all of them.
func BuiltIn() []Compressor { return []Compressor{Gzip(), Deflate()} }

// None returns the compressor that changes nothing. Its number on the wire marks an uncompressed
// payload.
func None() Compressor { return none{} }

type none struct{}

func (none) ID() uint8    { return NoneID }
func (none) Name() string { return "none" }

func (none) Append(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

func (none) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if len(src) > limit {
		return dst, tooLarge("none", limit)
	}
	return append(dst, src...), nil
}

// tooLarge returns ErrTooLarge with the limit.
func tooLarge(name string, limit int) error {
	return fmt.Errorf("%s: %w: %d bytes", name, ErrTooLarge, limit)
}

// errTruncated is the cause if the bytes end too early.
var errTruncated = io.ErrUnexpectedEOF

// malformed returns an error about invalid compressed bytes.
func malformed(name, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{name}, args...)...)
}

// minRead is the minimum space for the next read of readBounded.
const minRead = 512

// readBounded appends the bytes read from r to dst, at most limit of them. hint is an estimate of
// their number; the buffer doubles as needed.
func readBounded(dst []byte, r io.Reader, name string, limit, hint int) ([]byte, error) {
	start := len(dst)
	// One byte more than the limit may be read: that is how an excess is detected.
	most := limit + 1
	dst = slices.Grow(dst, min(max(hint, minRead), most))
	for {
		have := len(dst) - start
		if have > limit {
			return dst, tooLarge(name, limit)
		}
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(max(have, minRead), most-have))
		}
		n, err := r.Read(dst[len(dst):min(cap(dst), start+most)])
		dst = dst[:len(dst)+n]
		switch {
		case err == io.EOF:
			if len(dst)-start > limit {
				return dst, tooLarge(name, limit)
			}
			return dst, nil
		case err != nil:
			return dst, fmt.Errorf("%s: %w", name, err)
		}
	}
}
