package main

import (
	"context"
	"net"
	"runtime"

	"google.golang.org/grpc"

	"github.com/anser-rpc/anser/arena/workload"
)

const workersPerCore = 4

func serve(ctx context.Context, o *workload.ServerOptions) error {
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
