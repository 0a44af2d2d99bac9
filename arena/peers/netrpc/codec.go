package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"slices"
)

// message is what vtproto generates.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// A frame is
//
//	size of the body u32, sequence number u64, size of the name u8, name, body
//
// in little endian. The name is the method of a request and the error of a response.
const headerSize = 4 + 8 + 1

const (
	maxName    = 255
	maxBody    = 16 << 20  // larger than any message here; an invalid frame must not use all memory
	bufferSize = 64 << 10  // 100 messages of the workload
	keptBuffer = 256 << 10 // larger ones are left to the garbage collector
)

// framer reads and writes frames. net/rpc holds a lock while it writes one, and reads from one
// goroutine.
type framer struct {
	conn  net.Conn
	in    *bufio.Reader
	out   []byte            // the last frame that was written
	large []byte            // the last body that did not fit in the buffer of in
	body  int               // size of the next body
	names map[string]string // methods, so that each is one string however many calls name it
}

func newFramer(conn net.Conn) framer {
	return framer{conn: conn, in: bufio.NewReaderSize(conn, bufferSize), names: make(map[string]string)}
}

// Close closes the connection, for both sides of net/rpc.
func (f *framer) Close() error { return f.conn.Close() }

// write writes a frame with one system call. Without a message it has no body.
func (f *framer) write(seq uint64, name string, m message) error {
	name = name[:min(len(name), maxName)]
	size := 0
	if m != nil {
		size = m.SizeVT()
	}
	if size > maxBody {
		return fmt.Errorf("a message of %d bytes: %d are the most", size, maxBody)
	}
	b := binary.LittleEndian.AppendUint32(f.out[:0], uint32(size))
	b = binary.LittleEndian.AppendUint64(b, seq)
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = slices.Grow(b, size)
	start := len(b)
	b = b[:start+size]
	if m != nil {
		if _, err := m.MarshalToSizedBufferVT(b[start:]); err != nil {
			return err
		}
	}
	if cap(b) <= keptBuffer {
		f.out = b
	}
	_, err := f.conn.Write(b)
	return err
}

// header reads a frame up to its body.
func (f *framer) header() (seq uint64, name string, err error) {
	b, err := f.in.Peek(headerSize)
	if err != nil {
		return 0, "", end(b, err)
	}
	f.body, seq = int(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint64(b[4:])
	if f.body > maxBody {
		return 0, "", fmt.Errorf("a message of %d bytes: %d are the most", f.body, maxBody)
	}
	size := headerSize + int(b[12])
	if b, err = f.in.Peek(size); err != nil {
		return 0, "", end(b, err)
	}
	name = f.name(b[headerSize:])
	_, err = f.in.Discard(size)
	return seq, name, err
}

// end tells a connection that ended between two frames from one that ended in one.
func end(b []byte, err error) error {
	if err == io.EOF && len(b) > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (f *framer) name(b []byte) string {
	name, ok := f.names[string(b)]
	if !ok {
		name = string(b)
		if len(f.names) < 16 {
			f.names[name] = name
		}
	}
	return name
}

// read decodes the body of the frame whose header was read, or skips it where v is nil. One that
// is in the buffer as a whole is not copied.
func (f *framer) read(v any) error {
	if v == nil {
		_, err := f.in.Discard(f.body)
		return err
	}
	m, ok := v.(message)
	if !ok {
		return notGenerated(v)
	}
	if f.body <= bufferSize {
		b, err := f.in.Peek(f.body)
		if err != nil {
			return end(b, err)
		}
		if err := m.UnmarshalVT(b); err != nil {
			return err
		}
		_, err = f.in.Discard(f.body)
		return err
	}
	b := slices.Grow(f.large[:0], f.body)[:f.body]
	if cap(b) <= keptBuffer {
		f.large = b
	}
	if _, err := io.ReadFull(f.in, b); err != nil {
		return err
	}
	return m.UnmarshalVT(b)
}

func notGenerated(v any) error {
	return fmt.Errorf("%T has no methods of vtproto: generate them with protoc-gen-go-vtproto", v)
}

type clientCodec struct{ framer }

func newClientCodec(c net.Conn) rpc.ClientCodec { return &clientCodec{newFramer(c)} }

func (c *clientCodec) WriteRequest(r *rpc.Request, body any) error {
	m, ok := body.(message)
	if !ok {
		return notGenerated(body)
	}
	return c.write(r.Seq, r.ServiceMethod, m)
}

func (c *clientCodec) ReadResponseHeader(r *rpc.Response) (err error) {
	r.Seq, r.Error, err = c.header()
	return err
}

func (c *clientCodec) ReadResponseBody(body any) error { return c.read(body) }

type serverCodec struct{ framer }

func newServerCodec(c net.Conn) rpc.ServerCodec { return &serverCodec{newFramer(c)} }

func (c *serverCodec) ReadRequestHeader(r *rpc.Request) (err error) {
	r.Seq, r.ServiceMethod, err = c.header()
	return err
}

func (c *serverCodec) ReadRequestBody(body any) error { return c.read(body) }

func (c *serverCodec) WriteResponse(r *rpc.Response, body any) error {
	if r.Error != "" {
		return c.write(r.Seq, r.Error, nil) // the body is a placeholder of net/rpc's
	}
	m, ok := body.(message)
	if !ok {
		m = nil
		r.Error = notGenerated(body).Error()
	}
	return c.write(r.Seq, r.Error, m)
}
