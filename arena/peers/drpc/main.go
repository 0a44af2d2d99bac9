// Drpc is a peer of the arena: Storj's DRPC.
package main

import (
	"context"
	"net"

	"storj.io/drpc"
	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcmanager"
	"storj.io/drpc/drpcmux"
	"storj.io/drpc/drpcserver"

	"github.com/anser-rpc/anser/arena/workload"
)

func main() { newProgram().Main() }

func newProgram() *workload.Program {
	return &workload.Program{Name: "drpc", Serve: serve, Open: workload.Open(dial)}
}

// options let a message of 64 KiB be one write. A smaller one is anyhow.
var options = drpcmanager.Options{WriterBufferSize: 128 << 10}

// service is the server's side of both services.
type service struct{ o *workload.ServerOptions }

func (s *service) say(_ context.Context, in *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error) {
	s.o.Answer(in)
	return in, nil
}

func (s *service) add(_ context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	s.o.Delay()
	return &workload.AddReply{X: in.A + in.B}, nil
}

const (
	sayMethod = "/arena.workload.Hello/Say"
	addMethod = "/arena.workload.MathService/Add"
)

// description is what protoc-gen-go-drpc generates of two methods.
type description struct{}

func (description) NumMethods() int { return 2 }

func (description) Method(n int) (string, drpc.Encoding, drpc.Receiver, any, bool) {
	switch n {
	case 0:
		return sayMethod, encoding{}, func(srv any, ctx context.Context, in, _ any) (drpc.Message, error) {
			return srv.(*service).say(ctx, in.(*workload.BenchmarkMessage))
		}, (*service).say, true
	case 1:
		return addMethod, encoding{}, func(srv any, ctx context.Context, in, _ any) (drpc.Message, error) {
			return srv.(*service).add(ctx, in.(*workload.AddRequest))
		}, (*service).add, true
	}
	return "", nil, nil, nil, false
}

func serve(ctx context.Context, o *workload.ServerOptions) error {
	mux := drpcmux.New()
	if err := mux.Register(&service{o}, description{}); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	return drpcserver.NewWithOptions(mux, drpcserver.Options{Manager: options}).Serve(ctx, l)
}

type conn struct{ *drpcconn.Conn }

func dial(ctx context.Context, addr string) (workload.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return conn{drpcconn.NewWithOptions(c, drpcconn.Options{Manager: options})}, nil
}

func (c conn) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	out := new(workload.BenchmarkMessage)
	return out, c.Invoke(ctx, sayMethod, encoding{}, in, out)
}

func (c conn) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out := new(workload.AddReply)
	return out, c.Invoke(ctx, addMethod, encoding{}, in, out)
}
