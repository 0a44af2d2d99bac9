package main

import (
	"context"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/anser-rpc/anser/arena/peers/thrift-go/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
)

// stopTimeout is how long the server waits for calls when it ends. Clients keep their connections.
const stopTimeout = 100 * time.Millisecond

type handlers struct{ o *workload.ServerOptions }

// Say implements benchmark.Hello.
func (h *handlers) Say(_ context.Context, m *benchmark.BenchmarkMessage) (*benchmark.BenchmarkMessage, error) {
	h.o.Delay()
	m.Field1, m.Field2 = workload.AnswerField1, workload.AnswerField2
	return m, nil
}

// Add implements benchmark.MathService.
func (h *handlers) Add(_ context.Context, r *benchmark.AddRequest) (*benchmark.AddReply, error) {
	h.o.Delay()
	return &benchmark.AddReply{X: r.A + r.B}, nil
}

func (p *peer) serve(ctx context.Context, o *workload.ServerOptions) error {
	socket, err := thrift.NewTServerSocket(o.Addr)
	if err != nil {
		return err
	}
	// One processor for both services, whose methods have different names: TMultiplexedProcessor
	// would put the name of the service before that of each call.
	processor := benchmark.NewHelloProcessor(&handlers{o})
	for method, f := range benchmark.NewMathServiceProcessor(&handlers{o}).ProcessorMap() {
		processor.AddToProcessorMap(method, f)
	}
	// A goroutine and a timer for each call that look whether the client is still there. No other
	// peer does that.
	thrift.ServerConnectivityCheckInterval = 0
	thrift.ServerStopTimeout = stopTimeout
	server := thrift.NewTSimpleServer4(processor, socket, thrift.NewTBufferedTransportFactory(bufferBytes), p.protocol)
	if err := server.Listen(); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		stopped <- server.Stop()
	}()
	if err := server.Serve(); err != nil {
		return err
	}
	return <-stopped
}
