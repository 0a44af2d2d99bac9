// Package zstd is the compressor for Zstandard (RFC 8878).
package zstd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/anser-rpc/anser/compress"
)

// New returns the compressor for Zstandard (RFC 8878): one frame per message, with a checksum, at
// the fastest level. It accepts frames with a window of up to 8 MiB that need no dictionary.
//
// Create one and keep it, as it holds the encoders and decoders that are reused for further
// messages.
func New() compress.Compressor {
	z := new(zstandard)
	z.encoders.New = func() any { return newZstdEncoder() }
	z.decoders.New = func() any { return newZstdDecoder() }
	return z
}

// zstandard has its own pools, since encoders and decoders contain channels: one created in a
// testing/synctest bubble must not be used outside of it. Each handles one message at a time; with
// a shared one, callers would wait for each other.
type zstandard struct {
	encoders, decoders sync.Pool
}

func (*zstandard) ID() uint8    { return compress.ZstdID }
func (*zstandard) Name() string { return "zstd" }

const (
	// zstdWindow bounds the memory of encoders. A larger window has little effect on messages.
	zstdWindow = 1 << 20
	// maxZstdWindow is the window that RFC 8878 recommends every decoder to support.
	maxZstdWindow = 8 << 20
	// maxZstdBlock is the maximum size of a block.
	maxZstdBlock = 128 << 10
	// maxZstdMessage exceeds every limit of a message: the decoder's own limit is not used.
	maxZstdMessage = 1 << 31
	zstdBlockHead  = 3
	zstdTrailer    = 4
)

// newZstdEncoder returns nil for conflicting options, which a test would detect.
func newZstdEncoder() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true),
		zstd.WithSingleSegment(true)) // makes every frame declare the size of its content
	return e
}

func newZstdDecoder() *zstd.Decoder {
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(maxZstdMessage), zstd.WithDecoderMaxWindow(maxZstdMessage))
	return d
}

func (z *zstandard) Append(dst, src []byte) ([]byte, error) {
	e := z.encoders.Get().(*zstd.Encoder)
	defer z.encoders.Put(e)
	return e.EncodeAll(src, dst), nil
}

func (z *zstandard) Decompress(dst, src []byte, limit int) ([]byte, error) {
	room, err := measureZstd(src, limit)
	if err != nil {
		return dst, err
	}
	d := z.decoders.Get().(*zstd.Decoder)
	defer z.decoders.Put(d)
	start := len(dst)
	dst = slices.Grow(dst, room)
	// The decoder stops at the end of the capacity, and writes in place.
	out, err := d.DecodeAll(src, dst[start:start:start+room])
	switch {
	case len(out) > limit || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return dst, tooLarge(limit)
	case errors.Is(err, zstd.ErrCRCMismatch):
		return dst, malformed("%w", compress.ErrChecksum)
	case err != nil:
		return dst, malformed("%w", err)
	}
	return dst[:start+len(out)], nil
}

// measureZstd examines the frame's blocks and returns an upper bound of the decompressed size, or
// a value above the limit if it is larger. The declared size must be possible with the actual
// blocks, so that a mere declaration allocates nothing. It rejects frames that a message must not
// contain: skippable frames, frames that need a dictionary or a large window, and more than one
// frame.
func measureZstd(src []byte, limit int) (room int, err error) {
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return 0, malformed("the header: %w", err)
	}
	switch {
	case h.Skippable:
		return 0, malformed("the payload is a frame without content")
	case h.DictionaryID != 0:
		return 0, malformed("the frame needs the dictionary %d: send it without", h.DictionaryID)
	case !h.SingleSegment && h.WindowSize > maxZstdWindow:
		return 0, malformed("the frame needs a window of %d bytes, the limit is %d", h.WindowSize, maxZstdWindow)
	case h.HasFCS && h.FrameContentSize > uint64(limit):
		return 0, tooLarge(limit)
	}
	largest := uint64(maxZstdBlock)
	if !h.SingleSegment {
		largest = min(largest, h.WindowSize)
	}
	rest, possible := src[h.HeaderSize:], uint64(0)
	for last := false; !last; {
		if len(rest) < zstdBlockHead {
			return 0, malformed("a block is missing: %w", io.ErrUnexpectedEOF)
		}
		head := uint32(rest[0]) | uint32(rest[1])<<8 | uint32(rest[2])<<16
		size, holds := int(head>>3), uint64(head>>3)
		last = head&1 != 0
		switch head >> 1 & 3 {
		case 0: // uncompressed
		case 1: // one byte, repeated
			size = 1
		case 2:
			holds = largest
		case 3:
			return 0, malformed("a block has an invalid type")
		}
		if holds > largest || size > maxZstdBlock {
			return 0, malformed("a block holds %d bytes, the frame allows %d", max(holds, uint64(size)), largest)
		}
		if len(rest)-zstdBlockHead < size {
			return 0, malformed("a block is truncated: %w", io.ErrUnexpectedEOF)
		}
		rest = rest[zstdBlockHead+size:]
		possible += holds
	}
	if h.HasCheckSum {
		if len(rest) < zstdTrailer {
			return 0, malformed("the checksum is missing: %w", io.ErrUnexpectedEOF)
		}
		rest = rest[zstdTrailer:]
	}
	switch {
	case len(rest) > 0:
		return 0, malformed("%d bytes follow the frame: a message is one frame", len(rest))
	case !h.HasFCS:
		// A block that does not fit into this space starts beyond the limit.
		return int(min(possible, uint64(limit)+largest)), nil
	case h.FrameContentSize > possible:
		return 0, malformed("the frame declares %d bytes, its blocks hold %d at most", h.FrameContentSize, possible)
	}
	return int(h.FrameContentSize), nil
}

// tooLarge returns ErrTooLarge with the limit.
func tooLarge(limit int) error { return fmt.Errorf("zstd: %w: %d bytes", compress.ErrTooLarge, limit) }

// malformed returns an error about invalid compressed bytes.
func malformed(format string, args ...any) error { return fmt.Errorf("zstd: "+format, args...) }
