package main

import (
	"context"

	_ "trpc.group/trpc-go/trpc-go" // the protocol
	"trpc.group/trpc-go/trpc-go/server"
	"trpc.group/trpc-go/trpc-go/transport"

	"github.com/anser-rpc/anser/arena/workload"
)

type handlers struct{ o *workload.ServerOptions }

// Say implements hello.
func (h *handlers) Say(_ context.Context, m *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error) {
	h.o.Answer(m)
	return m, nil
}

// Add implements math.
func (h *handlers) Add(_ context.Context, m *workload.AddRequest) (*workload.AddReply, error) {
	h.o.Delay()
	return &workload.AddReply{X: m.A + m.B}, nil
}

func serve(ctx context.Context, o *workload.ServerOptions) error {
	s := server.New(
		server.WithServiceName(name),
		server.WithNetwork("tcp"),
		server.WithAddress(o.Addr),
		server.WithProtocol("trpc"),
		// tRPC's other transport, tnet, takes more CPU time for each call on few cores. By default
		// two servers can listen on one port, and a forgotten one would get a part of the calls.
		server.WithTransport(transport.NewServerTransport(transport.WithReusePort(false))),
		// A goroutine for each request; without it a connection handles one call at a time.
		server.WithServerAsync(true),
		// One write for the replies that wait. Without it each has one of its own.
		server.WithWritev(true),
	)
	if err := s.Register(&helloDesc, &handlers{o}); err != nil {
		return err
	}
	if err := s.Register(&mathDesc, &handlers{o}); err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = s.Close(nil) // it returns no error
	}()
	return s.Serve()
}
