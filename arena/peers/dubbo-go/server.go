package main

import (
	"context"
	"net"
	"strconv"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol"
	"dubbo.apache.org/dubbo-go/v3/server"

	"github.com/anser-rpc/anser/arena/workload"
)

// Hello is the service of say. Dubbo-go wants an exported type.
type Hello struct{ o *workload.ServerOptions }

// Say implements hello.
func (h *Hello) Say(_ context.Context, m *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error) {
	h.o.Answer(m)
	return m, nil
}

// MathService is the service of add.
type MathService struct{ o *workload.ServerOptions }

// Add implements math.
func (h *MathService) Add(_ context.Context, m *workload.AddRequest) (*workload.AddReply, error) {
	h.o.Delay()
	return &workload.AddReply{X: m.A + m.B}, nil
}

// serve serves until ctx ends. Dubbo-go's own end in order takes longer than the arena gives it.
func serve(ctx context.Context, o *workload.ServerOptions) error {
	host, portText, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return err
	}
	// Dubbo-go listens on its own and only logs when it cannot.
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	s, err := server.NewServer(
		server.WithServerProtocol(protocol.WithTriple(), protocol.WithIp(host), protocol.WithPort(port)),
		server.WithServerNotRegister(), // clients have the address
		// The cheapest filter replaces the default seven; at least one is required.
		server.WithServerFilter(constant.EchoFilterKey),
	)
	if err != nil {
		return err
	}
	if err := s.Register(&Hello{o}, &helloServer); err != nil {
		return err
	}
	if err := s.Register(&MathService{o}, &mathServer); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}
