// Anser-grpc is two peers of the arena: a server of Anser, called over gRPC by the client of gRPC
// for Go, and with -out a client of Anser that calls the server of gRPC for Go.
package main

import (
	"context"
	"flag"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/protocols"
)

func main() { newProgram(false).Main() }

func newProgram(out bool) *workload.Program {
	return &workload.Program{
		Name: "anser-grpc",
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&out, "out", out, "the client is Anser's, and the server that of gRPC for Go")
		},
		Serve: func(ctx context.Context, o *workload.ServerOptions) error {
			if out {
				return serveStock(ctx, o)
			}
			return serve(ctx, o)
		},
		Open: func(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
			if out {
				return openOut(ctx, o)
			}
			return workload.Open(dial)(ctx, o)
		},
	}
}

// The workloads' methods, on the server and as paths of gRPC.
const (
	say anser.Method[workload.BenchmarkMessage, workload.BenchmarkMessage] = "arena.workload.Hello.Say"
	add anser.Method[workload.AddRequest, workload.AddReply]               = "arena.workload.MathService.Add"

	sayMethod = "/arena.workload.Hello/Say"
	addMethod = "/arena.workload.MathService/Add"
)

func serve(ctx context.Context, o *workload.ServerOptions) error {
	// The arena also listens on addresses of its own namespaces, which no other machine can reach.
	s := anser.NewServer(protocols.All(), anser.NoSignals(), anser.InsecurePublic())
	err := say.Handle(s, func(_ context.Context, in *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error) {
		o.Answer(in)
		return in, nil
	})
	if err != nil {
		return err
	}
	err = add.Handle(s, func(_ context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
		o.Delay()
		return &workload.AddReply{X: in.A + in.B}, nil
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.ListenAndServe(o.Addr); ctx.Err() == nil {
		return err
	}
	return nil
}
