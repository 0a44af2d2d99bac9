package main

import (
	"context"
	"net"
	"net/rpc"

	"github.com/anser-rpc/anser/arena/workload"
)

var protobufMode = mode{
	services: func(o *workload.ServerOptions) (any, any) { return hello{o}, math{o} },
	serve:    func(s *rpc.Server, c net.Conn) { s.ServeCodec(newServerCodec(c)) },
	dial: func(ctx context.Context, addr string) (workload.Conn, error) {
		c, err := dialTCP(ctx, addr)
		if err != nil {
			return nil, err
		}
		return protobufClient{rpc.NewClientWithCodec(newClientCodec(c))}, nil
	},
}

// Said is a reply that a handler points at its message. net/rpc wants it to fill a value that is
// there already, which would copy a message of 40 fields that must not be copied.
type Said struct{ *workload.BenchmarkMessage }

type hello struct{ o *workload.ServerOptions }

// Say is a method of net/rpc.
func (h hello) Say(in *workload.BenchmarkMessage, out *Said) error {
	h.o.Answer(in)
	out.BenchmarkMessage = in
	return nil
}

type math struct{ o *workload.ServerOptions }

// Add is a method of net/rpc.
func (m math) Add(in *workload.AddRequest, out *workload.AddReply) error {
	m.o.Delay()
	out.X = in.A + in.B
	return nil
}

type protobufClient struct{ *rpc.Client }

func (c protobufClient) Say(_ context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	out := new(workload.BenchmarkMessage)
	return out, c.Call("Hello.Say", in, out)
}

func (c protobufClient) Add(_ context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out := new(workload.AddReply)
	return out, c.Call("MathService.Add", in, out)
}
