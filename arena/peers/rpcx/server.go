package main

import (
	"context"
	"net"

	"github.com/smallnest/rpcx/server"

	"github.com/anser-rpc/anser/arena/workload"
)

func serve(ctx context.Context, o *workload.ServerOptions, handlers bool) error {
	// Without a pool of workers, which made no difference beyond the noise and would queue
	// handlers that wait; and without WithAsyncWrite, which makes a goroutine for each reply and
	// none either.
	s := server.NewServer()
	s.DisableHTTPGateway, s.DisableJSONRPC = true, true
	if handlers {
		s.AddHandler("Hello", "Say", func(ctx *server.Context) error {
			m := new(workload.BenchmarkMessage)
			if err := ctx.Bind(m); err != nil {
				return err
			}
			o.Answer(m)
			return ctx.Write(m)
		})
		s.AddHandler("MathService", "Add", func(ctx *server.Context) error {
			var in workload.AddRequest
			if err := ctx.Bind(&in); err != nil {
				return err
			}
			o.Delay()
			return ctx.Write(&workload.AddReply{X: in.A + in.B})
		})
	} else {
		if err := s.RegisterName("Hello", hello{o}, ""); err != nil {
			return err
		}
		if err := s.RegisterName("MathService", math{o}, ""); err != nil {
			return err
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.ServeListener("tcp", l); ctx.Err() == nil {
		return err
	}
	return nil
}

type hello struct{ o *workload.ServerOptions }

// Say is a method of rpcx.
func (h hello) Say(_ context.Context, in, out *workload.BenchmarkMessage) error {
	copyMessage(out, in)
	h.o.Answer(out)
	return nil
}

type math struct{ o *workload.ServerOptions }

// Add is a method of rpcx.
func (m math) Add(_ context.Context, in *workload.AddRequest, out *workload.AddReply) error {
	m.o.Delay()
	out.X = in.A + in.B
	return nil
}
