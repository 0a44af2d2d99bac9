package compress

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// LZ4 returns the compressor for the frame format of LZ4, version 1.6.x: one frame for a message, with
// its size and a checksum. The blocks are put together here, and not by the library's reader and
// writer, since those allocate for the block size that a header declares.
func LZ4() Compressor { return lz4Frame{} }

type lz4Frame struct{}

func (lz4Frame) ID() uint8    { return LZ4ID }
func (lz4Frame) Name() string { return "lz4" }

// The frame's header: magic, flags, block size, then optional fields and a byte of checksum.
const (
	lz4Magic       = 0x184D2204
	lz4Version     = 0x40 // of the flags
	lz4VersionMask = 0xC0
	lz4Independent = 0x20
	lz4BlockSum    = 0x10
	lz4HasSize     = 0x08
	lz4ContentSum  = 0x04
	lz4Reserved    = 0x02
	lz4Dictionary  = 0x01

	lz4Raw       = 1 << 31 // of a block's size: the block is not compressed
	lz4SmallSize = 4       // the code of blocks of 64 KiB; each further one is four times as large
	lz4LargeSize = 7
	lz4MaxRatio  = 255
	lz4History   = 64 << 10 // what a block that depends on earlier ones looks back at
)

func lz4BlockSize(code byte) int { return 64 << 10 << (2 * (code - lz4SmallSize)) }

var lz4Compressors = sync.Pool{New: func() any { return new(lz4.Compressor) }}

func (lz4Frame) Append(dst, src []byte) ([]byte, error) {
	code := byte(lz4SmallSize)
	for code < lz4LargeSize && lz4BlockSize(code) < len(src) {
		code++
	}
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, lz4Magic)
	dst = append(dst, lz4Version|lz4Independent|lz4HasSize|lz4ContentSum, code<<4)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(src)))
	dst = append(dst, byte(xxh32(dst[start+4:])>>8))
	c := lz4Compressors.Get().(*lz4.Compressor)
	defer lz4Compressors.Put(c)
	for rest := src; len(rest) > 0; {
		n := min(len(rest), lz4BlockSize(code))
		var err error
		if dst, err = appendLZ4Block(dst, rest[:n], c); err != nil {
			return dst[:start], malformed("lz4", "%w", err)
		}
		rest = rest[n:]
	}
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint32(dst, xxh32(src)), nil
}

// appendLZ4Block appends a block, as it is if it does not become smaller.
func appendLZ4Block(dst, block []byte, c *lz4.Compressor) ([]byte, error) {
	at := len(dst)
	most := lz4.CompressBlockBound(len(block))
	dst = slices.Grow(dst, 4+most)
	n, err := c.CompressBlock(block, dst[at+4:at+4+most])
	if err != nil {
		return dst, err
	}
	size := uint32(n)
	if n == 0 || n >= len(block) {
		n = copy(dst[at+4:at+4+most], block)
		size = uint32(n) | lz4Raw
	}
	dst = dst[:at+4+n]
	binary.LittleEndian.PutUint32(dst[at:], size)
	return dst, nil
}

// lz4Header is what the header of a frame says.
type lz4Header struct {
	flags byte
	block int    // the most that a block holds
	size  uint64 // of the content, with lz4HasSize
}

func (lz4Frame) Decompress(dst, src []byte, limit int) ([]byte, error) {
	h, rest, err := parseLZ4Header(src)
	if err != nil {
		return dst, err
	}
	if h.flags&lz4HasSize != 0 && h.size > uint64(limit) {
		return dst, tooLarge("lz4", limit)
	}
	start := len(dst)
	for {
		if len(rest) < 4 {
			return dst, malformed("lz4", "a block is missing: %w", errTruncated)
		}
		size := binary.LittleEndian.Uint32(rest)
		rest = rest[4:]
		if size == 0 {
			break
		}
		raw := size&lz4Raw != 0
		if size &^= lz4Raw; int64(size) > int64(h.block) || size == 0 {
			return dst, malformed("lz4", "a block of %d bytes in a frame with blocks of up to %d", size, h.block)
		}
		if len(rest) < int(size) {
			return dst, malformed("lz4", "a block is cut off: %w", errTruncated)
		}
		block := rest[:size]
		rest = rest[size:]
		if h.flags&lz4BlockSum != 0 {
			if len(rest) < 4 {
				return dst, malformed("lz4", "the checksum of a block is missing: %w", errTruncated)
			}
			if binary.LittleEndian.Uint32(rest) != xxh32(block) {
				return dst, malformed("lz4", "%w", ErrChecksum)
			}
			rest = rest[4:]
		}
		if dst, err = h.appendBlock(dst, start, block, raw); err != nil {
			return dst, err
		}
		if len(dst)-start > limit {
			return dst, tooLarge("lz4", limit)
		}
	}
	made := dst[start:]
	if h.flags&lz4HasSize != 0 && h.size != uint64(len(made)) {
		return dst, malformed("lz4", "the frame declares %d bytes and holds %d", h.size, len(made))
	}
	if h.flags&lz4ContentSum != 0 {
		if len(rest) < 4 {
			return dst, malformed("lz4", "the checksum is missing: %w", errTruncated)
		}
		if binary.LittleEndian.Uint32(rest) != xxh32(made) {
			return dst, malformed("lz4", "%w", ErrChecksum)
		}
		rest = rest[4:]
	}
	if len(rest) > 0 {
		return dst, malformed("lz4", "%d bytes follow the frame: a message is one frame", len(rest))
	}
	return dst, nil
}

// appendBlock decompresses one block of a frame whose content begins at dst[start:].
func (h *lz4Header) appendBlock(dst []byte, start int, block []byte, raw bool) ([]byte, error) {
	if raw {
		return append(dst, block...), nil
	}
	at := len(dst)
	room := min(h.block, lz4MaxRatio*len(block))
	dst = slices.Grow(dst, room)
	var history []byte
	if h.flags&lz4Independent == 0 {
		history = dst[max(start, at-lz4History):at]
	}
	n, err := lz4.UncompressBlockWithDict(block, dst[at:at+room], history)
	if err != nil {
		return dst, malformed("lz4", "a block is broken: %w", err)
	}
	return dst[:at+n], nil
}

// parseLZ4Header returns what follows the header.
func parseLZ4Header(src []byte) (h lz4Header, rest []byte, err error) {
	const fixed = 7 // without optional fields
	if len(src) < fixed {
		return h, nil, malformed("lz4", "the header is missing: %w", errTruncated)
	}
	if binary.LittleEndian.Uint32(src) != lz4Magic {
		return h, nil, malformed("lz4", "the payload is not in the frame format of LZ4")
	}
	h.flags = src[4]
	code := src[5] >> 4 & 7
	switch {
	case h.flags&lz4VersionMask != lz4Version || h.flags&lz4Reserved != 0 || src[5]&0x8F != 0 || code < lz4SmallSize:
		return h, nil, malformed("lz4", "the header has values that the format does not know")
	case h.flags&lz4Dictionary != 0:
		return h, nil, malformed("lz4", "the frame needs a dictionary: send it without")
	}
	h.block = lz4BlockSize(code)
	end := fixed - 1
	if h.flags&lz4HasSize != 0 {
		if len(src) < fixed+8 {
			return h, nil, malformed("lz4", "the header is cut off: %w", errTruncated)
		}
		h.size = binary.LittleEndian.Uint64(src[end:])
		end += 8
	}
	if src[end] != byte(xxh32(src[4:end])>>8) {
		return h, nil, malformed("lz4", "the header: %w", ErrChecksum)
	}
	return h, src[end+1:], nil
}
