package main

import (
	"fmt"
	"slices"
)

// message is what vtproto generates.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// codec takes the place of Connect's own for protobuf, which uses the standard library.
type codec struct{}

func (codec) Name() string { return "proto" }

func (c codec) Marshal(v any) ([]byte, error) { return c.MarshalAppend(nil, v) }

// MarshalAppend is what Connect prefers, for it writes to its pooled buffer.
func (codec) MarshalAppend(b []byte, v any) ([]byte, error) {
	m, ok := v.(message)
	if !ok {
		return nil, notGenerated(v)
	}
	start, size := len(b), m.SizeVT()
	b = slices.Grow(b, size)[:start+size]
	_, err := m.MarshalToSizedBufferVT(b[start:])
	return b, err
}

func (codec) Unmarshal(b []byte, v any) error {
	m, ok := v.(message)
	if !ok {
		return notGenerated(v)
	}
	return m.UnmarshalVT(b)
}

func notGenerated(v any) error {
	return fmt.Errorf("%T has no methods of vtproto: generate them with protoc-gen-go-vtproto", v)
}
