package main

import (
	"context"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	tri "dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/anser-rpc/anser/arena/workload"
)

// This is what protoc-gen-go-triple generates for the two services.

const (
	serviceHello = "arena.workload.Hello"
	methodSay    = "Say"
	serviceMath  = "arena.workload.MathService"
	methodAdd    = "Add"
)

// hello and math are the handlers' types, as Dubbo registers them.
type hello interface {
	Say(ctx context.Context, m *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error)
}

type math interface {
	Add(ctx context.Context, m *workload.AddRequest) (*workload.AddReply, error)
}

var (
	helloServer = common.ServiceInfo{
		InterfaceName: serviceHello,
		ServiceType:   (*hello)(nil),
		Methods:       []common.MethodInfo{method(methodSay, hello.Say)},
	}
	mathServer = common.ServiceInfo{
		InterfaceName: serviceMath,
		ServiceType:   (*math)(nil),
		Methods:       []common.MethodInfo{method(methodAdd, math.Add)},
	}
	helloClient = client.ClientInfo{InterfaceName: serviceHello, MethodNames: []string{methodSay}}
	mathClient  = client.ClientInfo{InterfaceName: serviceMath, MethodNames: []string{methodAdd}}
)

// method describes a unary method of the handler type H.
func method[H, Q, R any](name string, call func(H, context.Context, *Q) (*R, error)) common.MethodInfo {
	return common.MethodInfo{
		Name:        name,
		Type:        constant.CallUnary,
		ReqInitFunc: func() any { return new(Q) },
		MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
			reply, err := call(handler.(H), ctx, args[0].(*Q))
			if err != nil {
				return nil, err
			}
			return tri.NewResponse(reply), nil
		},
	}
}
