package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/arena/workload"
)

func open(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	if o.Fresh { // a client connects with its first call, which is too late to find out that nobody is there
		for _, addr := range o.Addrs {
			c, err := dial(ctx, addr, true, alone...)
			if err != nil {
				return nil, nil, err
			}
			c.Close()
		}
	}
	shared, dial := clients(o)
	return workload.Open(func(ctx context.Context, addr string) (workload.Conn, error) { return dial(ctx, addr) })(ctx, shared)
}

func openAsync(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Start, func(), error) {
	shared, dial := clients(o)
	return workload.OpenAsync(func(ctx context.Context, addr string) (workload.AsyncConn, error) { return dial(ctx, addr) })(ctx, shared)
}

// alone are the options of a client with one connection that it shares with no other of the process,
// which a dialer of its own keeps it from.
var alone = []anser.DialOption{anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext)}

// clients returns how the clients for the options are dialled. As far as callers share connections they
// share one client, which knows all servers, spreads its calls over them and has as many connections
// to each as its share is. Otherwise a client for each caller, or call, has one connection.
func clients(o *workload.ClientOptions) (*workload.ClientOptions, func(ctx context.Context, addr string) (client, error)) {
	if o.Conns == 0 || o.Fresh {
		return o, func(ctx context.Context, addr string) (client, error) {
			return dial(ctx, addr, !o.Fresh, alone...)
		}
	}
	shared := *o
	shared.Conns, shared.Addrs = 1, []string{strings.Join(o.Addrs, ",")}
	conns := (o.Conns + len(o.Addrs) - 1) / len(o.Addrs)
	return &shared, func(ctx context.Context, target string) (client, error) {
		return dial(ctx, target, true, anser.Conns(conns))
	}
}

type client struct{ *anser.Client }

// dial makes a client and, where asked, its first connection, which is otherwise made by the first call.
func dial(ctx context.Context, target string, connect bool, opts ...anser.DialOption) (client, error) {
	c, err := anser.Dial(target, opts...)
	if err != nil || !connect {
		return client{c}, err
	}
	if _, err := add.Call(ctx, c, &workload.AddRequest{}); err != nil {
		c.Close()
		return client{}, fmt.Errorf("connect to %s: %w", target, err)
	}
	return client{c}, nil
}

func (c client) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	return say.Call(ctx, c.Client, in)
}

func (c client) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	return add.Call(ctx, c.Client, in)
}

func (c client) StartSay(ctx context.Context, in *workload.BenchmarkMessage) func() (workload.Said, error) {
	future := say.Go(ctx, c.Client, in)
	return func() (workload.Said, error) { return future.Wait() }
}

func (c client) StartAdd(ctx context.Context, in *workload.AddRequest) func() (*workload.AddReply, error) {
	return add.Go(ctx, c.Client, in).Wait
}
