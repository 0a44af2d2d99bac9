// Package stubwire has the forms in which the stubs of other frameworks, such as gRPC and Connect,
// send over Anser what it does not have: several values for a key of metadata, and headers of
// replies. They share these forms, so stubs of one framework call those of another.
//
// Metadata here has all values of a key, with keys in lower case. The value of a key that ends in
// "-bin" is raw bytes, not base64.
package stubwire

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The keys of Anser's metadata that stubs use themselves.
const (
	ValuesKey  = "grpc-values-bin"  // all keys with another number of values than one
	HeadersKey = "grpc-headers-bin" // headers of a reply, in its trailers
	AcceptsKey = "grpc-headers"     // set by a client that reads a header message of a stream
)

// IsReserved reports whether the key, in lower case, is one that stubs use themselves.
func IsReserved(key string) bool {
	return key == ValuesKey || key == HeadersKey || key == AcceptsKey
}

// Pack returns metadata as Anser carries it, with one value for a key. The caller owns the result.
func Pack(md map[string][]string) map[string]string {
	out := make(map[string]string, len(md))
	rest := make(map[string][]string)
	for k, values := range md {
		k = strings.ToLower(k)
		if len(values) == 1 {
			out[k] = values[0]
		} else if len(values) > 1 {
			rest[k] = values
		}
	}
	if len(rest) > 0 {
		out[ValuesKey] = string(appendValues(nil, rest))
	}
	return out
}

// Unpack reverses Pack, and leaves out the keys that stubs use themselves. Values that are not in
// the form of Pack are left out too. The caller owns the result.
func Unpack(md map[string]string) map[string][]string {
	out := make(map[string][]string, len(md))
	for k, v := range md {
		if !IsReserved(k) {
			out[k] = []string{v}
		}
	}
	if rest, err := parseValues([]byte(md[ValuesKey])); err == nil {
		for k, values := range rest {
			out[k] = values // another protocol may have joined them under the key
		}
	}
	return out
}

// PackHeaders returns the value of HeadersKey for the headers of a reply.
func PackHeaders(md map[string][]string) string { return string(appendValues(nil, md)) }

// UnpackHeaders returns the headers of a reply from its trailers, or nil.
func UnpackHeaders(trailers map[string]string) map[string][]string {
	value, ok := trailers[HeadersKey]
	if !ok {
		return nil
	}
	md, err := parseValues([]byte(value))
	if err != nil {
		return nil
	}
	return md
}

// headerField is the number of the field that a message with headers has alone. Protobuf reserves
// it, so no contract can have it.
const headerField = 19999

// HeaderMessage returns a message with the headers of a stream, which is sent before all others to
// a client with AcceptsKey in its metadata.
func HeaderMessage(md map[string][]string) proto.Message {
	m := new(emptypb.Empty)
	b := protowire.AppendTag(nil, headerField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(b, appendValues(nil, md)))
	return m
}

// ParseHeaderMessage returns the headers if the unknown fields of a message are those of
// HeaderMessage.
func ParseHeaderMessage(unknown []byte) (md map[string][]string, ok bool) {
	number, wireType, n := protowire.ConsumeTag(unknown)
	if n < 0 || number != headerField || wireType != protowire.BytesType {
		return nil, false
	}
	block, size := protowire.ConsumeBytes(unknown[n:])
	if size != len(unknown)-n {
		return nil, false
	}
	md, err := parseValues(block)
	return md, err == nil
}

// appendValues encodes metadata: keys and values with their lengths, in the order of the keys.
func appendValues(b []byte, md map[string][]string) []byte {
	for _, k := range slices.Sorted(maps.Keys(md)) {
		for _, v := range md[k] {
			b = appendText(appendText(b, k), v)
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errCutOff = errors.New("the metadata is cut off")

func parseValues(b []byte) (map[string][]string, error) {
	md := make(map[string][]string)
	for len(b) > 0 {
		var pair [2]string
		for i := range pair {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > uint64(len(b)-size) {
				return nil, errCutOff
			}
			pair[i], b = string(b[size:size+int(n)]), b[size+int(n):]
		}
		key := strings.ToLower(pair[0])
		md[key] = append(md[key], pair[1])
	}
	return md, nil
}
