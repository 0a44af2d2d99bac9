// Package lz4 is the compressor for the frame format of LZ4.
package lz4

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"

	"github.com/anser-rpc/anser/compress"
)

// New returns the compressor for the frame format of LZ4, version 1.6.x: one frame per message,
// with its size and a checksum. Frames are assembled here, not by the library's reader and writer,
// because those allocate the block size that a header declares.
func New() compress.Compressor { return frame{} }

type frame struct{}

func (frame) ID() uint8    { return compress.LZ4ID }
func (frame) Name() string { return "lz4" }

// The frame header: magic, flags, block size, optional fields, and a checksum of one byte.
const (
	magic       = 0x184D2204
	version     = 0x40 // of the flags
	versionMask = 0xC0
	independent = 0x20
	blockSum    = 0x10
	hasSize     = 0x08
	contentSum  = 0x04
	reserved    = 0x02
	dictionary  = 0x01

	rawBlock  = 1 << 31 // flag in a block's size: the block is not compressed
	smallSize = 4       // the code of blocks of 64 KiB; each further code means four times the size
	largeSize = 7
	maxRatio  = 255
	lookBack  = 64 << 10 // how far a dependent block may refer to earlier ones
)

func blockSize(code byte) int { return 64 << 10 << (2 * (code - smallSize)) }

var compressors = sync.Pool{New: func() any { return new(lz4.Compressor) }}

func (frame) Append(dst, src []byte) ([]byte, error) {
	code := byte(smallSize)
	for code < largeSize && blockSize(code) < len(src) {
		code++
	}
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, magic)
	dst = append(dst, version|independent|hasSize|contentSum, code<<4)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(src)))
	dst = append(dst, byte(xxh32(dst[start+4:])>>8))
	c := compressors.Get().(*lz4.Compressor)
	defer compressors.Put(c)
	for rest := src; len(rest) > 0; {
		n := min(len(rest), blockSize(code))
		var err error
		if dst, err = packBlock(dst, rest[:n], c); err != nil {
			return dst[:start], malformed("%w", err)
		}
		rest = rest[n:]
	}
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint32(dst, xxh32(src)), nil
}

// packBlock appends a block, uncompressed if compression does not make it smaller.
func packBlock(dst, block []byte, c *lz4.Compressor) ([]byte, error) {
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
		size = uint32(n) | rawBlock
	}
	dst = dst[:at+4+n]
	binary.LittleEndian.PutUint32(dst[at:], size)
	return dst, nil
}

// header is the decoded header of a frame.
type header struct {
	flags byte
	block int    // maximum size of a block
	size  uint64 // of the content, with hasSize
}

func (frame) Decompress(dst, src []byte, limit int) ([]byte, error) {
	h, rest, err := parseHeader(src)
	if err != nil {
		return dst, err
	}
	if h.flags&hasSize != 0 && h.size > uint64(limit) {
		return dst, tooLarge(limit)
	}
	start := len(dst)
	for {
		if len(rest) < 4 {
			return dst, malformed("a block is missing: %w", io.ErrUnexpectedEOF)
		}
		size := binary.LittleEndian.Uint32(rest)
		rest = rest[4:]
		if size == 0 {
			break
		}
		raw := size&rawBlock != 0
		if size &^= rawBlock; int64(size) > int64(h.block) || size == 0 {
			return dst, malformed("a block has %d bytes in a frame with blocks of up to %d", size, h.block)
		}
		if len(rest) < int(size) {
			return dst, malformed("a block is truncated: %w", io.ErrUnexpectedEOF)
		}
		block := rest[:size]
		rest = rest[size:]
		if h.flags&blockSum != 0 {
			if len(rest) < 4 {
				return dst, malformed("the checksum of a block is missing: %w", io.ErrUnexpectedEOF)
			}
			if binary.LittleEndian.Uint32(rest) != xxh32(block) {
				return dst, malformed("%w", compress.ErrChecksum)
			}
			rest = rest[4:]
		}
		if dst, err = h.appendBlock(dst, start, block, raw); err != nil {
			return dst, err
		}
		if len(dst)-start > limit {
			return dst, tooLarge(limit)
		}
	}
	made := dst[start:]
	if h.flags&hasSize != 0 && h.size != uint64(len(made)) {
		return dst, malformed("the frame declares %d bytes and holds %d", h.size, len(made))
	}
	if h.flags&contentSum != 0 {
		if len(rest) < 4 {
			return dst, malformed("the checksum is missing: %w", io.ErrUnexpectedEOF)
		}
		if binary.LittleEndian.Uint32(rest) != xxh32(made) {
			return dst, malformed("%w", compress.ErrChecksum)
		}
		rest = rest[4:]
	}
	if len(rest) > 0 {
		return dst, malformed("%d bytes follow the frame: a message is one frame", len(rest))
	}
	return dst, nil
}

// appendBlock decompresses one block of a frame whose content begins at dst[start:].
func (h *header) appendBlock(dst []byte, start int, block []byte, raw bool) ([]byte, error) {
	if raw {
		return append(dst, block...), nil
	}
	at := len(dst)
	room := min(h.block, maxRatio*len(block))
	dst = slices.Grow(dst, room)
	var history []byte
	if h.flags&independent == 0 {
		history = dst[max(start, at-lookBack):at]
	}
	n, err := lz4.UncompressBlockWithDict(block, dst[at:at+room], history)
	if err != nil {
		return dst, malformed("a block is broken: %w", err)
	}
	return dst[:at+n], nil
}

// parseHeader returns the rest after the header.
func parseHeader(src []byte) (h header, rest []byte, err error) {
	const fixed = 7 // without optional fields
	if len(src) < fixed {
		return h, nil, malformed("the header is missing: %w", io.ErrUnexpectedEOF)
	}
	if binary.LittleEndian.Uint32(src) != magic {
		return h, nil, malformed("the payload is not in the frame format of LZ4")
	}
	h.flags = src[4]
	code := src[5] >> 4 & 7
	switch {
	case h.flags&versionMask != version || h.flags&reserved != 0 || src[5]&0x8F != 0 || code < smallSize:
		return h, nil, malformed("the header has values that the format does not define")
	case h.flags&dictionary != 0:
		return h, nil, malformed("the frame needs a dictionary: send it without")
	}
	h.block = blockSize(code)
	end := fixed - 1
	if h.flags&hasSize != 0 {
		if len(src) < fixed+8 {
			return h, nil, malformed("the header is truncated: %w", io.ErrUnexpectedEOF)
		}
		h.size = binary.LittleEndian.Uint64(src[end:])
		end += 8
	}
	if src[end] != byte(xxh32(src[4:end])>>8) {
		return h, nil, malformed("the header: %w", compress.ErrChecksum)
	}
	return h, src[end+1:], nil
}

// tooLarge returns ErrTooLarge with the limit.
func tooLarge(limit int) error { return fmt.Errorf("lz4: %w: %d bytes", compress.ErrTooLarge, limit) }

// malformed returns an error about invalid compressed bytes.
func malformed(format string, args ...any) error { return fmt.Errorf("lz4: "+format, args...) }
