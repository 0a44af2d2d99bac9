package msgpack

import (
	"testing"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/benchpb"
)

func BenchmarkScan(b *testing.B) {
	data, err := New().Append(nil, benchpb.FilledPlain())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := scan(data); err != nil {
			b.Fatal(err)
		}
	}
}

var _ codec.Fitter = (*Codec)(nil)
