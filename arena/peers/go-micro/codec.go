package main

import "fmt"

// vtproto is a codec of gRPC for messages with the methods of vtproto.
type vtproto struct{}

// Name implements encoding.Codec.
func (vtproto) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (vtproto) Marshal(v any) ([]byte, error) {
	m, ok := v.(interface{ MarshalVT() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no MarshalVT: generate it with vtproto", v)
	}
	return m.MarshalVT()
}

// Unmarshal implements encoding.Codec.
func (vtproto) Unmarshal(b []byte, v any) error {
	m, ok := v.(interface{ UnmarshalVT([]byte) error })
	if !ok {
		return fmt.Errorf("%T has no UnmarshalVT: generate it with vtproto", v)
	}
	return m.UnmarshalVT(b)
}
