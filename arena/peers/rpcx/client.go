package main

import (
	"context"
	"time"

	"github.com/smallnest/rpcx/client"
	"github.com/smallnest/rpcx/protocol"

	"github.com/anser-rpc/anser/arena/workload"
)

// conn is a Client of one connection, without the discovery, selection and retries of an XClient.
type conn struct{ *client.Client }

func dial(_ context.Context, addr string) (workload.Conn, error) { return connect(addr) }

func dialAsync(_ context.Context, addr string) (workload.AsyncConn, error) { return connect(addr) }

func connect(addr string) (conn, error) {
	o := client.DefaultOption
	o.SerializeType = protocol.ProtoBuffer
	o.ConnectTimeout = 10 * time.Second // 1 s is little for thousands of connections on a busy machine
	c := client.NewClient(o)
	return conn{c}, c.Connect("tcp", addr)
}

func (c conn) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	out := new(workload.BenchmarkMessage)
	return out, c.Call(ctx, "Hello", "Say", in, out)
}

func (c conn) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out := new(workload.AddReply)
	return out, c.Call(ctx, "MathService", "Add", in, out)
}

func (c conn) StartSay(ctx context.Context, in *workload.BenchmarkMessage) func() (workload.Said, error) {
	out := new(workload.BenchmarkMessage)
	call := c.Go(ctx, "Hello", "Say", in, out, make(chan *client.Call, 1))
	return func() (workload.Said, error) { return out, (<-call.Done).Error }
}

func (c conn) StartAdd(ctx context.Context, in *workload.AddRequest) func() (*workload.AddReply, error) {
	out := new(workload.AddReply)
	call := c.Go(ctx, "MathService", "Add", in, out, make(chan *client.Call, 1))
	return func() (*workload.AddReply, error) { return out, (<-call.Done).Error }
}
