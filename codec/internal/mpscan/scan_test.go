package mpscan_test

import (
	"testing"

	"github.com/anser-rpc/anser/codec/internal/mpscan"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/internal/benchpb"
)

func BenchmarkScan(b *testing.B) {
	data, err := msgpack.New().Append(nil, benchpb.FilledPlain())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mpscan.Scan(data); err != nil {
			b.Fatal(err)
		}
	}
}
