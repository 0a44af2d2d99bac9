package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/tuple"
	"github.com/anser-rpc/anser/internal/gobwire"
	"github.com/anser-rpc/anser/internal/link"
	"github.com/anser-rpc/anser/netrpc"
)

// The codes of JSON-RPC 2.0.
const (
	CodeParse          = -32700 // the message is not JSON
	CodeInvalidRequest = -32600 // the message is not a request
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeServer         = -32000 // the method returned an error, or the server did not run it
)

// version2 is the value of "jsonrpc" in JSON-RPC 2.0.
const version2 = "2.0"

// maxBatch is the maximum number of requests in a batch.
const maxBatch = 1000

var errMissingParams = errors.New("jsonrpc: request body missing params")

// ServeConn serves a connection with netrpc.DefaultServer, and returns when it ends. For another
// server, pass a codec of [NewServerCodec] to its ServeCodec.
func ServeConn(conn io.ReadWriteCloser) { netrpc.ServeCodec(NewServerCodec(conn)) }

// NewServerCodec returns a codec for a server that supports JSON-RPC 1.0 and 2.0 over conn. Every
// message is answered in its own version.
func NewServerCodec(conn io.ReadWriteCloser) netrpc.ServerCodec {
	return &serverCodec{stream: newStream(conn, "netrpc.Server.MaxMessage"), pending: make(map[uint64]*request)}
}

// serverCodec is JSON-RPC on a server.
type serverCodec struct {
	stream

	// Owned by the reader goroutine.
	queue   []json.RawMessage // of the current batch
	batch   *batch
	current *request
	second  bool // the peer has used 2.0

	mu      sync.Mutex          // guards the fields below, and batches
	seq     uint64              // IDs can be any JSON, netrpc needs numbers
	pending map[uint64]*request // not answered yet
	hold    func(n int) bool    // counts bytes of the responses of batches; nil: they are not counted
	release func(n int)
	held    int // bytes that hold has counted
	closed  bool
}

// request is a request in progress.
type request struct {
	second bool // it uses 2.0
	id     json.RawMessage
	silent bool // a notification
	params json.RawMessage
	large  *largeError // it was over the limit, and has no params
	wrong  bool        // its params have a wrong form
	batch  *batch
}

// batch collects the responses of a batch.
type batch struct {
	left      int
	responses []json.RawMessage
	held      int // bytes of them that count
}

