package jsonrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/anser-rpc/anser/internal/gobwire"
	"github.com/anser-rpc/anser/internal/link"
)

// stream is the common part of the codecs of both sides: consecutive JSON values. One goroutine
// reads, any number write.
type stream struct {
	conn *link.Conn
	in   *bufio.Reader
	buf  []byte // the last message

	option string // the option that sets the limit of a message
}

func newStream(rwc io.ReadWriteCloser, option string) stream {
	conn := link.New(rwc, nil)
	return stream{conn: conn, in: bufio.NewReader(conn), option: option}
}

// Link returns the connection.
func (s *stream) Link() *link.Conn { return s.conn }

// Close closes the connection.
func (s *stream) Close() error { return s.conn.Close() }

var errStart = errors.New("jsonrpc: a message begins with { or [")

// keepBuffer is the largest buffer that an idle connection keeps.
const keepBuffer = 64 << 10

// next reads an object or array, which is valid until the next one is read. It only searches for
// its end, so that the size of the message is checked before it is parsed. At the end of the
// stream the error is io.EOF.
func (s *stream) next() ([]byte, error) {
	if err := s.skipSpace(); err != nil {
		return nil, err
	}
	if s.buf = s.buf[:0]; cap(s.buf) > keepBuffer {
		s.buf = nil
	}
	var end scanner
	for {
		if _, err := s.in.Peek(1); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		chunk, _ := s.in.Peek(s.in.Buffered())
		n, done := end.scan(chunk)
		if limit := s.conn.MaxMessage(); len(s.buf)+n > limit {
			return nil, &largeError{gobwire.TooLargeError{Size: int64(len(s.buf)), Limit: int64(limit)}, s.option, nil}
		}
		s.buf = append(s.buf, chunk[:n]...)
		s.in.Discard(n)
		if done {
			s.rest()
			return s.buf, nil
		}
	}
}

// maxSkip is how many bytes of a message over the limit are read to find its end.
const maxSkip = 64 << 20

// largeError is the error of a message over the limit.
type largeError struct {
	gobwire.TooLargeError
	option string
	head   json.RawMessage // after skip: the message without its params, or nil if its end was not found
}

func (e *largeError) Error() string {
	return fmt.Sprintf("jsonrpc: a message is over the limit of %d bytes: send less, or raise %s", e.Limit, e.option)
}

// skip reads the rest of a message over the limit without keeping it.
func (s *stream) skip(large *largeError) error {
	var of finder
	of.scan(s.buf)
	s.buf = nil
	for large.Size < maxSkip {
		if _, err := s.in.Peek(1); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		chunk, _ := s.in.Peek(s.in.Buffered())
		n, done := of.scan(chunk)
		large.Size += int64(n)
		s.in.Discard(n)
		if done {
			s.rest()
			large.head = of.head()
			return nil
		}
	}
	return nil
}

// skipSpace skips to the beginning of a message.
func (s *stream) skipSpace() error {
	for {
		b, err := s.in.ReadByte()
		switch {
		case err != nil:
			return err
		case isSpace(b):
			s.rest()
		case b == '{' || b == '[':
			return s.in.UnreadByte()
		default:
			return errStart
		}
	}
}

// rest marks the end of a message. A following newline does not begin another one.
func (s *stream) rest() {
	for s.in.Buffered() > 0 {
		if b, err := s.in.Peek(1); err != nil || !isSpace(b[0]) {
			break
		}
		s.in.Discard(1)
	}
	s.conn.Rest(s.in.Buffered())
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// scanner finds the end of an object or array that arrives in pieces. Its contents are checked
// when it is decoded.
type scanner struct {
	depth   int
	text    bool // inside a string
	escaped bool // after a backslash
}

// scan returns how many bytes of the piece belong to the value, and whether it ends there.
func (s *scanner) scan(piece []byte) (n int, done bool) {
	for i := 0; i < len(piece); i++ {
		b := piece[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.text:
			switch b {
			case '\\':
				s.escaped = true
			case '"':
				s.text = false
			}
		case b == '"':
			s.text = true
		case b == '{' || b == '[':
			s.depth++
		case b == '}' || b == ']':
			if s.depth--; s.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(piece), false
}

// write appends a message as a line, and writes it.
func (s *stream) write(message []byte) error {
	_, err := s.enqueue(message, nil)
	if err == nil {
		s.conn.Out.Flush()
	}
	return err
}

func (s *stream) enqueue(message []byte, giveUp <-chan struct{}) (int64, error) {
	return s.conn.Out.Append(giveUp, line(message))
}

// line returns a function that writes a message as a line.
func line(message []byte) func(b *bytes.Buffer) error {
	return func(b *bytes.Buffer) error {
		b.Write(message)
		return b.WriteByte('\n')
	}
}
