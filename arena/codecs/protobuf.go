package main

import (
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/arena/workload"
)

// ofProtobuf are the libraries as peers use them.
func ofProtobuf(message *workload.BenchmarkMessage) []subject {
	return []subject{
		of("protobuf, standard code", "google.golang.org/protobuf", message,
			func(dst []byte, m *workload.BenchmarkMessage) ([]byte, error) {
				return proto.MarshalOptions{}.MarshalAppend(dst, m)
			},
			func(data []byte, m *workload.BenchmarkMessage) error { return proto.Unmarshal(data, m) }),
		of("protobuf, vtproto's code", "github.com/planetscale/vtprotobuf", message, appendVT,
			func(data []byte, m *workload.BenchmarkMessage) error { return m.UnmarshalVT(data) }),
	}
}

// appendVT lets vtproto fill the bytes after dst.
func appendVT(dst []byte, m *workload.BenchmarkMessage) ([]byte, error) {
	start, size := len(dst), m.SizeVT()
	if cap(dst)-start < size {
		dst = append(dst, make([]byte, size)...)
	}
	dst = dst[:start+size]
	_, err := m.MarshalToSizedBufferVT(dst[start:])
	return dst, err
}
