package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/protocols"
)

// openOut is the client of the peer anser, over gRPC. As far as callers share connections they share
// one client, which has as many connections to each server as its share is.
func openOut(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	conns, shared := 1, *o
	if o.Conns > 0 && !o.Fresh {
		conns = (o.Conns + len(o.Addrs) - 1) / len(o.Addrs)
		shared.Conns, shared.Addrs = 1, []string{strings.Join(o.Addrs, ",")}
	}
	return workload.OpenLazy(func(ctx context.Context, target string) (workload.Conn, error) {
		c, err := anser.Dial("grpc://"+target, protocols.GRPC(), anser.Conns(conns))
		if err != nil {
			return nil, err
		}
		if _, err := (client{c}).Add(ctx, &workload.AddRequest{}); err != nil { // the first call connects
			return nil, errors.Join(fmt.Errorf("connect to %s: %w", target, err), c.Close())
		}
		return client{c}, nil
	})(ctx, &shared)
}

type client struct{ *anser.Client }

func (c client) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	return say.Call(ctx, c.Client, in)
}

func (c client) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	return add.Call(ctx, c.Client, in)
}