type message struct {
	Version json.RawMessage `json:"jsonrpc"`
	Method  json.RawMessage `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      json.RawMessage `json:"id"`
}

// ReadRequestHeader reads a request, the next one of a batch if there is one.
func (c *serverCodec) ReadRequestHeader(r *netrpc.Request) error {
	for {
		var raw json.RawMessage
		var of *batch
		var large *largeError
		if len(c.queue) > 0 {
			raw, of = c.queue[0], c.batch
			c.queue = c.queue[1:]
		} else {
			var err error
			raw, err = c.next()
			if errors.As(err, &large) {
				err = c.skip(large)
				raw = large.head
			}
			switch {
			case err != nil:
				return err
			case large != nil && (raw == nil || raw[0] == '['):
				c.refuse(nil, nil, CodeInvalidRequest, large.Error())
				if raw == nil {
					return fmt.Errorf("%w: %w", link.ErrTold, large)
				}
				continue
			case raw[0] == '[':
				if err := c.startBatch(raw); err != nil {
					return c.broken(err)
				}
				continue
			}
		}
		ok, err := c.accept(r, raw, of)
		if err != nil {
			return c.broken(err)
		}
		if ok {
			c.current.large = large
			return nil
		}
	}
}

// broken reports to a peer that uses 2.0 that its message is not JSON. The error ends the
// connection.
func (c *serverCodec) broken(err error) error {
	if c.second {
		c.refuse(nil, nil, CodeParse, "the message is not valid JSON")
		return fmt.Errorf("%w: jsonrpc: %w", link.ErrTold, err)
	}
	return fmt.Errorf("jsonrpc: %w", err)
}

// startBatch queues the requests of a batch.
func (c *serverCodec) startBatch(raw json.RawMessage) error {
	c.second = true
	var requests []json.RawMessage
	if err := json.Unmarshal(raw, &requests); err != nil {
		return err
	}
	switch n := len(requests); {
	case n == 0:
		c.refuse(nil, nil, CodeInvalidRequest, "the batch is empty")
	case n > maxBatch:
		c.refuse(nil, nil, CodeInvalidRequest, fmt.Sprintf("the batch has %d requests: send %d at most", n, maxBatch))
	default:
		c.queue, c.batch = requests, &batch{left: n}
	}
	return nil
}

// accept parses a message as a request, or answers it if it is invalid. An error means that it is
// not JSON.
func (c *serverCodec) accept(r *netrpc.Request, raw json.RawMessage, of *batch) (bool, error) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		if of == nil {
			return false, err
		}
		c.refuse(of, nil, CodeInvalidRequest, "the request is not an object")
		return false, nil
	}
	var version, method string
	if len(m.Version) > 0 {
		json.Unmarshal(m.Version, &version) // only a string is a version
	}
	if err := json.Unmarshal(orNull(m.Method), &method); err != nil && version != version2 && of == nil {
		return false, err
	}
	q := &request{second: version == version2, id: m.ID, batch: of}
	if string(m.Params) != "null" {
		q.params = m.Params
	}
	if q.second || of != nil {
		c.second = true
		switch {
		case !q.second:
			c.refuse(of, q.validID(), CodeInvalidRequest, `the request has no "jsonrpc": "2.0"`)
			return false, nil
		case len(q.id) > 0 && q.validID() == nil:
			c.refuse(of, nil, CodeInvalidRequest, "the id is neither a string nor a number")
			return false, nil
		case method == "":
			c.refuse(of, q.validID(), CodeInvalidRequest, "the request has no method")
			return false, nil
		}
		q.silent = len(q.id) == 0
	}
	c.mu.Lock()
	c.seq++
	c.pending[c.seq] = q
	r.ServiceMethod, r.Seq = method, c.seq
	c.mu.Unlock()
	c.current = q
	return true, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return null
	}
	return raw
}

var null = json.RawMessage("null")

// validID returns the ID if 2.0 allows it, otherwise nil.
func (q *request) validID() json.RawMessage {
	if len(q.id) == 0 || q.id[0] == '{' || q.id[0] == '[' || q.id[0] == 't' || q.id[0] == 'f' {
		return nil
	}
	return q.id
}

// RequestSize returns the length of the last request's params.
func (c *serverCodec) RequestSize() int { return len(c.current.params) }

// ReadRequestBody decodes the argument of the last request.
func (c *serverCodec) ReadRequestBody(x any) error {
	if x == nil {
		return nil
	}
	if large := c.current.large; large != nil {
		return &large.TooLargeError
	}
	err := c.current.decode(x)
	if err != nil {
		c.mu.Lock()
		c.current.wrong = true
		c.mu.Unlock()
	}
	return err
}

func (q *request) decode(x any) error {
	if len(q.params) == 0 {
		if _, none := x.(*anser.None); none && q.second {
			return nil // 2.0 leaves them out of a method without arguments
		}
		return errMissingParams
	}
	if !q.second {
		params := [1]any{x}
		return json.Unmarshal(q.params, &params)
	}
	switch q.params[0] {
	case '{':
		return json.Unmarshal(q.params, x)
	case '[':
		if tuple.Is(x) { // one by one
			return json.Unmarshal(q.params, x)
		}
		var params []json.RawMessage
		if err := json.Unmarshal(q.params, &params); err != nil {
			return err
		}
		if len(params) != 1 {
			return fmt.Errorf("jsonrpc: the method takes 1 parameter, there are %d", len(params))
		}
		return json.Unmarshal(params[0], x)
	}
	return errors.New("jsonrpc: params is neither an array nor an object")
}

// WriteResponse answers a request. If the result cannot be encoded, it sends an error instead, and
// returns it.
func (c *serverCodec) WriteResponse(r *netrpc.Response, x any) error {
	return c.WriteHeld(r, x, nil)
}

// WriteHeld is WriteResponse for a result whose turn may come later; see [link.Holder]. The results
// of a batch wait for each other: keep counts them.
func (c *serverCodec) WriteHeld(r *netrpc.Response, x any, hold func(n int) error) error {
	q, err := c.take(r.Seq)
	if err != nil {
		return err
	}
	if r.Error != "" {
		return c.answerError(q, r.Error, CodeServer, nil)
	}
	if q.silent {
		return c.finish(q.batch, nil)
	}
	if q.second {
		x = tuple.Single(x)
	}
	var result []byte
	err = gobwire.Guard(func() (err error) {
		result, err = json.Marshal(x)
		return err
	})
	if err != nil {
		c.answerError(q, fmt.Sprintf("jsonrpc: the server cannot encode the reply of %s: %s", r.ServiceMethod, why(err)), CodeServer, nil)
		return err
	}
	// Assembled by hand: both parts are JSON already, and encoding/json would parse them again.
	out := make([]byte, 0, len(result)+len(q.id)+64)
	if q.second {
		out = append(append(out, `{"jsonrpc":"2.0","result":`...), result...)
		out = append(append(out, `,"id":`...), orNull(q.id)...)
		out = append(out, '}')
		if q.batch != nil && !c.keep(q.batch, len(out)) {
			c.answerError(q, errNoRoom.Error(), CodeServer, map[string]string{"code": anser.ResourceExhausted.String()})
			return errNoRoom
		}
		if q.batch != nil {
			return c.finish(q.batch, out)
		}
	} else {
		out = append(append(out, `{"id":`...), orNull(q.id)...)
		out = append(append(out, `,"result":`...), result...)
		out = append(out, `,"error":null}`...)
	}
	return c.writeHeld(r.Seq, q, out, hold)
}

// writeHeld writes a result, or takes the request back if that is dropped.
func (c *serverCodec) writeHeld(seq uint64, q *request, out []byte, hold func(n int) error) error {
	if hold == nil {
		return c.write(out)
	}
	var dropped error
	err := c.conn.Out.AppendHeld(func() error {
		dropped = hold(len(out))
		return dropped
	}, line(out))
	if dropped != nil {
		c.mu.Lock()
		c.pending[seq] = q
		c.mu.Unlock()
	} else if err == nil {
		c.conn.Out.Flush()
	}
	return err
}

// why returns the text for the caller. The value of a panic is only for the server's log.
func why(err error) string {
	if _, ok := errors.AsType[*gobwire.PanicError](err); ok {
		return "its encoding panicked"
	}
	return err.Error()
}

type response1 struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  any             `json:"error"`
}

// WriteFailure answers a request with a structured error.
func (c *serverCodec) WriteFailure(r *netrpc.Response, cause error) error {
	q, err := c.take(r.Seq)
	if err != nil {
		return err
	}
	code := CodeServer
	var data any
	var refusal *link.Refusal
	switch {
	case q.wrong:
		code = CodeInvalidParams
	case errors.As(cause, &refusal):
		if refusal.Kind == link.NoMethod {
			code = CodeMethodNotFound
		}
	default:
		if known := anser.CodeOf(cause); known != anser.Unknown {
			data = map[string]string{"code": known.String()}
		}
	}
	return c.answerError(q, r.Error, code, data)
}

// take removes a request that is being answered.
func (c *serverCodec) take(seq uint64) (*request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.pending[seq]
	if q == nil {
		return nil, errors.New("jsonrpc: invalid sequence number in response")
	}
	delete(c.pending, seq)
	return q, nil
}

// answerError answers a request with an error.
func (c *serverCodec) answerError(q *request, text string, code int, data any) error {
	if q.silent {
		return c.finish(q.batch, nil)
	}
	if q.second {
		return c.finish(q.batch, error2(orNull(q.id), code, text, data))
	}
	out, err := json.Marshal(response1{ID: orNull(q.id), Result: null, Error: text})
	if err != nil {
		return err
	}
	return c.finish(q.batch, out)
}

// refuse answers an invalid request.
func (c *serverCodec) refuse(of *batch, id json.RawMessage, code int, text string) error {
	return c.finish(of, error2(orNull(id), code, text, nil))
}

func error2(id json.RawMessage, code int, text string, data any) []byte {
	type object struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	out, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		Error   object          `json:"error"`
		ID      json.RawMessage `json:"id"`
	}{version2, object{code, text, data}, id})
	if err != nil {
		return []byte(`{"jsonrpc":"2.0","error":{"code":-32603,"message":"internal error"},"id":null}`)
	}
	return out
}

// finish writes a response, together with the others if it belongs to a batch; nil means none.
func (c *serverCodec) finish(of *batch, out []byte) error {
	if of == nil {
		if out == nil {
			return nil
		}
		return c.write(out)
	}
	c.mu.Lock()
	of.left--
	if out != nil {
		of.responses = append(of.responses, out)
	}
	over := of.left == 0
	c.mu.Unlock()
	if !over {
		return nil
	}
	defer c.drop(of)
	if len(of.responses) == 0 {
		return nil
	}
	all, err := json.Marshal(of.responses)
	if err != nil {
		return err
	}
	return c.write(all)
}
