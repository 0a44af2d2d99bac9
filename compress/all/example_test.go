package all_test

import (
	"fmt"

	"github.com/anser-rpc/anser/compress/all"
)

// A server accepts all of them with anser.AcceptCompression(all.Compressors()...).
func Example() {
	for _, z := range all.Compressors() {
		fmt.Println(z.Name())
	}
	// Unordered output:
	// gzip
	// deflate
	// snappy
	// zstd
	// lz4
}
