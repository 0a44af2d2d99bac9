// Grpc is a peer of the arena: gRPC for Go.
package main

import (
	"context"

	"google.golang.org/grpc"

	"github.com/anser-rpc/anser/arena/workload"
)

func main() { newProgram().Main() }

func newProgram() *workload.Program {
	return &workload.Program{Name: "grpc", Serve: serve, Open: workload.Open(dial)}
}

// The workloads' methods. The descriptors are what protoc-gen-go-grpc generates of two methods.
const (
	sayMethod = "/arena.workload.Hello/Say"
	addMethod = "/arena.workload.MathService/Add"
)

var helloService = grpc.ServiceDesc{
	ServiceName: "arena.workload.Hello",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Say",
		Handler: func(srv any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			m := new(workload.BenchmarkMessage)
			if err := decode(m); err != nil {
				return nil, err
			}
			srv.(*workload.ServerOptions).Answer(m)
			return m, nil
		},
	}},
	Metadata: "arena/workload/benchmark.proto",
}

var mathService = grpc.ServiceDesc{
	ServiceName: "arena.workload.MathService",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Add",
		Handler: func(srv any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(workload.AddRequest)
			if err := decode(in); err != nil {
				return nil, err
			}
			srv.(*workload.ServerOptions).Delay()
			return &workload.AddReply{X: in.A + in.B}, nil
		},
	}},
	Metadata: "arena/workload/math.proto",
}
