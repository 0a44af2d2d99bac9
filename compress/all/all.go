// Package all provides the compressors of every algorithm in Anser, for servers that accept all of
// them and for programs that choose one by name.
package all

import (
	"fmt"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/lz4"
	"github.com/anser-rpc/anser/compress/snappy"
	"github.com/anser-rpc/anser/compress/zstd"
)

// Compressors returns one compressor per algorithm, in the order of their numbers: gzip, deflate,
// snappy, zstd and lz4.
func Compressors() []compress.Compressor {
	return append(compress.BuiltIn(), snappy.New(), zstd.New(), lz4.New())
}

// Named returns the compressor with that name: "none", "gzip", "deflate", "snappy", "zstd" or
// "lz4".
func Named(name string) (compress.Compressor, error) {
	for _, c := range append([]compress.Compressor{compress.None()}, Compressors()...) {
		if c.Name() == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("compression %q is not known: use none, gzip, deflate, snappy, zstd or lz4", name)
}
