package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/anser-rpc/anser/arena/workload"
)

// With 64 KiB of buffers a connection writes and reads about a hundred messages of the workload at
// once, twice the default. Windows that are larger than all calls in flight, and static, save
// window updates, and the pings that measure the connection. Measured with 100 callers on 2
// connections, the effect of each alone was within the noise; all together were the cheapest on
// the server.
const (
	bufferSize = 64 << 10
	windowSize = 16 << 20
)

type conn struct{ *grpc.ClientConn }

func dial(ctx context.Context, addr string) (workload.Conn, error) {
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{})),
		grpc.WithWriteBufferSize(bufferSize),
		grpc.WithReadBufferSize(bufferSize),
		grpc.WithStaticStreamWindowSize(windowSize),
		grpc.WithStaticConnWindowSize(windowSize),
		// Nothing here uses what these watch for in each call.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
	}
	cc, err := grpc.NewClient("passthrough:///"+addr, opts...)
	if err != nil {
		return nil, err
	}
	cc.Connect()
	for {
		switch state := cc.GetState(); state {
		case connectivity.Ready:
			return conn{cc}, nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			cc.Close()
			return nil, fmt.Errorf("cannot connect to %s: start the server there or correct the address", addr)
		default:
			if !cc.WaitForStateChange(ctx, state) {
				return nil, errors.Join(ctx.Err(), cc.Close())
			}
		}
	}
}

func (c conn) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	out := new(workload.BenchmarkMessage)
	return out, c.Invoke(ctx, sayMethod, in, out)
}

func (c conn) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out := new(workload.AddReply)
	return out, c.Invoke(ctx, addMethod, in, out)
}
