package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
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

// appender is what Connect's writers are: a buffer to append to.
type appender interface {
	AvailableBuffer() []byte
	Grow(n int)
}

func (codec) MarshalWrite(_ context.Context, dst io.Writer, v any) error {
	m, ok := v.(message)
	if !ok {
		return notGenerated(v)
	}
	size := m.SizeVT()
	var b []byte
	if a, ok := dst.(appender); ok {
		a.Grow(size)
		b = a.AvailableBuffer()
	}
	b = slices.Grow(b, size)[:size]
	if _, err := m.MarshalToSizedBufferVT(b); err != nil {
		return err
	}
	_, err := dst.Write(b)
	return err
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (codec) UnmarshalRead(_ context.Context, src io.Reader, v any) error {
	m, ok := v.(message)
	if !ok {
		return notGenerated(v)
	}
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	if _, err := b.ReadFrom(src); err != nil {
		return err
	}
	return m.UnmarshalVT(b.Bytes())
}

func notGenerated(v any) error {
	return fmt.Errorf("%T has no methods of vtproto: generate them with protoc-gen-go-vtproto", v)
}
