package main

import (
	"context"
	"net"
	"runtime"

	"google.golang.org/grpc"

	"github.com/anser-rpc/anser/arena/workload"
)

const workersPerCore = 4

// serveStock is the server of the peer grpc-go.
func serveStock(ctx context.Context, o *workload.ServerOptions) error {
	s := grpc.NewServer(
		grpc.ForceServerCodecV2(codec{}),
		// Goroutines whose stacks have grown already. A stream that finds none free gets one of
		// its own, so that handlers that wait do not keep others from starting.
		grpc.NumStreamWorkers(uint32(workersPerCore*runtime.GOMAXPROCS(0))),
		grpc.WriteBufferSize(bufferSize),
		grpc.ReadBufferSize(bufferSize),
		grpc.StaticStreamWindowSize(windowSize),
		grpc.StaticConnWindowSize(windowSize),
	)
	s.RegisterService(&helloService, o)
	s.RegisterService(&mathService, o)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, s.Stop)()
	if err := s.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

var helloService = grpc.ServiceDesc{
	ServiceName: "arena.workload.Hello",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Say",
		Handler: func(srv any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			m := new(workload.BenchmarkMessage)
			if err := decode(m); err != nil {
				return nil, err
			}
			srv.(*workload.ServerOptions).Answer(m)
			return m, nil
		},
	}},
	Metadata: "arena/workload/benchmark.proto",
}

var mathService = grpc.ServiceDesc{
	ServiceName: "arena.workload.MathService",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Add",
		Handler: func(srv any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(workload.AddRequest)
			if err := decode(in); err != nil {
				return nil, err
			}
			srv.(*workload.ServerOptions).Delay()
			return &workload.AddReply{X: in.A + in.B}, nil
		},
	}},
	Metadata: "arena/workload/math.proto",
}
