// Package snappy is the compressor for the block format of snappy.
package snappy

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/anser-rpc/anser/compress"
)

// New returns the compressor for the block format of snappy. It has no checksum.
func New() compress.Compressor { return block{} }

type block struct{}

func (block) ID() uint8    { return compress.SnappyID }
func (block) Name() string { return "snappy" }

func (block) Append(dst, src []byte) ([]byte, error) {
	most := s2.MaxEncodedLen(len(src))
	if most < 0 {
		return dst, malformed("a message of %d bytes is too large for the format", len(src))
	}
	start := len(dst)
	dst = slices.Grow(dst, most)
	// EncodeSnappy writes into its argument if that is large enough, and allocates otherwise.
	out := s2.EncodeSnappy(dst[start:start+most], src)
	return dst[:start+len(out)], nil
}

// maxSnappyRatio is above the highest compression ratio: the best element expands 3 bytes to 64.
const maxSnappyRatio = 22

func (block) Decompress(dst, src []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil {
		return dst, malformed("%w", err)
	}
	if n > maxSnappyRatio*len(src) {
		return dst, malformed("the block declares %d bytes, more than its %d bytes can hold", n, len(src))
	}
	if n > limit {
		return dst, tooLarge(limit)
	}
	start := len(dst)
	dst = slices.Grow(dst, n)
	out, err := s2.Decode(dst[start:start+n], src)
	if err != nil {
		return dst, malformed("%w", err)
	}
	return dst[:start+len(out)], nil
}

// tooLarge returns ErrTooLarge with the limit.
func tooLarge(limit int) error {
	return fmt.Errorf("snappy: %w: %d bytes", compress.ErrTooLarge, limit)
}

// malformed returns an error about invalid compressed bytes.
func malformed(format string, args ...any) error { return fmt.Errorf("snappy: "+format, args...) }
