package compress_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/s2"
	klauspost "github.com/klauspost/compress/zstd"
	pierrec "github.com/pierrec/lz4/v4"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/lz4"
	"github.com/anser-rpc/anser/compress/snappy"
	"github.com/anser-rpc/anser/compress/zstd"
)

// fuzzLimit is small, so that many inputs reach it.
const fuzzLimit = 100_000

// A decompressor may allocate fuzzFree, for its tables and windows, and fuzzFactor per byte of its
// input and output.
const (
	fuzzFree   = 1 << 20
	fuzzFactor = 8
)

// fuzz decompresses arbitrary bytes: the result stays within the limit, memory is proportional,
// and the result is the same as that of another implementation that reads the bytes as a stream,
// whatever the limit and the contents of dst are. The result survives a round trip, and so do the
// bytes as a message.
func fuzz(f *testing.F, c compress.Compressor, stream func(r io.Reader) (io.Reader, error)) {
	for _, message := range [][]byte{nil, []byte("a"), text(1000), noise(300), make([]byte, 2*fuzzLimit), make([]byte, fuzzLimit), make([]byte, fuzzLimit+1)} {
		packed, err := c.Append(nil, message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
		f.Add(packed[:len(packed)/2])
		f.Add(append(packed, packed...))
		if broken := bytes.Clone(packed); len(broken) > 0 {
			broken[len(broken)-1]++
			f.Add(broken)
		}
	}
	for _, b := range hostileFrames {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, used, err := decompress(c, data)
		if limit := uint64(fuzzFree + fuzzFactor*(len(data)+min(len(out), fuzzLimit))); used > limit {
			t.Fatalf("decompressing %d bytes took %d bytes of memory, the limit is %d", len(data), used, limit)
		}
		if err == nil {
			if len(out) > fuzzLimit {
				t.Fatalf("%d bytes came out, the limit is %d", len(out), fuzzLimit)
			}
			r, err := stream(bytes.NewReader(data))
			if err != nil {
				t.Fatalf("%d bytes came out, but as a stream it cannot be read: %v", len(out), err)
			}
			other, err := io.ReadAll(io.LimitReader(r, fuzzLimit+1))
			if err != nil || !bytes.Equal(other, out) {
				t.Fatalf("%d bytes came out, and %d as a stream, %v", len(out), len(other), err)
			}
			head := []byte("head")
			if again, err := c.Decompress(head, data, len(out)); err != nil || !bytes.Equal(again[len(head):], out) || string(again[:len(head)]) != "head" {
				t.Fatalf("%d bytes came out, with that limit and behind other bytes %v", len(out), err)
			}
			if len(out) > 0 {
				if _, err := c.Decompress(nil, data, len(out)-1); err == nil {
					t.Fatalf("%d bytes came out with a limit of one less", len(out))
				}
			}
		}
		for _, message := range [][]byte{out, data} {
			if err != nil && bytes.Equal(message, out) {
				continue
			}
			packed, err := c.Append(nil, message)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := c.Decompress(nil, packed, len(message)); err != nil || !bytes.Equal(back, message) {
				t.Fatalf("%d bytes do not survive: %v", len(message), err)
			}
		}
	})
}

// hostileFrames are beginnings of frames that declare more than they hold.
var hostileFrames = [][]byte{
	[]byte("\xff\xff\xff\xff\x0f\x00"), []byte("\x80\x80\x80\x03\x00\x00"), // snappy of 4 GiB and of 3 MiB
	[]byte("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"), []byte("\x28\xb5\x2f\xfd\xa0\x00\x00\x30\x00\x01\x00\x00"), // zstd: a window of 2 GiB, a content of 3 MiB
	[]byte("\x04\x22\x4d\x18\x68\x70\x00\x00\x30\x00\x00\x00\x00\x00"), []byte("\x04\x22\x4d\x18\x60\x70\x73\x00\x00\x30\x80\x00"), // lz4: a content and a block of 3 MiB
}

// decompress returns the result and the number of bytes allocated for it.
func decompress(c compress.Compressor, data []byte) (out []byte, used uint64, err error) {
	used = ^uint64(0)
	// Allocations of other goroutines are counted, too: the minimum of a few attempts is the
	// decompressor's own.
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err = c.Decompress(nil, data, fuzzLimit)
		runtime.ReadMemStats(&after)
		if used = min(used, after.TotalAlloc-before.TotalAlloc); used <= fuzzFree {
			break
		}
	}
	return out, used, err
}

func FuzzGzip(f *testing.F) {
	fuzz(f, compress.Gzip(), func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
}

func FuzzDeflate(f *testing.F) {
	fuzz(f, compress.Deflate(), func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) })
}

// The snappy block format has no stream: the other implementation is a decoder without s2's own
// extensions.
func FuzzSnappy(f *testing.F) {
	fuzz(f, snappy.New(), func(r io.Reader) (io.Reader, error) {
		block, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		out, err := s2.Decode(nil, block)
		return bytes.NewReader(out), err
	})
}

func FuzzZstd(f *testing.F) {
	fuzz(f, zstd.New(), func(r io.Reader) (io.Reader, error) {
		d, err := klauspost.NewReader(r, klauspost.WithDecoderConcurrency(1), klauspost.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	})
}

func FuzzLZ4(f *testing.F) {
	fuzz(f, lz4.New(), func(r io.Reader) (io.Reader, error) { return pierrec.NewReader(r), nil })
}

// FuzzNone checks the same for uncompressed payloads.
func FuzzNone(f *testing.F) {
	fuzz(f, compress.None(), func(r io.Reader) (io.Reader, error) { return r, nil })
}
