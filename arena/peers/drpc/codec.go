package main

import (
	"fmt"
	"slices"

	"storj.io/drpc"
)

// message is what vtproto generates.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// encoding is what protoc-gen-go-drpc generates, with vtproto's methods.
type encoding struct{}

func (e encoding) Marshal(m drpc.Message) ([]byte, error) { return e.MarshalAppend(nil, m) }

// MarshalAppend is what drpc prefers, for it spares a copy.
func (encoding) MarshalAppend(b []byte, v drpc.Message) ([]byte, error) {
	m, ok := v.(message)
	if !ok {
		return nil, notGenerated(v)
	}
	start, size := len(b), m.SizeVT()
	b = slices.Grow(b, size)[:start+size]
	_, err := m.MarshalToSizedBufferVT(b[start:])
	return b, err
}

func (encoding) Unmarshal(b []byte, v drpc.Message) error {
	m, ok := v.(message)
	if !ok {
		return notGenerated(v)
	}
	return m.UnmarshalVT(b)
}

func notGenerated(v any) error {
	return fmt.Errorf("%T has no methods of vtproto: generate them with protoc-gen-go-vtproto", v)
}
