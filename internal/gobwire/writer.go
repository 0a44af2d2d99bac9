package gobwire

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrBroken means that a failed value has left a part of itself in the stream, which must be
// closed.
var ErrBroken = errors.New("a part of the value is in the stream already")

// PanicError is the error of a value whose own methods panicked while it was read or written.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the value of the panic.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Guard runs f and turns a panic into a [*PanicError].
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Writer encodes values in pairs, a header and a body, for one stream. It is not safe for
// concurrent use.
type Writer struct {
	enc *gob.Encoder
	dst *bytes.Buffer
}

// NewWriter returns a Writer for the beginning of a stream.
func NewWriter() *Writer {
	w := new(Writer)
	w.enc = gob.NewEncoder(target{w})
	return w
}

// target is the destination of the encoder: the buffer of the current call.
type target struct{ w *Writer }

func (t target) Write(p []byte) (int, error) { return t.w.dst.Write(p) }

// Append appends header and body to dst, both or none: if the body cannot be encoded, only
// definitions of types remain, which the rest of the stream needs, and the error is returned. If
// that is impossible, the error is also ErrBroken, and dst must not be sent.
func (w *Writer) Append(dst *bytes.Buffer, header, body any) error {
	start := dst.Len()
	w.dst = dst
	defer func() { w.dst = nil }()
	err := Guard(func() error { return w.enc.Encode(header) })
	middle := dst.Len()
	if err == nil {
		err = Guard(func() error { return w.enc.Encode(body) })
	}
	if err == nil {
		return nil
	}
	kept, _, headerErr := definitions(dst.Bytes()[start:middle])
	more, values, bodyErr := definitions(dst.Bytes()[middle:])
	if headerErr != nil || bodyErr != nil || values > 0 {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	kept = append(kept, more...)
	dst.Truncate(start)
	dst.Write(kept)
	return err
}

// definitions returns a copy of the messages that define types, and the number of the other
// messages.
func definitions(stream []byte) (kept []byte, values int, err error) {
	for c := (cursor{data: stream}); c.left() > 0; {
		start := c.pos
		message, err := c.bytes()
		if err != nil {
			return nil, 0, err
		}
		head := cursor{data: message}
		id, err := head.int()
		if err != nil {
			return nil, 0, err
		}
		if id >= 0 {
			values++
			continue
		}
		kept = append(kept, stream[start:c.pos]...)
	}
	return kept, values, nil
}
