package main

import (
	"context"
	"net/http"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/anser-rpc/anser/arena/workload"
)

// h2c returns HTTP/2 without TLS and nothing else, in the settings of the peer connect-go. With
// streams for all callers a connection is never full, which would make the client open another one;
// frames and windows of the most that is allowed carry a large message with little back and forth.
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

// conn is a client with a transport of its own, which has one connection.
type conn struct {
	transport *http.Transport
	client    *connect.Client
}

// dial makes a client that connects with its first call.
func dial(_ context.Context, addr string) (workload.Conn, error) {
	t := new(http.Transport)
	t.Protocols, t.HTTP2 = h2c()
	transport := connecthttp.NewTransport(&http.Client{Transport: t}, "http://"+addr,
		connecthttp.WithCodecs(codec{}),
		connecthttp.WithCompressors(), // no other peer compresses
	)
	return &conn{t, connect.NewClient(transport)}, nil
}

// The methods as generated code describes them.
var (
	saySpec = connect.Spec{
		StreamType: connect.StreamTypeUnary, Procedure: sayMethod,
		Schema: workload.File_arena_workload_benchmark_proto.Services().ByName("Hello").Methods().ByName("Say"),
	}
	addSpec = connect.Spec{
		StreamType: connect.StreamTypeUnary, Procedure: addMethod,
		Schema: workload.File_arena_workload_math_proto.Services().ByName("MathService").Methods().ByName("Add"),
	}
)

func (c *conn) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	out := new(workload.BenchmarkMessage)
	return out, c.client.CallUnary(ctx, saySpec, in, out)
}

func (c *conn) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out := new(workload.AddReply)
	return out, c.client.CallUnary(ctx, addSpec, in, out)
}

func (c *conn) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}
