package main

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"go-micro.dev/v5/client"
	microgrpc "go-micro.dev/v5/client/grpc"
	"google.golang.org/grpc"

	"github.com/anser-rpc/anser/arena/workload"
)

const (
	// callTimeout is long enough for a call on a busy machine: its slowness must show in the
	// latencies and not as errors. Go Micro has a deadline on every call.
	callTimeout = time.Minute
	// connTTL is longer than a run: no connection is closed and dialed again in a measurement.
	connTTL = time.Hour
)

// conn calls a server. It is safe for concurrent use.
type conn struct {
	client client.Client
	addr   client.CallOption
}

// dial returns a conn whose pool keeps as many connections, 1 or, so that each call has its own,
// 0.
func dial(addr string, pool int) conn {
	return conn{
		client: microgrpc.NewClient(
			client.PoolSize(pool),
			client.PoolTTL(connTTL),
			microgrpc.PoolMaxIdle(pool),
			// By default a call that is one of more than 20 makes another connection.
			microgrpc.PoolMaxStreams(math.MaxInt),
			microgrpc.Codec(contentType, vtproto{}),
			client.RequestTimeout(callTimeout),
			client.DialTimeout(callTimeout),
			client.Retries(0), // errors must show
			func(o *client.Options) {
				microgrpc.DialOptions(
					grpc.WithInitialWindowSize(windowBytes),
					grpc.WithInitialConnWindowSize(windowBytes),
				)(&o.CallOptions)
			},
		),
		addr: client.WithAddress(addr),
	}
}

func (c conn) call(ctx context.Context, method string, request, reply any) error {
	return c.client.Call(ctx, c.client.NewRequest(name, method, request), reply, c.addr)
}

func (c conn) say(ctx context.Context, m *workload.BenchmarkMessage) error {
	var reply workload.BenchmarkMessage
	if err := c.call(ctx, "Hello.Say", m, &reply); err != nil {
		return err
	}
	return workload.Check(&reply)
}

func (c conn) add(ctx context.Context, a int32) error {
	var reply workload.AddReply
	if err := c.call(ctx, "MathService.Add", &workload.AddRequest{A: a, B: 7}, &reply); err != nil {
		return err
	}
	if reply.X != a+7 {
		return workload.ErrWrong
	}
	return nil
}

// open makes a client for each connection: a pool of several would fill the first one up.
func open(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	request, err := workload.NewMessage(o.Payload)
	if err != nil {
		return nil, nil, err
	}
	conns, pool := make([]conn, o.Connections()), 1
	if o.Fresh {
		conns, pool = make([]conn, len(o.Addrs)), 0
	}
	for i := range conns {
		conns[i] = dial(o.Addr(i), pool)
		// Calls that find the connection in the making would make others.
		if err := conns[i].add(ctx, 1); err != nil {
			return nil, nil, fmt.Errorf("connect to %s: %w", o.Addr(i), err)
		}
	}
	caller := func(i int) workload.Call {
		c := conns[i%len(conns)]
		if o.Workload == "add" {
			var number atomic.Int32
			return func(ctx context.Context) error { return c.add(ctx, number.Add(1)%1_000_000) }
		}
		return func(ctx context.Context) error { return c.say(ctx, request) }
	}
	// Connections end with the program: Go Micro has no way to close them.
	return caller, func() {}, nil
}
