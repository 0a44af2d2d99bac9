package grpcstubs

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/anser-rpc/anser"
)

// The keys of Anser's metadata that this package uses itself. Anser has one value for a key, and no
// headers of replies.
const (
	valuesKey  = "grpc-values-bin"  // all keys with another number of values than one
	headersKey = "grpc-headers-bin" // headers of a reply, in its trailers
	acceptsKey = "grpc-headers"     // set by a client that reads a header message of a stream
)

// toAnser returns the metadata as Anser carries it.
func toAnser(md metadata.MD) anser.Metadata {
	out := make(anser.Metadata, len(md))
	rest := make(metadata.MD)
	for k, values := range md {
		k = strings.ToLower(k)
		if len(values) == 1 {
			out[k] = values[0]
		} else if len(values) > 1 {
			rest[k] = values
		}
	}
	if len(rest) > 0 {
		out[valuesKey] = string(appendMD(nil, rest))
	}
	return out
}

// fromAnser returns the metadata as gRPC has it, without the keys of this package.
func fromAnser(md anser.Metadata) metadata.MD {
	out := make(metadata.MD, len(md))
	for k, v := range md {
		switch k {
		case headersKey, acceptsKey:
		case valuesKey:
			if rest, err := parseMD([]byte(v)); err == nil {
				for k, values := range rest {
					out[k] = append(out[k], values...)
				}
			}
		default:
			out[k] = append(out[k], v)
		}
	}
	return out
}

// outgoing returns a context whose calls carry the metadata of gRPC in ctx, and what credentials
// add.
func outgoing(ctx context.Context, more metadata.MD) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx)
	if md = metadata.Join(md, more); len(md) == 0 {
		return ctx
	}
	return anser.WithMetadata(ctx, toAnser(md))
}

// appendMD encodes metadata: keys and values with their lengths.
func appendMD(b []byte, md metadata.MD) []byte {
	for k, values := range md {
		for _, v := range values {
			b = appendText(appendText(b, k), v)
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errMetadata = errors.New("the metadata is cut off")

func parseMD(b []byte) (metadata.MD, error) {
	md := make(metadata.MD)
	for len(b) > 0 {
		var pair [2]string
		for i := range pair {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > uint64(len(b)-size) {
				return nil, errMetadata
			}
			pair[i], b = string(b[size:size+int(n)]), b[size+int(n):]
		}
		md.Append(pair[0], pair[1])
	}
	return md, nil
}
