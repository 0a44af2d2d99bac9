package compress

import (
	"slices"

	"github.com/klauspost/compress/s2"
)

// Snappy returns the compressor for the block format of snappy. It has no checksum.
func Snappy() Compressor { return snappy{} }

type snappy struct{}

func (snappy) ID() uint8    { return SnappyID }
func (snappy) Name() string { return "snappy" }

func (snappy) Append(dst, src []byte) ([]byte, error) {
	most := s2.MaxEncodedLen(len(src))
	if most < 0 {
		return dst, malformed("snappy", "a message of %d bytes is too large for the format", len(src))
	}
	start := len(dst)
	dst = slices.Grow(dst, most)
	// EncodeSnappy writes where it is given room, and allocates otherwise.
	out := s2.EncodeSnappy(dst[start:start+most], src)
	return dst[:start+len(out)], nil
}

// maxSnappyRatio is more than a block can gain: its best element makes 64 bytes of 3.
const maxSnappyRatio = 22

func (snappy) Decompress(dst, src []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil {
		return dst, malformed("snappy", "%w", err)
	}
	if n > maxSnappyRatio*len(src) {
		return dst, malformed("snappy", "the block declares %d bytes, more than its %d bytes can hold", n, len(src))
	}
	if n > limit {
		return dst, tooLarge("snappy", limit)
	}
	start := len(dst)
	dst = slices.Grow(dst, n)
	out, err := s2.Decode(dst[start:start+n], src)
	if err != nil {
		return dst, malformed("snappy", "%w", err)
	}
	return dst[:start+len(out)], nil
}
