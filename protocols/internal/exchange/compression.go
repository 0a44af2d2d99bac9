package exchange

import (
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress"
)

// compressors are the compressions of gRPC and Connect that are served, by their names on the wire.
var compressors = map[string]compress.Compressor{"gzip": compress.Gzip()}

// Compressions lists them, for grpc-accept-encoding.
const Compressions = "gzip"

// Compressor returns the compression of a name, or nil.
func Compressor(name string) compress.Compressor { return compressors[name] }

// Unpack decompresses a message of an admitted call. A few are decompressed at once: what they
// become counts for the memory of the server only when it is known.
func (d *Directory) Unpack(c compress.Compressor, message []byte) ([]byte, *anser.Error) {
	d.unpacking <- struct{}{}
	defer func() { <-d.unpacking }()
	return d.server.Decompress(c, message)
}

// Accepts reports whether a list such as "identity, gzip" has a name.
func Accepts(list, name string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(part) == name {
			return true
		}
	}
	return false
}

// Choose returns the first compression of the list that is served, or nil.
func Choose(list string) (compress.Compressor, string) {
	for part := range strings.SplitSeq(list, ",") {
		name := strings.TrimSpace(part)
		if c := compressors[name]; c != nil {
			return c, name
		}
	}
	return nil, ""
}
