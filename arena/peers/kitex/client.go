package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/connpool"

	"github.com/anser-rpc/anser/arena/workload"
)

const (
	// Kitex's default of 50 ms is too short for a thousand connections at once on a busy machine.
	connectTimeout = 10 * time.Second
	// idleTimeout is longer than a run: no connection is closed and dialed again in a measurement.
	idleTimeout = time.Hour
)

// open makes a client for each server: a client of Kitex holds a pool of connections.
func (p *peer) open(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	if o.Fresh && p.transport == transportMux {
		return nil, nil, fmt.Errorf("--fresh: multiplexed connections stay open: use --transport %s", transportPool)
	}
	request, err := workload.NewMessage(o.Payload)
	if err != nil {
		return nil, nil, err
	}
	conns := make([]int, min(len(o.Addrs), o.Connections())) // of each server
	for i := range o.Connections() {
		conns[i%len(conns)]++
	}
	pools := make([]*pool, len(conns))
	for i, n := range conns {
		if pools[i], err = p.dial(ctx, o, o.Addrs[i], n); err != nil {
			return nil, nil, fmt.Errorf("connect to %s: %w", o.Addrs[i], err)
		}
	}
	caller := func(i int) workload.Call {
		return pools[i%o.Connections()%len(pools)].call(o.Workload, request)
	}
	closing := func() {
		for _, c := range pools {
			_ = c.client.(io.Closer).Close() // the program ends
		}
	}
	return caller, closing, nil
}

// pool calls one server. It is safe for concurrent use.
type pool struct {
	client client.Client
	turns  chan struct{} // as many as there are connections; nil where there are enough for all calls
}

// dial connects n times.
func (p *peer) dial(ctx context.Context, o *workload.ClientOptions, addr string, n int) (*pool, error) {
	options := []client.Option{client.WithHostPorts(addr), client.WithConnectTimeout(connectTimeout)}
	c := new(pool)
	// first is how many calls, one after another, open the connections.
	first := 1
	switch {
	case p.transport == transportMux:
		// Kitex no longer develops this transport, and it is still its fastest.
		options = append(options, client.WithMuxConnection(n))
		first = n // each goes to the next place of the pool, and dials
	case o.Fresh:
		options = append(options, client.WithShortConnection())
	default:
		options = append(options,
			client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: n, MaxIdleTimeout: idleTimeout}))
		// The pool dials for each call that finds no idle connection. The turns keep it at n.
		if o.Connections() < o.Callers*o.Window {
			c.turns = make(chan struct{}, n)
		}
	}
	if p.observe {
		observe()
		options = append(options, observedClient())
	}
	info, service := helloInfo(), serviceHello
	if o.Workload == "add" {
		info, service = mathInfo(), serviceMath
	}
	var err error
	if c.client, err = client.NewClient(info, append(options, client.WithDestService(service))...); err != nil {
		return nil, err
	}
	call := c.call(o.Workload, smallest())
	for range first {
		if err := call(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// call returns what makes the calls of a caller.
func (c *pool) call(work string, request *workload.BenchmarkMessage) workload.Call {
	if work == "add" {
		var number atomic.Int32
		return func(ctx context.Context) error {
			a := number.Add(1) % 1_000_000
			args, result := addArgs{&workload.AddRequest{A: a, B: 7}}, addResult{}
			if err := c.do(ctx, methodAdd, &args, &result); err != nil {
				return err
			}
			if result.message.GetX() != a+7 {
				return workload.ErrWrong
			}
			return nil
		}
	}
	return func(ctx context.Context) error {
		args, result := sayMessage{request}, sayMessage{}
		if err := c.do(ctx, methodSay, &args, &result); err != nil {
			return err
		}
		return workload.Check(result.message)
	}
}

func (c *pool) do(ctx context.Context, method string, args, result any) error {
	if c.turns != nil {
		c.turns <- struct{}{}
		defer func() { <-c.turns }()
	}
	return c.client.Call(ctx, method, args, result)
}

// smallest returns a request for the calls that only connect.
func smallest() *workload.BenchmarkMessage {
	m, err := workload.NewMessage(workload.LeastPayload)
	if err != nil {
		panic(err) // the least payload has a message
	}
	return m
}
