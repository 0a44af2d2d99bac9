package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"

	"github.com/anser-rpc/anser/arena/workload"
)

// callTimeout is long enough for a call on a busy machine: its slowness must show in the latencies
// and not as errors. Dubbo-go has a deadline on every call, of 3 s by default.
const callTimeout = time.Minute

// conn calls a service on one connection. It is safe for concurrent use.
type conn struct{ client *client.Connection }

// dial returns a conn for a service, which connects with its first call. A client of another
// service would have a connection of its own.
func dial(addr string, service *client.ClientInfo) (conn, error) {
	c, err := client.NewClient(
		client.WithClientProtocolTriple(),
		client.WithClientRequestTimeout(callTimeout),
		client.WithClientClusterAvailable(),                                     // no retries, and no choice among one server
		client.WithClientFilter("-"+constant.GracefulShutdownConsumerFilterKey), // the only one
	)
	if err != nil {
		return conn{}, err
	}
	connection, err := c.DialWithInfo(service.InterfaceName, service, client.WithURL("tri://"+addr))
	return conn{connection}, err
}

func (c conn) say(ctx context.Context, m *workload.BenchmarkMessage) error {
	var reply workload.BenchmarkMessage
	if err := c.client.CallUnary(ctx, []any{m}, &reply, methodSay); err != nil {
		return err
	}
	return workload.Check(&reply)
}

func (c conn) add(ctx context.Context, a int32) error {
	var reply workload.AddReply
	if err := c.client.CallUnary(ctx, []any{&workload.AddRequest{A: a, B: 7}}, &reply, methodAdd); err != nil {
		return err
	}
	if reply.X != a+7 {
		return workload.ErrWrong
	}
	return nil
}

func open(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	if o.Fresh {
		return nil, nil, errors.New("--fresh: a client of Dubbo-go cannot close its connection: use --conns")
	}
	request, err := workload.NewMessage(o.Payload)
	if err != nil {
		return nil, nil, err
	}
	service := &helloClient
	if o.Workload == "add" {
		service = &mathClient
	}
	conns := make([]conn, o.Connections())
	for i := range conns {
		if conns[i], err = dial(o.Addr(i), service); err == nil {
			err = conns[i].calls(o.Workload, request)(ctx)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("connect to %s: %w", o.Addr(i), err)
		}
	}
	// Connections end with the program.
	return func(i int) workload.Call { return conns[i%len(conns)].calls(o.Workload, request) }, func() {}, nil
}

// calls returns the calls of one caller.
func (c conn) calls(work string, request *workload.BenchmarkMessage) workload.Call {
	if work == "add" {
		var number atomic.Int32
		return func(ctx context.Context) error { return c.add(ctx, number.Add(1)%1_000_000) }
	}
	return func(ctx context.Context) error { return c.say(ctx, request) }
}
