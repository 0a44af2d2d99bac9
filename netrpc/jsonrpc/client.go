package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/anser-rpc/anser/netrpc"
)

// NewClientCodec returns a codec for a client that speaks JSON-RPC 1.0 over conn.
func NewClientCodec(conn io.ReadWriteCloser) netrpc.ClientCodec {
	return &clientCodec{stream: newStream(conn, "netrpc.Dialer.MaxMessage"), pending: make(map[uint64]string)}
}

// NewClientCodec2 returns a codec for a client that speaks JSON-RPC 2.0 over conn. Arguments that
// are objects in JSON are sent as named parameters, others as an array of one. Errors of the
// server are of type [*Error].
func NewClientCodec2(conn io.ReadWriteCloser) netrpc.ClientCodec {
	return &clientCodec{stream: newStream(conn, "netrpc.Dialer.MaxMessage"), pending: make(map[uint64]string), second: true}
}

// NewClient returns a client that speaks JSON-RPC 1.0 over conn. See [netrpc.NewClient].
func NewClient(conn io.ReadWriteCloser) *netrpc.Client {
	return netrpc.NewClientWithCodec(NewClientCodec(conn))
}

// NewClient2 returns a client that speaks JSON-RPC 2.0 over conn. See [NewClientCodec2].
func NewClient2(conn io.ReadWriteCloser) *netrpc.Client {
	return netrpc.NewClientWithCodec(NewClientCodec2(conn))
}

// Dial connects to a server of JSON-RPC 1.0. For a context, a timeout or TLS, use a
// [netrpc.Dialer] with NewClientCodec.
func Dial(network, address string) (*netrpc.Client, error) {
	return (&netrpc.Dialer{Codec: NewClientCodec}).Dial(context.Background(), network, address)
}

// Dial2 connects to a JSON-RPC 2.0 server. See [NewClientCodec2] and [Dial].
func Dial2(network, address string) (*netrpc.Client, error) {
	return (&netrpc.Dialer{Codec: NewClientCodec2}).Dial(context.Background(), network, address)
}

// Error is an error object of JSON-RPC 2.0, returned by a client's call.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// clientCodec is JSON-RPC on a client.
type clientCodec struct {
	stream
	second bool // speaks 2.0

	mu      sync.Mutex        // guards pending
	pending map[uint64]string // methods of calls by number: responses do not contain them

	// Of the last response.
	result  json.RawMessage
	failure *Error
}

// WriteRequest writes a request, and returns when it is written.
func (c *clientCodec) WriteRequest(r *netrpc.Request, param any) error {
	end, err := c.Enqueue(r, param, nil)
	if err != nil {
		return err
	}
	return c.conn.Out.FlushTo(end)
}

// Enqueue encodes a request that the caller must then flush.
func (c *clientCodec) Enqueue(r *netrpc.Request, param any, giveUp <-chan struct{}) (int64, error) {
	params, err := json.Marshal(param)
	if err != nil {
		return 0, err
	}
	method, err := json.Marshal(r.ServiceMethod)
	if err != nil {
		return 0, err
	}
	// Assembled by hand: the parts are JSON already, and encoding/json would parse them again.
	message := make([]byte, 0, len(params)+len(method)+80)
	message = append(message, '{')
	if c.second {
		message = append(message, `"jsonrpc":"2.0",`...)
	}
	message = append(append(message, `"method":`...), method...)
	message = append(message, `,"params":`...)
	if c.second && params[0] == '{' {
		message = append(message, params...)
	} else {
		message = append(append(append(message, '['), params...), ']')
	}
	message = append(message, `,"id":`...)
	message = append(strconv.AppendUint(message, r.Seq, 10), '}')
	c.mu.Lock()
	c.pending[r.Seq] = r.ServiceMethod
	c.mu.Unlock()
	end, err := c.enqueue(message, giveUp)
	if err != nil {
		c.take(r.Seq)
	}
	return end, err
}

// take removes a call and returns its method.
func (c *clientCodec) take(id uint64) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	method, ok := c.pending[id]
	delete(c.pending, id)
	return method, ok
}

type response struct {
	ID     *uint64         `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// ReadResponseHeader reads a response.
func (c *clientCodec) ReadResponseHeader(r *netrpc.Response) error {
	message, err := c.next()
	if err != nil {
		return err
	}
	var in response
	if err := json.Unmarshal(message, &in); err != nil {
		return fmt.Errorf("jsonrpc: a response is broken: %w", err)
	}
	c.failure = nil
	c.result = in.Result
	failed := len(in.Error) > 0 && string(in.Error) != "null"
	if in.ID == nil {
		// The server could not parse the request, so it is unknown which call is meant.
		return fmt.Errorf("jsonrpc: the server did not understand a request: %s", in.Error)
	}
	r.Seq = *in.ID
	method, known := c.take(r.Seq)
	r.ServiceMethod = method
	switch {
	case failed:
		r.Error = c.readError(in.Error)
	case len(in.Result) > 0 && (c.second || string(in.Result) != "null"):
	case known:
		r.Error = "jsonrpc: the response has neither a result nor an error"
	default:
		return errors.New("jsonrpc: a response belongs to no call and has neither a result nor an error")
	}
	return nil
}

// readError returns the text of an error, which is a string in JSON-RPC 1.0 and an object in 2.0.
// Other JSON is returned as text.
func (c *clientCodec) readError(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			text = "unspecified error"
		}
		return text
	}
	var e Error
	if c.second && json.Unmarshal(raw, &e) == nil {
		if e.Message == "" {
			e.Message = fmt.Sprintf("error %d", e.Code)
		}
		c.failure = &e
		return e.Message
	}
	return string(raw)
}

// Failure returns the error object of the last response, or nil.
func (c *clientCodec) Failure() error {
	if c.failure == nil {
		return nil
	}
	return c.failure
}

// ReadResponseBody decodes the result.
func (c *clientCodec) ReadResponseBody(x any) error {
	if x == nil {
		return nil
	}
	return json.Unmarshal(c.result, x)
}
