package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/anser-rpc/anser/compress"
)

// A file is a line of text and blocks. A block is a frame of fixed size, a head in JSON and calls
// as lines of JSON, compressed with zstd. The heads are the index: a reader that wants calls of a
// method, or of a time, reads the heads and skips the bodies. Head and body have checksums of
// their own, so a reader goes on behind a block that is torn or damaged.
//
//	4 bytes  blockMagic
//	4 bytes  length of the head
//	4 bytes  length of the body
//	4 bytes  length of the calls
//	4 bytes  CRC-32C of the three lengths and of the head
//	4 bytes  CRC-32C of the body
//
// Numbers are little-endian.
const (
	fileMagic  = "anser recording 1\n"
	blockMagic = "\x00\xa5AB"
	frameSize  = 24
	maxHead    = 64 << 10
	maxBody    = 48 << 20 // compressed or not: more than the largest stream with its block
	// A block is full with this many bytes of calls or of methods. Another method fits into the
	// head then.
	fullBlock = 256 << 10
	fullNames = maxHead / 2
	// What a method takes in the head: 6 bytes for each of its own at most, and its number.
	maxEscaped = 6
	perName    = 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockHead describes the calls of a block.
type blockHead struct {
	// First and Last are the times of the earliest and the latest arrival, in nanoseconds since
	// 1970.
	First   int64          `json:"first"`
	Last    int64          `json:"last"`
	Calls   int            `json:"calls"`
	Methods map[string]int `json:"methods"` // calls by method
}

// appendBlock appends a block of the calls.
func appendBlock(dst []byte, head *blockHead, calls []byte, z compress.Compressor) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, frameSize)...)
	text, err := json.Marshal(head)
	if err != nil {
		return dst[:start], err
	}
	dst = append(dst, text...)
	bodyAt := len(dst)
	if dst, err = z.Append(dst, calls); err != nil {
		return dst[:start], err
	}
	frame := dst[start:bodyAt]
	copy(frame, blockMagic)
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(text)))
	binary.LittleEndian.PutUint32(frame[8:], uint32(len(dst)-bodyAt))
	binary.LittleEndian.PutUint32(frame[12:], uint32(len(calls)))
	binary.LittleEndian.PutUint32(frame[16:], headSum(frame))
	binary.LittleEndian.PutUint32(frame[20:], crc32.Checksum(dst[bodyAt:], castagnoli))
	return dst, nil
}

// headSum returns the checksum of the lengths and the head.
func headSum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[4:16], castagnoli), castagnoli, frame[frameSize:])
}

// block is a block of a file as a reader knows it.
type block struct {
	head blockHead
	at   int64 // of the body
	body int
	raw  int
	sum  uint32
}

// ErrDamaged is in the errors about parts of a recording that are left out.
var ErrDamaged = errors.New("damaged")

// readHead reads the block at an offset of a file of this size. A block that is not whole is
// damaged; an error of another kind is one of reading.
func readHead(r io.ReaderAt, at, size int64) (*block, error) {
	var frame [frameSize]byte
	if size-at < frameSize {
		return nil, ErrDamaged
	}
	if _, err := r.ReadAt(frame[:], at); err != nil {
		return nil, err
	}
	head := int64(binary.LittleEndian.Uint32(frame[4:]))
	body := int64(binary.LittleEndian.Uint32(frame[8:]))
	raw := int64(binary.LittleEndian.Uint32(frame[12:]))
	if string(frame[:4]) != blockMagic || head > maxHead || body > maxBody || raw > maxBody || size-at-frameSize < head+body {
		return nil, ErrDamaged
	}
	whole := make([]byte, frameSize+head)
	if _, err := r.ReadAt(whole, at); err != nil {
		return nil, err
	}
	b := &block{at: at + frameSize + head, body: int(body), raw: int(raw), sum: binary.LittleEndian.Uint32(frame[20:])}
	if headSum(whole) != binary.LittleEndian.Uint32(frame[16:]) || json.Unmarshal(whole[frameSize:], &b.head) != nil || b.head.Calls < 0 {
		return nil, ErrDamaged
	}
	return b, nil
}

// headSize returns about how much readHead reads of a block.
func headSize(frame []byte) int64 {
	if len(frame) < frameSize {
		return maxHead
	}
	return frameSize + min(maxHead, int64(binary.LittleEndian.Uint32(frame[4:])))
}

// next returns the offset behind the block.
func (b *block) next() int64 { return b.at + int64(b.body) }

// calls reads the calls of the block, as lines.
func (b *block) calls(r io.ReaderAt, z compress.Compressor) ([]byte, error) {
	body := make([]byte, b.body)
	if _, err := r.ReadAt(body, b.at); err != nil {
		return nil, err
	}
	if crc32.Checksum(body, castagnoli) != b.sum {
		return nil, fmt.Errorf("%w: the checksum of a block is wrong", ErrDamaged)
	}
	out, err := z.Decompress(nil, body, b.raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return out, nil
}

// maxLooks bounds what findBlock reads in a file, as a multiple of its size: a file can be full of
// what looks like the beginning of a block with a long head.
const maxLooks = 8

// findBlock returns the offset of the next whole block from at on, or -1 if there is none, or
// budget bytes of heads were read, which it reduces.
func findBlock(r io.ReaderAt, at, size int64, budget *int64) (int64, error) {
	const piece = 256 << 10
	buf := make([]byte, piece+len(blockMagic)-1)
	for at < size {
		n, err := r.ReadAt(buf, at)
		if err != nil && err != io.EOF {
			return -1, err
		}
		for from := 0; ; {
			i := bytes.Index(buf[from:n], []byte(blockMagic))
			if i < 0 {
				break
			}
			found := at + int64(from+i)
			if *budget -= headSize(buf[from+i : n]); *budget < 0 {
				return -1, nil
			}
			switch _, err := readHead(r, found, size); {
			case err == nil:
				return found, nil
			case !errors.Is(err, ErrDamaged):
				return -1, err
			}
			from += i + 1
		}
		if at += piece; n < piece {
			break
		}
	}
	return -1, nil
}
