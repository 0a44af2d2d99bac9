package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/arena/workload"
)

func open(ctx context.Context, o *workload.ClientOptions, vtproto, idempotent bool) (func(i int) workload.Call, func(), error) {
	var opts []anser.DialOption
	if idempotent {
		opts = append(opts, anser.Idempotent())
	}
	shared, dial := clients(o, vtproto, opts...)
	return workload.OpenLazy(func(_ context.Context, target string) (workload.Conn, error) { return dial(target) })(ctx, shared)
}

func openAsync(ctx context.Context, o *workload.ClientOptions, vtproto bool) (func(i int) workload.Start, func(), error) {
	shared, dial := clients(o, vtproto)
	return workload.OpenAsync(func(ctx context.Context, target string) (workload.AsyncConn, error) {
		c, err := dial(target)
		if err != nil {
			return nil, err
		}
		if _, err := c.Add(ctx, &workload.AddRequest{}); err != nil { // the first call connects
			return nil, errors.Join(fmt.Errorf("connect to %s: %w", target, err), c.Close())
		}
		return c, nil
	})(ctx, shared)
}

// alone are the options of a client with one connection that it shares with no other of the
// process, which a dialer of its own keeps it from.
var alone = []anser.DialOption{anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext)}

// clients returns how the clients for the options are dialled. As far as callers share connections
// they share one client, which knows all servers, spreads its calls over them and has as many
// connections to each as its share is. Otherwise a client for each caller, or call, has one
// connection. All of them have the options.
func clients(o *workload.ClientOptions, vtproto bool, opts ...anser.DialOption) (*workload.ClientOptions, func(target string) (conn, error)) {
	if o.Conns == 0 || o.Fresh {
		opts = append(opts, alone...)
		return o, func(addr string) (conn, error) { return dial(addr, vtproto, opts...) }
	}
	shared := *o
	shared.Conns, shared.Addrs = 1, []string{strings.Join(o.Addrs, ",")}
	conns := (o.Conns + len(o.Addrs) - 1) / len(o.Addrs)
	opts = append(opts, anser.Conns(conns))
	return &shared, func(target string) (conn, error) { return dial(target, vtproto, opts...) }
}

// conn makes calls and futures.
type conn interface {
	workload.Conn
	workload.AsyncConn
}

func dial(target string, vtproto bool, opts ...anser.DialOption) (conn, error) {
	c, err := anser.Dial(target, opts...)
	if err != nil {
		return nil, err
	}
	if vtproto {
		return client{c}, nil
	}
	return ownClient{c, new(atomic.Pointer[request])}, nil
}

// client calls the methods with the messages of the workload.
type client struct{ *anser.Client }

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
