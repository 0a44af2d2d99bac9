package compress

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Gzip returns the compressor for the gzip format (RFC 1952), one member per message, at the
// fastest level.
func Gzip() Compressor { return gzip{} }

// Deflate returns the compressor for the zlib format (RFC 1950) around deflate (RFC 1951), which
// HTTP and gRPC call deflate, at the fastest level.
func Deflate() Compressor { return deflate{} }

type (
	gzip    struct{}
	deflate struct{}
)

func (gzip) ID() uint8       { return GzipID }
func (gzip) Name() string    { return "gzip" }
func (deflate) ID() uint8    { return DeflateID }
func (deflate) Name() string { return "deflate" }

// Flags in a gzip header.
const (
	gzipHeaderCRC = 1 << 1
	gzipExtra     = 1 << 2
	gzipName      = 1 << 3
	gzipComment   = 1 << 4
	gzipReserved  = 0xE0

	gzipHeader  = 10
	gzipTrailer = 8
	zlibHeader  = 2
	zlibTrailer = 4
)

func (gzip) Append(dst, src []byte) ([]byte, error) {
	// No time, no name, level "fastest", an unknown operating system.
	dst = append(dst, 0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 4, 255)
	dst, err := appendDeflated(dst, src)
	if err != nil {
		return dst, err
	}
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(src))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(src))), nil
}

func (gzip) Decompress(dst, src []byte, limit int) ([]byte, error) {
	body, err := skipGzipHeader(src)
	if err != nil {
		return dst, err
	}
	out, rest, err := inflate(dst, body, "gzip", limit)
	if err != nil {
		return out, err
	}
	if len(rest) < gzipTrailer {
		return out, malformed("gzip", "the checksum is missing: %w", errTruncated)
	}
	made := out[len(dst):]
	if binary.LittleEndian.Uint32(rest) != crc32.ChecksumIEEE(made) || binary.LittleEndian.Uint32(rest[4:]) != uint32(len(made)) {
		return out, malformed("gzip", "%w", ErrChecksum)
	}
	if n := len(rest) - gzipTrailer; n > 0 {
		return out, malformed("gzip", "%d bytes follow the first member: a message has one member", n)
	}
	return out, nil
}

// skipGzipHeader returns the rest after the header, whose optional fields are ignored.
func skipGzipHeader(src []byte) ([]byte, error) {
	if len(src) < gzipHeader {
		return nil, malformed("gzip", "the header is missing: %w", errTruncated)
	}
	if src[0] != 0x1F || src[1] != 0x8B || src[2] != 8 {
		return nil, malformed("gzip", "the payload is not in the gzip format")
	}
	flags, rest := src[3], src[gzipHeader:]
	if flags&gzipReserved != 0 {
		return nil, malformed("gzip", "reserved flags are set in the header")
	}
	if flags&gzipExtra != 0 {
		if len(rest) < 2 || len(rest)-2 < int(binary.LittleEndian.Uint16(rest)) {
			return nil, malformed("gzip", "the header ends early: %w", errTruncated)
		}
		rest = rest[2+int(binary.LittleEndian.Uint16(rest)):]
	}
	for _, text := range []byte{gzipName, gzipComment} {
		if flags&text == 0 {
			continue
		}
		n := bytes.IndexByte(rest, 0)
		if n < 0 {
			return nil, malformed("gzip", "the header ends early: %w", errTruncated)
		}
		rest = rest[n+1:]
	}
	if flags&gzipHeaderCRC != 0 {
		if len(rest) < 2 {
			return nil, malformed("gzip", "the header ends early: %w", errTruncated)
		}
		if sum := crc32.ChecksumIEEE(src[:len(src)-len(rest)]); binary.LittleEndian.Uint16(rest) != uint16(sum) {
			return nil, malformed("gzip", "%w", ErrChecksum)
		}
		rest = rest[2:]
	}
	return rest, nil
}

func (deflate) Append(dst, src []byte) ([]byte, error) {
	dst = append(dst, 0x78, 0x01) // a window of 32 KiB, level "fastest"
	dst, err := appendDeflated(dst, src)
	if err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint32(dst, adler32.Checksum(src)), nil
}

func (deflate) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if len(src) < zlibHeader {
		return dst, malformed("deflate", "the header is missing: %w", errTruncated)
	}
	if src[0]&0x0F != 8 || src[0]>>4 > 7 || binary.BigEndian.Uint16(src)%31 != 0 {
		return dst, malformed("deflate", "the payload is not in the zlib format")
	}
	if src[1]&0x20 != 0 {
		return dst, malformed("deflate", "the payload needs a dictionary: send it without")
	}
	out, rest, err := inflate(dst, src[zlibHeader:], "deflate", limit)
	if err != nil {
		return out, err
	}
	if len(rest) < zlibTrailer {
		return out, malformed("deflate", "the checksum is missing: %w", errTruncated)
	}
	if binary.BigEndian.Uint32(rest) != adler32.Checksum(out[len(dst):]) {
		return out, malformed("deflate", "%w", ErrChecksum)
	}
	if n := len(rest) - zlibTrailer; n > 0 {
		return out, malformed("deflate", "%d bytes follow the message", n)
	}
	return out, nil
}

// deflater is a pooled encoder with its output.
type deflater struct {
	w   *flate.Writer
	out []byte
}

func (d *deflater) Write(p []byte) (int, error) {
	d.out = append(d.out, p...)
	return len(p), nil
}

var deflaters = sync.Pool{New: func() any {
	d := new(deflater)
	d.w, _ = flate.NewWriter(d, flate.BestSpeed) // fails only for an invalid level
	return d
}}

func appendDeflated(dst, src []byte) ([]byte, error) {
	d := deflaters.Get().(*deflater)
	defer func() {
		d.out = nil
		deflaters.Put(d)
	}()
	d.out = dst
	d.w.Reset(d)
	if _, err := d.w.Write(src); err != nil {
		return dst, err
	}
	if err := d.w.Close(); err != nil {
		return dst, err
	}
	return d.out, nil
}

// inflater is a pooled decoder with its input.
type inflater struct {
	src bytes.Reader // an io.ByteReader: the decoder reads no byte more than it needs
	r   interface {
		flate.Resetter
		Read([]byte) (int, error)
	}
}

var inflaters = sync.Pool{New: func() any {
	f := new(inflater)
	f.r = flate.NewReader(&f.src).(interface {
		flate.Resetter
		Read([]byte) (int, error)
	})
	return f
}}

// inflate decompresses the deflate stream at the start of src, appends the result, and returns the
// rest of src.
func inflate(dst, src []byte, name string, limit int) (out, rest []byte, err error) {
	f := inflaters.Get().(*inflater)
	defer func() {
		f.src.Reset(nil)
		inflaters.Put(f)
	}()
	f.src.Reset(src)
	if err := f.r.Reset(&f.src, nil); err != nil {
		return dst, nil, err
	}
	out, err = readBounded(dst, f.r, name, limit, 4*len(src))
	return out, src[len(src)-f.src.Len():], err
}
