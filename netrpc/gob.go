package netrpc

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/rpc"

	"github.com/anser-rpc/anser/internal/gobwire"
	"github.com/anser-rpc/anser/internal/link"
)

// gobStream is the common part of the codecs of both sides: values in pairs, a header and a body.
// One goroutine reads, any number write.
type gobStream struct {
	conn *link.Conn
	in   *gobwire.Reader
	dec  *gob.Decoder
	out  *gobwire.Writer // guarded by conn.Out
}

func newGobStream(conn *link.Conn) gobStream {
	in := gobwire.NewReader(bufio.NewReader(conn))
	return gobStream{conn: conn, in: in, dec: gob.NewDecoder(in), out: gobwire.NewWriter()}
}

// Link returns the connection.
func (g *gobStream) Link() *link.Conn { return g.conn }

// Close closes the connection.
func (g *gobStream) Close() error { return g.conn.Close() }

// maxHeader is the maximum size of a header: a name and a number.
const maxHeader = 64 << 10

// decode decodes the last value into v, or drops it if v is nil.
func (g *gobStream) decode(v any) error {
	if v == nil {
		g.in.Drop()
		return nil
	}
	if err := g.in.Admit(v); err != nil {
		g.in.Drop()
		return err
	}
	defer g.in.Done()
	return gobwire.Guard(func() error { return g.dec.Decode(v) })
}

// readHeader reads a header of a message.
func (g *gobStream) readHeader(v any) error {
	if err := g.in.Next(min(maxHeader, g.conn.MaxMessage())); err != nil {
		if large, ok := errors.AsType[*gobwire.TooLargeError](err); ok {
			// It is unknown to which call the following body belongs.
			return fmt.Errorf("the header of a message has %d bytes, which is over the limit of %d", large.Size, large.Limit)
		}
		return err
	}
	return g.decode(v)
}

// gobServerCodec is net/rpc's gob protocol on a server.
type gobServerCodec struct{ gobStream }

func newGobServerCodec(conn *link.Conn) ServerCodec { return &gobServerCodec{newGobStream(conn)} }

// ReadRequestHeader reads the header of a request.
func (c *gobServerCodec) ReadRequestHeader(r *Request) error { return c.readHeader(r) }

// ReadRequestBody reads the argument of a request.
func (c *gobServerCodec) ReadRequestBody(body any) error {
	err := c.in.Next(c.conn.MaxMessage())
	c.conn.Rest(c.in.Buffered())
	if err != nil {
		return err
	}
	return c.decode(body)
}

// RequestSize returns the length of the last argument.
func (c *gobServerCodec) RequestSize() int { return c.in.Size() }

// WriteResponse writes a reply. If that cannot be encoded, it sends an error instead, and returns
// it.
func (c *gobServerCodec) WriteResponse(r *Response, body any) error {
	return c.respond(r, body, nil)
}

// WriteHeld is WriteResponse for a reply whose turn may come later; see [link.Holder]. Its size is
// found by encoding it once more than to send it: what is sent depends on what was sent before.
func (c *gobServerCodec) WriteHeld(r *Response, body any, hold func(n int) error) error {
	return c.respond(r, body, func() error {
		var n counter
		gobwire.Guard(func() error { return gob.NewEncoder(&n).Encode(body) }) // respond says what is wrong
		return hold(int(n))
	})
}

func (c *gobServerCodec) respond(r *Response, body any, hold func() error) error {
	var failed error
	err := c.conn.Out.AppendHeld(hold, func(b *bytes.Buffer) error {
		err := c.out.Append(b, r, body)
		if err == nil || errors.Is(err, gobwire.ErrBroken) {
			return err
		}
		failed = err
		return c.out.Append(b, &rpc.Response{ServiceMethod: r.ServiceMethod, Seq: r.Seq, Error: cannotEncode(r.ServiceMethod, err)}, invalid)
	})
	if err != nil {
		if errors.Is(err, gobwire.ErrBroken) {
			c.Close()
		}
		return err
	}
	c.conn.Out.Flush()
	return failed
}

// counter counts what is written to it.
type counter int

// Write implements [io.Writer].
func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

// cannotEncode returns the error for the caller. In this case net/rpc's server closes the
// connection, whereupon its client returns "reading body unexpected EOF"; programs and Go's own
// tests look for this text.
func cannotEncode(method string, err error) string {
	if _, ok := errors.AsType[*gobwire.PanicError](err); ok {
		err = errors.New("its encoding panicked")
	}
	return fmt.Sprintf("reading body unexpected EOF: the server cannot encode the reply of %s: %v", method, err)
}

// gobClientCodec is net/rpc's gob protocol on a client.
type gobClientCodec struct {
	gobStream
	bodyErr error // from reading the body of the last header
}

// WriteRequest writes a request, and returns when it is written.
func (c *gobClientCodec) WriteRequest(r *Request, body any) error {
	end, err := c.Enqueue(r, body, nil)
	if err != nil {
		return err
	}
	return c.conn.Out.FlushTo(end)
}

// Enqueue encodes a request that the caller must then flush.
func (c *gobClientCodec) Enqueue(r *Request, body any, giveUp <-chan struct{}) (int64, error) {
	end, err := c.conn.Out.Append(giveUp, func(b *bytes.Buffer) error { return c.out.Append(b, r, body) })
	if errors.Is(err, gobwire.ErrBroken) {
		c.Close()
	}
	return end, err
}

// ReadResponseHeader reads a response and decodes its header. The body has also arrived when it
// returns, so that decoding it does not wait for the network.
func (c *gobClientCodec) ReadResponseHeader(r *Response) error {
	if err := c.readHeader(r); err != nil {
		return err
	}
	c.bodyErr = c.in.Next(c.conn.MaxMessage())
	c.conn.Rest(c.in.Buffered())
	if c.bodyErr == io.EOF {
		c.bodyErr = io.ErrUnexpectedEOF
	}
	return nil
}

// ReadResponseBody decodes the reply.
func (c *gobClientCodec) ReadResponseBody(body any) error {
	if c.bodyErr != nil {
		return c.bodyErr
	}
	return c.decode(body)
}
