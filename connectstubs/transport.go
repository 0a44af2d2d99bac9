package connectstubs

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/stubwire"
)

// protocolName is what CallInfo.Protocol says.
const protocolName = "anser"

// inProtobuf is the codec of all calls.
var inProtobuf = anser.Codec(protobuf.New())

// transport is what generated clients call through.
type transport struct {
	client *anser.Client
	opts   []anser.CallOption
}

// NewTransport returns a transport that calls through c, which it does not close. The options apply
// to every unary call. It is safe for concurrent use.
func NewTransport(c *anser.Client, opts ...anser.CallOption) connect.Transport {
	return &transport{c, append([]anser.CallOption{inProtobuf}, opts...)}
}

// NewClientStream returns a call, which is made when its first message is sent.
func (t *transport) NewClientStream(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
	if t.client == nil {
		return nil, connect.NewError(connect.CodeInternal, "connectstubs: the client of the transport is nil")
	}
	if spec.StreamType > connect.StreamTypeBidi {
		return nil, connect.Errorf(connect.CodeInternal, "connectstubs: the method %s has the unknown type %s", spec.Procedure, spec.StreamType)
	}
	name, err := methodName(spec.Procedure)
	if err != nil {
		return nil, err
	}
	info, ok := connect.CallInfoForClientContext(ctx)
	if !ok {
		info = new(connect.CallInfo)
	}
	info.Spec, info.Protocol, info.Codec = spec, protocolName, connect.CodecNameProto
	ctx, cancel := context.WithCancel(ctx)
	c := call{t: t, ctx: ctx, cancel: cancel, name: name, spec: spec, info: info}
	if spec.StreamType == connect.StreamTypeUnary {
		return &unaryCall{call: c, ready: make(chan struct{})}, nil
	}
	return &clientStream{call: c}, nil
}

// methodName turns "/orders.v1.Orders/Place" into "orders.v1.Orders.Place".
func methodName(procedure string) (string, error) {
	service, method, ok := strings.Cut(strings.TrimPrefix(procedure, "/"), "/")
	if !ok || service == "" || method == "" || strings.Contains(method, "/") {
		return "", connect.Errorf(connect.CodeUnimplemented, "connectstubs: malformed procedure %q: want /package.Service/Method", procedure)
	}
	return service + "." + method, nil
}

// call is what unary calls and streams of a client have in common.
type call struct {
	t      *transport
	ctx    context.Context
	cancel context.CancelFunc
	name   string
	spec   connect.Spec
	info   *connect.CallInfo
}

// outgoing returns the context with the headers of the request.
func (c *call) outgoing() (context.Context, error) {
	md, err := toWire(c.info.RequestHeader())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error()).WithCause(err)
	}
	if c.spec.StreamType != connect.StreamTypeUnary {
		md[stubwire.AcceptsKey] = []string{"1"}
	}
	if len(md) == 0 {
		return c.ctx, nil
	}
	return anser.WithMetadata(c.ctx, stubwire.Pack(md)), nil
}

// messageOf returns msg as a message of protobuf, the only ones that calls take.
func messageOf(msg any) (proto.Message, error) {
	m, ok := msg.(proto.Message)
	if !ok {
		return nil, connect.Errorf(connect.CodeInternal, "connectstubs: %T is not a protobuf message: calls carry nothing else", msg)
	}
	return m, nil
}

// unaryCall is a call with one request and one reply, made by Receive.
type unaryCall struct {
	call
	received bool          // owned by the receiving goroutine
	ready    chan struct{} // closed when nothing more is sent

	mu      sync.Mutex // guards the fields below
	done    bool       // ready is closed
	closed  bool       // by CloseSend or Close
	request proto.Message
}

// SendHeaders does nothing: the headers are sent with the request.
func (c *unaryCall) SendHeaders() error { return nil }

// Send takes the request, which must not be changed until Receive returns.
func (c *unaryCall) Send(msg any) error {
	m, err := messageOf(msg)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return io.EOF
	}
	if c.request != nil {
		return connect.Errorf(connect.CodeUnimplemented, "connectstubs: the method %s takes one request", c.name)
	}
	c.request = m
	c.info.SendStats = connect.MessageStats{Size: proto.Size(m)}
	c.finishLocked()
	return nil
}

// CloseSend says that there is no request, unless one was sent.
func (c *unaryCall) CloseSend() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.finishLocked()
	return nil
}

// Close ends the call, also while Receive waits for the reply.
func (c *unaryCall) Close() error {
	c.cancel()
	return nil
}

func (c *unaryCall) finishLocked() {
	if !c.done {
		c.done = true
		close(c.ready)
	}
}

// Receive makes the call and decodes the reply into msg. Further ones return io.EOF.
func (c *unaryCall) Receive(msg any) error {
	if c.received {
		return io.EOF
	}
	reply, err := messageOf(msg)
	if err != nil {
		return err
	}
	c.received = true
	defer c.cancel()
	select {
	case <-c.ready:
	case <-c.ctx.Done():
		return toConnect(c.ctx.Err())
	}
	c.mu.Lock()
	request := c.request
	c.mu.Unlock()
	if request == nil {
		return connect.Errorf(connect.CodeUnimplemented, "connectstubs: the method %s takes a request: call Send first", c.name)
	}
	ctx, err := c.outgoing()
	if err != nil {
		return err
	}
	var trailer anser.Metadata
	opts := append(slices.Clip(c.t.opts), anser.Trailer(&trailer))
	if c.spec.IdempotencyLevel != connect.IdempotencyUnknown {
		opts = append(opts, anser.Idempotent())
	}
	err = c.t.client.Call(ctx, c.name, request, reply, opts...)
	fromWire(c.info.ResponseHeader(), stubwire.UnpackHeaders(trailer))
	fromWire(c.info.ResponseTrailer(), stubwire.Unpack(trailer))
	if err != nil {
		return toConnect(err)
	}
	c.info.ReceiveStats = connect.MessageStats{Size: proto.Size(reply)}
	return nil
}
