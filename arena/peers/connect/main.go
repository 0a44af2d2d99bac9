// Connect is a peer of the arena: Connect for Go, its own protocol over HTTP/2 without TLS.
package main

import (
	"context"
	"net"
	"net/http"

	"connectrpc.com/connect"

	"github.com/anser-rpc/anser/arena/workload"
)

func main() { newProgram().Main() }

func newProgram() *workload.Program {
	return &workload.Program{Name: "connect", Serve: serve, Open: workload.OpenLazy(dial)}
}

const (
	sayMethod = "/arena.workload.Hello/Say"
	addMethod = "/arena.workload.MathService/Add"
)

// h2c returns HTTP/2 without TLS and nothing else. With streams for all callers a connection is
// never full, which would make the client open another one; frames and windows of the most that is
// allowed carry a large message with little back and forth.
func h2c() (*http.Protocols, *http.HTTP2Config) {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p, &http.HTTP2Config{
		MaxConcurrentStreams:          1 << 20,
		MaxReadFrameSize:              1 << 20,
		MaxReceiveBufferPerConnection: 4<<20 - 1,
		MaxReceiveBufferPerStream:     4<<20 - 1,
	}
}

func serve(ctx context.Context, o *workload.ServerOptions) error {
	opts := []connect.HandlerOption{
		connect.WithCodec(codec{}),
		connect.WithCompression("gzip", nil, nil), // no other peer compresses
	}
	mux := http.NewServeMux()
	mux.Handle(sayMethod, connect.NewUnaryHandler(sayMethod,
		func(_ context.Context, in *connect.Request[workload.BenchmarkMessage]) (*connect.Response[workload.BenchmarkMessage], error) {
			o.Answer(in.Msg)
			return connect.NewResponse(in.Msg), nil
		}, opts...))
	mux.Handle(addMethod, connect.NewUnaryHandler(addMethod,
		func(_ context.Context, in *connect.Request[workload.AddRequest]) (*connect.Response[workload.AddReply], error) {
			o.Delay()
			return connect.NewResponse(&workload.AddReply{X: in.Msg.A + in.Msg.B}), nil
		}, opts...))
	s := &http.Server{Handler: mux}
	s.Protocols, s.HTTP2 = h2c()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// conn is a client with a transport of its own, which has one connection.
type conn struct {
	transport *http.Transport
	hello     *connect.Client[workload.BenchmarkMessage, workload.BenchmarkMessage]
	math      *connect.Client[workload.AddRequest, workload.AddReply]
}

// dial makes a client that connects with its first call.
func dial(_ context.Context, addr string) (workload.Conn, error) {
	t := new(http.Transport)
	t.Protocols, t.HTTP2 = h2c()
	opts := []connect.ClientOption{
		connect.WithCodec(codec{}),
		connect.WithAcceptCompression("gzip", nil, nil),
	}
	client := &http.Client{Transport: t}
	return &conn{
		transport: t,
		hello:     connect.NewClient[workload.BenchmarkMessage, workload.BenchmarkMessage](client, "http://"+addr+sayMethod, opts...),
		math:      connect.NewClient[workload.AddRequest, workload.AddReply](client, "http://"+addr+addMethod, opts...),
	}, nil
}

func (c *conn) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	out, err := c.hello.CallUnary(ctx, connect.NewRequest(in))
	if err != nil {
		return nil, err
	}
	return out.Msg, nil
}

func (c *conn) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out, err := c.math.CallUnary(ctx, connect.NewRequest(in))
	if err != nil {
		return nil, err
	}
	return out.Msg, nil
}

func (c *conn) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}
