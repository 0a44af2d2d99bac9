// Anser-connect is a peer of the arena: a server of Anser, called by the client of Connect for Go,
// version 2, in Connect's own protocol over HTTP/2 without TLS.
package main

import (
	"context"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/protocols"
)

func main() { newProgram().Main() }

func newProgram() *workload.Program {
	return &workload.Program{Name: "anser-connect", Serve: serve, Open: workload.OpenLazy(dial)}
}

// The workloads' methods, on the server and as paths of Connect.
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
