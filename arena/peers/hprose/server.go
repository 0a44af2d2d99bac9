package main

import (
	"context"
	"net"

	"github.com/hprose/hprose-golang/v3/rpc"

	"github.com/anser-rpc/anser/arena/workload"
)

func serve(ctx context.Context, o *workload.ServerOptions) error {
	service := rpc.NewService()
	service.AddFunction(func(m *BenchmarkMessage) *BenchmarkMessage {
		o.Delay()
		m.Field1, m.Field2 = workload.AnswerField1, workload.AnswerField2
		return m
	}, methodSay)
	service.AddFunction(func(a, b int32) int32 {
		o.Delay()
		return a + b
	}, methodAdd)
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return err
	}
	if err := service.BindContext(ctx, listener); err != nil {
		return err
	}
	<-ctx.Done() // ends the connections too
	return listener.Close()
}
