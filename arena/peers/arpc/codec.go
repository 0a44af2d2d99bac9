package main

import "fmt"

// message is what vtproto generates.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// codec takes the place of JSON, which is the default.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(message)
	if !ok {
		return nil, notGenerated(v)
	}
	b := make([]byte, m.SizeVT())
	_, err := m.MarshalToSizedBufferVT(b)
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
