//go:build unix

package main

import (
	"log"
	"slices"

	"github.com/anser-rpc/anser/internal/benchpb"
	"google.golang.org/protobuf/proto"
)

// codec is vtproto's generated code, or the standard runtime.
type codec struct{ std bool }

func (c codec) append(dst []byte, m *benchpb.BenchmarkMessage) []byte {
	if c.std {
		out, err := proto.MarshalOptions{}.MarshalAppend(dst, m)
		if err != nil {
			log.Fatal(err)
		}
		return out
	}
	size := m.SizeVT()
	dst = slices.Grow(dst, size)
	start := len(dst)
	dst = dst[:start+size]
	if _, err := m.MarshalToSizedBufferVT(dst[start:]); err != nil {
		log.Fatal(err)
	}
	return dst
}

func (c codec) parse(b []byte) *benchpb.BenchmarkMessage {
	m := new(benchpb.BenchmarkMessage)
	var err error
	if c.std {
		err = proto.Unmarshal(b, m)
	} else {
		err = m.UnmarshalVT(b)
	}
	if err != nil {
		log.Fatal(err)
	}
	return m
}
