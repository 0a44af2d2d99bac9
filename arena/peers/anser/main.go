// Anser is four peers of the arena: this repository's own framework with its default options, by
// calls and by futures, by calls with the code of vtproto in place of that of "anser gen", and, for
// connections of one call each, by calls of methods that are declared idempotent.
package main

import (
	"context"
	"flag"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/arena/workload"
)

// The workloads' methods.
const (
	say anser.Method[workload.BenchmarkMessage, workload.BenchmarkMessage] = "Hello.Say"
	add anser.Method[workload.AddRequest, workload.AddReply]               = "MathService.Add"
)

func main() { newProgram(false).Main() }

func newProgram(vtproto bool) *workload.Program {
	adaptive, idempotent := false, false
	return &workload.Program{
		Name: "anser",
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&adaptive, "adaptive", adaptive, "server: with an adaptive limit")
			f.BoolVar(&idempotent, "idempotent", idempotent, "client: declare the methods idempotent, so that the first call goes out with the preface")
			f.BoolVar(&vtproto, "vtproto", vtproto, "encode and decode with the code of vtproto, and not of anser gen")
		},
		Serve: func(ctx context.Context, o *workload.ServerOptions) error { return serve(ctx, o, adaptive, vtproto) },
		Open: func(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
			return open(ctx, o, vtproto, idempotent)
		},
		OpenAsync: func(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Start, func(), error) {
			return openAsync(ctx, o, vtproto)
		},
	}
}

func serve(ctx context.Context, o *workload.ServerOptions, adaptive, vtproto bool) error {
	// The arena also listens on addresses of its own namespaces, which no other machine can reach.
	opts := []anser.ServerOption{anser.InsecurePublic()}
	if adaptive {
		opts = append(opts, anser.AdaptiveLimit(0, 0))
	}
	s := anser.NewServer(opts...)
	handle := handleOwn
	if vtproto {
		handle = handleVtproto
	}
	if err := handle(s, o); err != nil {
		return err
	}
	l, err := s.Listen(o.Addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// handleVtproto serves the methods with the messages of the workload.
func handleVtproto(s *anser.Server, o *workload.ServerOptions) error {
	err := say.Handle(s, func(_ context.Context, in *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error) {
		o.Answer(in)
		return in, nil
	})
	if err != nil {
		return err
	}
	return add.Handle(s, func(_ context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
		o.Delay()
		return &workload.AddReply{X: in.A + in.B}, nil
	})
}
