package compress_test

import (
	"bytes"
	"testing"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/lz4"
	"github.com/anser-rpc/anser/compress/snappy"
	"github.com/anser-rpc/anser/compress/zstd"
)

// fuzzLimit is small, so that much of what is tried meets it.
const fuzzLimit = 100_000

// fuzz tries bytes as a compressed message: nothing panics, no more than the limit comes out, and what
// does come out survives a round trip. It also tries them as a message.
func fuzz(f *testing.F, c compress.Compressor) {
	for _, message := range [][]byte{nil, []byte("a"), text(1000), noise(300), make([]byte, 2*fuzzLimit)} {
		packed, err := c.Append(nil, message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
		f.Add(packed[:len(packed)/2])
		f.Add(append(packed, packed...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := c.Decompress(nil, data, fuzzLimit)
		if err == nil && len(out) > fuzzLimit {
			t.Fatalf("%d bytes came out, the limit is %d", len(out), fuzzLimit)
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

func FuzzGzip(f *testing.F)    { fuzz(f, compress.Gzip()) }
func FuzzDeflate(f *testing.F) { fuzz(f, compress.Deflate()) }
func FuzzSnappy(f *testing.F)  { fuzz(f, snappy.New()) }
func FuzzZstd(f *testing.F)    { fuzz(f, zstd.New()) }
func FuzzLZ4(f *testing.F)     { fuzz(f, lz4.New()) }
