package main

import "slices"

// message is what vtproto generates.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

func appendMessage(dst []byte, m message) ([]byte, error) {
	size := m.SizeVT()
	dst = slices.Grow(dst, size)
	start := len(dst)
	dst = dst[:start+size]
	_, err := m.MarshalToSizedBufferVT(dst[start:])
	return dst, err
}
