// Package all has the compressors of every algorithm that Anser offers, for servers that take them all and for
// programs that are told the name of one.
package all

import (
	"fmt"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/compress/lz4"
	"github.com/anser-rpc/anser/compress/snappy"
	"github.com/anser-rpc/anser/compress/zstd"
)

// Compressors returns one compressor for each algorithm, in the order of their numbers: gzip, deflate, snappy,
// zstd and lz4.
func Compressors() []compress.Compressor {
	return append(compress.BuiltIn(), snappy.New(), zstd.New(), lz4.New())
}

// Named returns the compressor with the name: "none", "gzip", "deflate", "snappy", "zstd" or "lz4".
func Named(name string) (compress.Compressor, error) {
	for _, c := range append([]compress.Compressor{compress.None()}, Compressors()...) {
		if c.Name() == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("compression %q is not known: use none, gzip, deflate, snappy, zstd or lz4", name)
}
