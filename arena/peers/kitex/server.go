package main

import (
	"context"
	"net"

	"github.com/cloudwego/kitex/server"

	"github.com/anser-rpc/anser/arena/workload"
)

type handlers struct{ o *workload.ServerOptions }

func (h *handlers) Say(_ context.Context, m *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error) {
	h.o.Answer(m)
	return m, nil
}

func (h *handlers) Add(_ context.Context, m *workload.AddRequest) (*workload.AddReply, error) {
	h.o.Delay()
	return &workload.AddReply{X: m.A + m.B}, nil
}

func (p *peer) serve(ctx context.Context, o *workload.ServerOptions) error {
	addr, err := net.ResolveTCPAddr("tcp", o.Addr)
	if err != nil {
		return err
	}
	ended := make(chan error)
	go func() {
		<-ctx.Done()
		close(ended)
	}()
	options := []server.Option{
		server.WithServiceAddr(addr),
		server.WithExitSignal(func() <-chan error { return ended }),
	}
	if p.transport == transportMux {
		options = append(options, server.WithMuxTransport())
	}
	if p.observe {
		observe()
		options = append(options, observedServer())
	}
	s := server.NewServer(options...)
	if err := s.RegisterService(helloInfo(), &handlers{o}); err != nil {
		return err
	}
	if err := s.RegisterService(mathInfo(), &handlers{o}); err != nil {
		return err
	}
	return s.Run()
}
