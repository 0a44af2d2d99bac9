package main

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// message is what vtproto generates.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// codec is gRPC's own for protobuf with vtproto's methods: the same buffers, pooled in the same
// way.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(message)
	if !ok {
		return nil, notGenerated(v)
	}
	size := m.SizeVT()
	if mem.IsBelowBufferPoolingThreshold(size) {
		b := make([]byte, size)
		_, err := m.MarshalToSizedBufferVT(b)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	pool := mem.DefaultBufferPool()
	b := pool.Get(size)
	if _, err := m.MarshalToSizedBufferVT((*b)[:size]); err != nil {
		pool.Put(b)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(b, pool)}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(message)
	if !ok {
		return notGenerated(v)
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	return m.UnmarshalVT(b.ReadOnlyData())
}

func notGenerated(v any) error {
	return fmt.Errorf("%T has no methods of vtproto: generate them with protoc-gen-go-vtproto", v)
}
