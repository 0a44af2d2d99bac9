package thrift

import (
	"context"
	"io"
)

// transport is the buffer that a protocol writes to and reads from: one message.
type transport struct {
	data []byte
	at   int // position of the next read
}

func (t *transport) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	return len(p), nil
}

// WriteByte and WriteString save the protocols a buffer.
func (t *transport) WriteByte(b byte) error {
	t.data = append(t.data, b)
	return nil
}

func (t *transport) WriteString(s string) (int, error) {
	t.data = append(t.data, s...)
	return len(s), nil
}

func (t *transport) Read(p []byte) (int, error) {
	if t.at == len(t.data) && len(p) > 0 {
		return 0, io.EOF
	}
	n := copy(p, t.data[t.at:])
	t.at += n
	return n, nil
}

func (t *transport) ReadByte() (byte, error) {
	if t.at == len(t.data) {
		return 0, io.EOF
	}
	t.at++
	return t.data[t.at-1], nil
}

// RemainingBytes lets the protocols compare a declared length with the remaining bytes.
func (t *transport) RemainingBytes() uint64 { return uint64(len(t.data) - t.at) }

func (*transport) Flush(context.Context) error { return nil }
func (*transport) Open() error                 { return nil }
func (*transport) IsOpen() bool                { return true }
func (*transport) Close() error                { return nil }
