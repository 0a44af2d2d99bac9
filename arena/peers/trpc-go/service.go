package main

import (
	"context"
	"fmt"

	"trpc.group/trpc-go/trpc-go/server"

	"github.com/anser-rpc/anser/arena/workload"
)

// This is what the trpc command generates for the two services.

const (
	serviceHello = "arena.workload.Hello"
	methodSay    = "/arena.workload.Hello/Say"
	serviceMath  = "arena.workload.MathService"
	methodAdd    = "/arena.workload.MathService/Add"
)

// hello and math are the handlers' types, as tRPC registers them.
type hello interface {
	Say(ctx context.Context, m *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error)
}

type math interface {
	Add(ctx context.Context, m *workload.AddRequest) (*workload.AddReply, error)
}

var helloDesc = server.ServiceDesc{
	ServiceName: serviceHello,
	HandlerType: (*hello)(nil),
	Methods:     []server.Method{method(methodSay, hello.Say)},
}

var mathDesc = server.ServiceDesc{
	ServiceName: serviceMath,
	HandlerType: (*math)(nil),
	Methods:     []server.Method{method(methodAdd, math.Add)},
}

// method describes a method of the handler type H.
func method[H, Q, R any](name string, call func(H, context.Context, *Q) (*R, error)) server.Method {
	return server.Method{Name: name, Func: func(handler any, ctx context.Context, f server.FilterFunc) (any, error) {
		request := new(Q)
		filters, err := f(request)
		if err != nil {
			return nil, err
		}
		if len(filters) == 0 {
			return call(handler.(H), ctx, request)
		}
		return filters.Filter(ctx, request, func(ctx context.Context, request any) (any, error) {
			return call(handler.(H), ctx, request.(*Q))
		})
	}}
}

// vtproto is a serializer for messages with the methods of vtproto. It takes the place of tRPC's
// for protobuf.
type vtproto struct{}

// Marshal implements codec.Serializer.
func (vtproto) Marshal(body any) ([]byte, error) {
	m, ok := body.(interface{ MarshalVT() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no MarshalVT: generate it with vtproto", body)
	}
	return m.MarshalVT()
}

// Unmarshal implements codec.Serializer.
func (vtproto) Unmarshal(b []byte, body any) error {
	m, ok := body.(interface{ UnmarshalVT([]byte) error })
	if !ok {
		return fmt.Errorf("%T has no UnmarshalVT: generate it with vtproto", body)
	}
	return m.UnmarshalVT(b)
}
