package main

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/hprose/hprose-golang/v3/rpc"
	"github.com/hprose/hprose-golang/v3/rpc/core"

	"github.com/anser-rpc/anser/arena/workload"
)

// client calls a server on one connection, which many calls at a time can use.
type client struct{ rpc *rpc.Client }

// dial returns a client, which connects with its first call.
func dial(addr string) client {
	c := rpc.NewClient("tcp://" + addr + "/")
	c.Timeout = 0 // no deadline
	return client{c}
}

// call is what a proxy of Hprose does, without its reflection.
func (c client) call(ctx context.Context, method string, result reflect.Type, args ...any) (any, error) {
	call := core.NewClientContext()
	call.ReturnType = []reflect.Type{result}
	results, err := c.rpc.InvokeContext(core.WithContext(ctx, call), method, args)
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("%s returned %d results instead of 1", method, len(results))
	}
	return results[0], nil
}

var (
	messageType = reflect.TypeFor[*BenchmarkMessage]()
	sumType     = reflect.TypeFor[int32]()
)

func (c client) say(ctx context.Context, m *BenchmarkMessage) error {
	result, err := c.call(ctx, methodSay, messageType, m)
	if err != nil {
		return err
	}
	reply, ok := result.(*BenchmarkMessage)
	if !ok || reply == nil || reply.Field1 != workload.AnswerField1 || reply.Field2 != workload.AnswerField2 {
		return workload.ErrWrong
	}
	return nil
}

func (c client) add(ctx context.Context, a int32) error {
	sum, err := c.call(ctx, methodAdd, sumType, a, int32(7))
	if err == nil && sum != a+7 {
		err = workload.ErrWrong
	}
	return err
}

func open(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	message, err := workload.NewMessage(o.Payload)
	if err != nil {
		return nil, nil, err
	}
	request := fromProto(message)
	if o.Fresh {
		return func(i int) workload.Call {
			call := work(o, request)
			return func(ctx context.Context) error {
				c := dial(o.Addr(i))
				defer c.rpc.Abort() // closes the connection
				return call(ctx, c)
			}
		}, func() {}, nil
	}
	clients := make([]client, o.Connections())
	for i := range clients {
		clients[i] = dial(o.Addr(i))
		if err := clients[i].add(ctx, 1); err != nil {
			return nil, nil, fmt.Errorf("connect to %s: %w", o.Addr(i), err)
		}
	}
	caller := func(i int) workload.Call {
		call := work(o, request)
		return func(ctx context.Context) error { return call(ctx, clients[i%len(clients)]) }
	}
	closing := func() {
		for _, c := range clients {
			c.rpc.Abort()
		}
	}
	return caller, closing, nil
}

// work returns what a caller does with a client.
func work(o *workload.ClientOptions, request *BenchmarkMessage) func(context.Context, client) error {
	if o.Workload == "add" {
		var number atomic.Int32
		return func(ctx context.Context, c client) error { return c.add(ctx, number.Add(1)%1_000_000) }
	}
	return func(ctx context.Context, c client) error { return c.say(ctx, request) }
}
