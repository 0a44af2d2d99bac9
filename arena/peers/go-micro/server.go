package main

import (
	"context"

	"go-micro.dev/v5/logger"
	"go-micro.dev/v5/registry"
	"go-micro.dev/v5/server"
	microgrpc "go-micro.dev/v5/server/grpc"
	"google.golang.org/grpc"

	"github.com/anser-rpc/anser/arena/workload"
)

// Hello is the service of say. Go Micro takes its name, and that of its methods, by reflection.
type Hello struct{ o *workload.ServerOptions }

// Reply is the reply of say. Go Micro makes the reply before it calls the handler; this one can be
// a request that has been answered, without a copy of it.
type Reply struct{ *workload.BenchmarkMessage }

// Say answers a message.
func (h *Hello) Say(_ context.Context, m *workload.BenchmarkMessage, reply *Reply) error {
	h.o.Answer(m)
	reply.BenchmarkMessage = m
	return nil
}

// MathService is the service of add.
type MathService struct{ o *workload.ServerOptions }

// Add adds.
func (s *MathService) Add(_ context.Context, m *workload.AddRequest, reply *workload.AddReply) error {
	s.o.Delay()
	reply.X = m.A + m.B
	return nil
}

func serve(ctx context.Context, o *workload.ServerOptions) error {
	s := microgrpc.NewServer(
		server.Name(name),
		server.Address(o.Addr),
		server.Registry(registry.NewMemoryRegistry()), // clients have the address
		server.WithLogger(logger.NewLogger(logger.WithLevel(logger.ErrorLevel))),
		microgrpc.Codec(contentType, vtproto{}),
		microgrpc.Options(
			grpc.InitialWindowSize(windowBytes),
			grpc.InitialConnWindowSize(windowBytes),
		),
	)
	for _, h := range []any{&Hello{o}, &MathService{o}} {
		if err := s.Handle(s.NewHandler(h)); err != nil {
			return err
		}
	}
	if err := s.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	return s.Stop()
}
