// Anser is two peers of the arena: this repository's own framework with its default options, by
// calls and by futures.
package main

import (
	"context"

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
	return &workload.Program{Name: "anser", Serve: serve, Open: open, OpenAsync: openAsync}
}

func serve(ctx context.Context, o *workload.ServerOptions) error {
	// The arena listens on addresses of its own namespaces too, where nobody else is.
	s := anser.NewServer(anser.InsecurePublic())
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
