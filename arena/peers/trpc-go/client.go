package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"trpc.group/trpc-go/trpc-go/client"
	"trpc.group/trpc-go/trpc-go/codec"
	"trpc.group/trpc-go/trpc-go/pool/connpool"
	"trpc.group/trpc-go/trpc-go/pool/multiplexed"
	"trpc.group/trpc-go/trpc-go/transport"

	"github.com/anser-rpc/anser/arena/workload"
)

// dialTimeout is long enough for a thousand connections at once on a busy machine. By default it
// is 1 s.
const dialTimeout = 10 * time.Second

// idleTimeout is longer than a run: no connection is closed and dialed again in a measurement.
const idleTimeout = time.Hour

// conn calls a server on one connection or more. It is safe for concurrent use.
type conn struct{ options []client.Option }

// dial returns the options of a call, which connects if necessary.
func dial(addr string, pool client.Option) conn {
	return conn{[]client.Option{
		client.WithTarget("ip://" + addr),
		client.WithNetwork("tcp"),
		client.WithProtocol("trpc"),
		client.WithTransport(transport.DefaultClientTransport),
		pool,
	}}
}

// dialAll returns what the callers call on. Connections that are shared are multiplexed, each with
// a pool of its own. Those of one caller each are in tRPC's pool of connections that carry one
// call at a time, which takes less work.
func dialAll(o *workload.ClientOptions) []conn {
	if o.Fresh {
		conns := make([]conn, len(o.Addrs))
		for i := range conns {
			conns[i] = dial(o.Addr(i), client.WithDisableConnectionPool())
		}
		return conns
	}
	if o.Conns == 0 {
		conns := make([]conn, min(len(o.Addrs), o.Callers))
		for i := range conns {
			n := (o.Callers - i + len(conns) - 1) / len(conns)
			conns[i] = dial(o.Addr(i), client.WithPool(connpool.NewConnectionPool(
				connpool.WithMaxIdle(n), connpool.WithMaxActive(n), connpool.WithWait(true),
				connpool.WithIdleTimeout(idleTimeout), connpool.WithDialTimeout(dialTimeout))))
		}
		return conns
	}
	conns := make([]conn, o.Conns)
	for i := range conns {
		conns[i] = dial(o.Addr(i), client.WithMultiplexedPool(
			multiplexed.New(multiplexed.WithConnectNumber(1), multiplexed.WithDialTimeout(dialTimeout))))
	}
	return conns
}

// call is what the code of the trpc command does for a method.
func (c conn) call(ctx context.Context, service, method string, request, reply any) error {
	ctx, msg := codec.WithCloneMessage(ctx)
	defer codec.PutBackMessage(msg)
	msg.WithClientRPCName(method)
	msg.WithCalleeServiceName(service)
	msg.WithSerializationType(codec.SerializationTypePB)
	return client.DefaultClient.Invoke(ctx, request, reply, c.options...)
}

func open(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	request, err := workload.NewMessage(o.Payload)
	if err != nil {
		return nil, nil, err
	}
	conns := dialAll(o)
	for i, c := range conns {
		if err := c.add(ctx, 1); err != nil {
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
	// Connections end with the program: tRPC has no way to close them.
	return caller, func() {}, nil
}

func (c conn) say(ctx context.Context, m *workload.BenchmarkMessage) error {
	var reply workload.BenchmarkMessage
	if err := c.call(ctx, serviceHello, methodSay, m, &reply); err != nil {
		return err
	}
	return workload.Check(&reply)
}

func (c conn) add(ctx context.Context, a int32) error {
	var reply workload.AddReply
	if err := c.call(ctx, serviceMath, methodAdd, &workload.AddRequest{A: a, B: 7}, &reply); err != nil {
		return err
	}
	if reply.X != a+7 {
		return workload.ErrWrong
	}
	return nil
}
