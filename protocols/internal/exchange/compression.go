package exchange

import (
	"errors"
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

// Unpack returns the message of a compressed payload.
func Unpack(c compress.Compressor, payload []byte, most int) ([]byte, *anser.Error) {
	plain, err := c.Decompress(nil, payload, most)
	if errors.Is(err, compress.ErrTooLarge) {
		return nil, TooLarge(most)
	}
	if err != nil {
		return nil, anser.Refuse(anser.InvalidArgument, "decompress the message: %v", err)
	}
	return plain, nil
}
