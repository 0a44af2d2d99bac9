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

// New returns the compressor for Zstandard (RFC 8878): one frame for a message, with a checksum, at
// the fastest level. It reads frames with a window of up to 8 MiB, and none that need a dictionary.
//
// Make one and keep it, as it holds the encoders and decoders that messages share one after the other.
func New() compress.Compressor {
	z := new(zstandard)
	z.encoders.New = func() any { return newZstdEncoder() }
	z.decoders.New = func() any { return newZstdDecoder() }
	return z
}

// zstandard has pools of its own, since encoders and decoders have channels: one that was made in a
// bubble of testing/synctest must not be used outside of it. Each works for one message at a
// time; a shared one would make callers wait for each other.
type zstandard struct {
	encoders, decoders sync.Pool
}

func (*zstandard) ID() uint8    { return compress.ZstdID }
func (*zstandard) Name() string { return "zstd" }

const (
	// zstdWindow bounds what encoders keep in memory. More finds little in messages.
	zstdWindow = 1 << 20
	// maxZstdWindow is the window that RFC 8878 asks every decoder to take.
	maxZstdWindow = 8 << 20
	// maxZstdBlock is the most that a block may hold.
	maxZstdBlock = 128 << 10
	// maxZstdMessage is above every limit that a message can have: the decoder's own bound is not used.
	maxZstdMessage = 1 << 31
	zstdBlockHead  = 3
	zstdTrailer    = 4
)

// newZstdEncoder returns nil for options that do not go together, which a test would notice.
func newZstdEncoder() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true),
		zstd.WithSingleSegment(true)) // so that every frame says how much it holds
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
	// The decoder stops where the room ends, and writes in place.
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

// measureZstd walks over the frame's blocks and returns how much may come out, or enough to pass the
// limit where it is more. What the header declares has to be possible with the blocks that are there, so that nothing is
// allocated for a claim alone. It refuses what a message must not be: frames that are
// skipped, need a dictionary or a large window, and more than one frame.
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
		case 0: // as it is
		case 1: // one byte, repeated
			size = 1
		case 2:
			holds = largest
		case 3:
			return 0, malformed("a block has a type that does not exist")
		}
		if holds > largest || size > maxZstdBlock {
			return 0, malformed("a block holds %d bytes, the frame allows %d", max(holds, uint64(size)), largest)
		}
		if len(rest)-zstdBlockHead < size {
			return 0, malformed("a block is cut off: %w", io.ErrUnexpectedEOF)
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
		// A block that finds no room in this begins behind the limit.
		return int(min(possible, uint64(limit)+largest)), nil
	case h.FrameContentSize > possible:
		return 0, malformed("the frame declares %d bytes, its blocks hold %d at most", h.FrameContentSize, possible)
	}
	return int(h.FrameContentSize), nil
}

// tooLarge names the limit that was passed.
func tooLarge(limit int) error { return fmt.Errorf("zstd: %w: %d bytes", compress.ErrTooLarge, limit) }

// malformed says what is wrong with compressed bytes.
func malformed(format string, args ...any) error { return fmt.Errorf("zstd: "+format, args...) }
