package rpcxwire

import (
	"errors"
	"io"
)

const (
	smallBuffer = 2 << 10
	keepBuffer  = 64 << 10
	uncounted   = 4 << 10 // bytes of a message that hold does not count
)

// Source is where messages come from. Rest is called at the end of each message, with the number of
// bytes of the next one that have arrived.
type Source interface {
	io.Reader
	Rest(buffered int)
}

// Reader reads messages. Its buffer grows only as bytes arrive. It must not be used by several
// goroutines at once.
type Reader struct {
	src  Source
	hold func(n int) bool

	buf  []byte
	r, w int // buf[r:w] has arrived and is not handled yet
	held int // bytes of buf that hold has counted
}

// NewReader returns a reader. hold is called with the bytes that the buffer takes in addition, or
// gives back if the number is negative; its result says whether there is room for them. It may be
// nil.
func NewReader(src Source, hold func(n int) bool) *Reader {
	if hold == nil {
		hold = func(int) bool { return true }
	}
	return &Reader{src: src, hold: hold, buf: make([]byte, smallBuffer)}
}

// BrokenError is the error of a peer that breaks the protocol.
type BrokenError struct{ Err error }

func (e *BrokenError) Error() string { return e.Err.Error() }
func (e *BrokenError) Unwrap() error { return e.Err }

// ErrNoMemory is the error of a message for which hold has no room.
var ErrNoMemory = errors.New("there is no memory for the message")

// Next reads a message up to its payload. Body or Skip must follow, after which the front is not
// valid any more. The error is io.EOF between two messages.
func (r *Reader) Next() (h Head, f Front, err error) {
	if err = r.need(HeadSize); err != nil {
		if r.w > r.r {
			err = cut(err)
		}
		return h, f, err
	}
	if h, err = ParseHead(r.buf[r.r:r.w]); err != nil {
		return h, f, &BrokenError{err}
	}
	r.r += HeadSize
	for need := 1; ; {
		if err = r.need(need); err != nil {
			return h, f, cut(err)
		}
		f, need, err = ParseFront(&h, r.buf[r.r:min(int64(r.w), int64(r.r)+int64(h.Size))])
		if err != nil {
			return h, f, &BrokenError{err}
		}
		if need == 0 {
			return h, f, nil
		}
	}
}

// Body reads the rest of the message, and returns what follows the head. The payload begins at
// f.Size. The bytes are valid until the next call.
func (r *Reader) Body(f *Front) ([]byte, error) {
	n := f.Size + f.Payload
	if err := r.need(n); err != nil {
		return nil, cut(err)
	}
	body := r.buf[r.r : r.r+n]
	r.r += n
	r.count(0) // its user counts it
	return body, nil
}

// Skip passes over the rest of the message.
func (r *Reader) Skip(f *Front) error {
	for n := int64(f.Size) + int64(f.Payload); n > 0; {
		if r.r == r.w {
			r.r, r.w = 0, 0
			if err := r.need(1); err != nil {
				return cut(err)
			}
		}
		m := min(n, int64(r.w-r.r))
		r.r += int(m)
		n -= m
	}
	r.Done()
	return nil
}

// Done marks the end of a message whose body is not used any more.
func (r *Reader) Done() {
	r.src.Rest(r.w - r.r)
	if r.r == r.w {
		r.r, r.w = 0, 0
		if len(r.buf) > keepBuffer {
			r.buf = make([]byte, smallBuffer)
		}
	}
}

// Close gives back what hold has counted.
func (r *Reader) Close() { r.count(0) }

// need reads until n bytes are in the buffer after r.
func (r *Reader) need(n int) error {
	for r.w-r.r < n {
		if r.r > 0 && (r.r == r.w || r.r+n > len(r.buf)) {
			r.w = copy(r.buf, r.buf[r.r:r.w])
			r.r = 0
		}
		if r.w == len(r.buf) {
			grown := make([]byte, min(2*len(r.buf), max(n, 2*smallBuffer)))
			r.w = copy(grown, r.buf[r.r:r.w])
			r.r, r.buf = 0, grown
			if !r.count(len(grown)) {
				return ErrNoMemory
			}
		}
		m, err := r.src.Read(r.buf[r.w:])
		r.w += m
		if err != nil && r.w-r.r < n {
			return err
		}
	}
	return nil
}

// count counts the size of the buffer.
func (r *Reader) count(size int) bool {
	if size <= uncounted {
		size = 0
	}
	more := size - r.held
	if more != 0 && !r.hold(more) {
		return false
	}
	r.held = size
	return true
}

// cut returns the error of a message that has not arrived completely.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
