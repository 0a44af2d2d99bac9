package main

import (
	"context"
	"net"
	"net/rpc"
	"sync"

	"github.com/anser-rpc/anser/arena/workload"
)

var gobMode = mode{
	services: func(o *workload.ServerOptions) (any, any) { return plainHello{o}, plainMath{o} },
	serve:    func(s *rpc.Server, c net.Conn) { s.ServeConn(c) },
	dial: func(ctx context.Context, addr string) (workload.Conn, error) {
		c, err := dialTCP(ctx, addr)
		if err != nil {
			return nil, err
		}
		return &gobClient{Client: rpc.NewClient(c)}, nil
	},
}

// Numbers is the request of add.
type Numbers struct{ A, B int32 }

// Sum is the reply of add.
type Sum struct{ X int32 }

type plainHello struct{ o *workload.ServerOptions }

// Say is a method of net/rpc.
func (h plainHello) Say(in, out *Plain) error {
	h.o.Delay()
	*out = *in
	out.Field1, out.Field2 = workload.AnswerField1, workload.AnswerField2
	return nil
}

type plainMath struct{ o *workload.ServerOptions }

// Add is a method of net/rpc.
func (m plainMath) Add(in *Numbers, out *Sum) error {
	m.o.Delay()
	out.X = in.A + in.B
	return nil
}

type gobClient struct {
	*rpc.Client
	once  sync.Once
	plain *Plain // the message of all calls
}

func (c *gobClient) Say(_ context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	c.once.Do(func() { c.plain = plain(in) })
	out := new(Plain)
	return out, c.Call("Hello.Say", c.plain, out)
}

func (c *gobClient) Add(_ context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	var out Sum
	err := c.Call("MathService.Add", &Numbers{in.A, in.B}, &out)
	return &workload.AddReply{X: out.X}, err
}
