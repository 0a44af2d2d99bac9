// Anser is two peers of the arena: this repository's own framework with its default options, by
// calls and by futures.
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

func main() { newProgram().Main() }

func newProgram() *workload.Program {
	adaptive := false
	return &workload.Program{
		Name: "anser",
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&adaptive, "adaptive", adaptive, "server: with an adaptive limit")
		},
		Serve: func(ctx context.Context, o *workload.ServerOptions) error { return serve(ctx, o, adaptive) },
		Open:  open, OpenAsync: openAsync,
	}
}

func serve(ctx context.Context, o *workload.ServerOptions, adaptive bool) error {
	// The arena also listens on addresses of its own namespaces, which no other machine can reach.
	opts := []anser.ServerOption{anser.InsecurePublic()}
	if adaptive {
		opts = append(opts, anser.AdaptiveLimit(0, 0))
	}
	s := anser.NewServer(opts...)
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
