// Package compress defines how the payload of a message is made smaller, and holds the algorithms that every
// server takes without being told to: gzip and deflate. Snappy, zstd and lz4 are packages below it. The
// formats are normative: see docs/protocol.md §13a.
//
// Decompression is bounded. It stops where a limit is passed, it allocates for what the bytes at hand
// can hold and never for a length that was only declared, and it never panics on a peer's bytes.
package compress

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// The numbers of the algorithms on the wire; see docs/protocol.md §13. Applications use FirstFree and up.
const (
	NoneID    uint8 = 0
	GzipID    uint8 = 1
	DeflateID uint8 = 2
	SnappyID  uint8 = 3
	ZstdID    uint8 = 4
	LZ4ID     uint8 = 5
	FirstFree uint8 = 64
)

// Compressor makes payloads smaller and back. Implementations are safe for concurrent use, and keep
// neither of the slices that they are given.
type Compressor interface {
	// ID is the algorithm's number on the wire.
	ID() uint8
	// Name is the algorithm's lower-case name, for humans and options: "gzip".
	Name() string
	// Append appends the compressed form of src to dst and returns the extended slice, which may
	// share dst's memory. The two slices must not overlap. When it fails, the bytes of dst itself
	// are unchanged.
	Append(dst, src []byte) ([]byte, error)
	// Decompress appends to dst what src was made from, and returns the extended slice. It fails
	// with ErrTooLarge when that is more than limit bytes, with ErrChecksum when the bytes that
	// came out are not those that went in, and with other errors when src is truncated, malformed
	// or followed by more bytes. With an error, too, the returned slice belongs to the caller, but what
	// it holds behind dst means nothing. It allocates in proportion to the bytes of src that it has
	// used, whatever lengths src declares.
	Decompress(dst, src []byte, limit int) ([]byte, error)
}

// ErrTooLarge says that a message would be larger than the limit after decompression.
var ErrTooLarge = errors.New("more comes out than the limit allows")

// ErrChecksum says that a message does not have the checksum that was sent with it.
var ErrChecksum = errors.New("the checksum is wrong: the message was changed on its way")

// BuiltIn returns the compressors that servers take without being told to: gzip and deflate. Those of the other
// algorithms are packages below this one, so that only programs that use them link them; package all has
// them all.
func BuiltIn() []Compressor { return []Compressor{Gzip(), Deflate()} }

// None returns the compressor that changes nothing. Its number says on the wire that a payload is
// not compressed.
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

// tooLarge names the limit that was passed.
func tooLarge(name string, limit int) error {
	return fmt.Errorf("%s: %w: %d bytes", name, ErrTooLarge, limit)
}

// errTruncated is the cause where the bytes end too early.
var errTruncated = io.ErrUnexpectedEOF

// malformed says what is wrong with compressed bytes.
func malformed(name, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{name}, args...)...)
}

// minRead is the least room for the next read of readBounded.
const minRead = 512

// readBounded appends what r gives to dst, at most limit bytes. hint is a first guess of how much that
// is; the buffer doubles as bytes come out.
func readBounded(dst []byte, r io.Reader, name string, limit, hint int) ([]byte, error) {
	start := len(dst)
	// One byte more than the limit may come out: that is how it is noticed.
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
