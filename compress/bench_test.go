package compress_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/proto"
)

// BenchmarkCompress produces the figures of docs/compression.md: the message of 581 bytes that is
// common in comparisons of RPC frameworks, 64 KiB of JSON, and 1 MiB of incompressible data.
func BenchmarkCompress(b *testing.B) {
	small, err := proto.Marshal(benchpb.Filled())
	if err != nil {
		b.Fatal(err)
	}
	for _, in := range []struct {
		name    string
		message []byte
	}{{"581", small}, {"json64K", text(64 << 10)}, {"noise1M", noise(1 << 20)}} {
		for _, c := range all.Compressors() {
			packed := pack(b, c, in.message)
			share := 100 * float64(len(packed)) / float64(len(in.message))
			b.Run(fmt.Sprintf("%s/%s/pack", in.name, c.Name()), func(b *testing.B) {
				b.SetBytes(int64(len(in.message)))
				b.ReportAllocs()
				var dst []byte
				for b.Loop() {
					dst, err = c.Append(dst[:0], in.message)
				}
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(share, "%size")
			})
			b.Run(fmt.Sprintf("%s/%s/unpack", in.name, c.Name()), func(b *testing.B) {
				b.SetBytes(int64(len(in.message)))
				b.ReportAllocs()
				var dst []byte
				for b.Loop() {
					dst, err = c.Decompress(dst[:0], packed, 4<<20)
				}
				if err != nil || !bytes.Equal(dst, in.message) {
					b.Fatal(err)
				}
			})
		}
	}
}
