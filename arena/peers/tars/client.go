package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/TarsCloud/TarsGo/tars"

	"github.com/anser-rpc/anser/arena/peers/tars/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
)

// callTimeout is long enough for a call on a busy machine: its slowness must show in the latencies
// and not as errors. TarsGo has a deadline on every call, of 3 s by default.
const callTimeout = time.Minute

// open connects. A proxy has one connection to each server of its object, and TarsGo keeps one set
// of connections for each name of an object. So each connection is that of an object of another
// name; servers do not look at it.
func open(ctx context.Context, o *workload.ClientOptions) (func(i int) workload.Call, func(), error) {
	if o.Fresh {
		return nil, nil, errors.New("--fresh: a client of TarsGo cannot close its connections: use --conns")
	}
	message, err := workload.NewMessage(o.Payload)
	if err != nil {
		return nil, nil, err
	}
	request := fromProto(message)
	quiet()
	communicator := tars.NewCommunicator()
	communicator.Client.AsyncInvokeTimeout = int(callTimeout.Milliseconds())
	// A reply is dropped when its caller does not run for this long. By default that is 100 ms.
	communicator.Client.ClientReadTimeout = callTimeout
	proxies := make([]*benchmark.Workload, o.Connections())
	for i := range proxies {
		host, port, err := net.SplitHostPort(o.Addr(i))
		if err != nil {
			return nil, nil, err
		}
		proxies[i] = new(benchmark.Workload)
		communicator.StringToProxy(fmt.Sprintf("%s%d@tcp -h %s -p %s -t 60000", object, i, host, port), proxies[i])
		if _, err := proxies[i].Add(ctx, 1, 2); err != nil {
			return nil, nil, fmt.Errorf("connect to %s: %w", o.Addr(i), err)
		}
	}
	// Connections end with the program: TarsGo has no way to close them.
	return func(i int) workload.Call { return caller(o, proxies[i%len(proxies)], request) }, func() {}, nil
}

// caller returns the calls of one caller.
func caller(o *workload.ClientOptions, proxy *benchmark.Workload, request *benchmark.Message) workload.Call {
	if o.Workload == "add" {
		var number atomic.Int32
		return func(ctx context.Context) error {
			a := number.Add(1) % 1_000_000
			sum, err := proxy.Add(ctx, a, 7)
			if err == nil && sum != a+7 {
				err = workload.ErrWrong
			}
			return err
		}
	}
	return func(ctx context.Context) error {
		reply, err := proxy.Say(ctx, request)
		if err == nil && (reply.Field1 != workload.AnswerField1 || reply.Field2 != workload.AnswerField2) {
			err = workload.ErrWrong
		}
		return err
	}
}
