package main

import (
	"context"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// The methods with the messages of the workload that have the code of "anser gen": the same fields,
// and the same bytes.
const (
	sayOwn anser.Method[benchpb.BenchmarkMessage, benchpb.BenchmarkMessage] = "Hello.Say"
	addOwn anser.Method[benchpb.AddRequest, benchpb.AddReply]               = "MathService.Add"
)

// handleOwn serves them.
func handleOwn(s *anser.Server, o *workload.ServerOptions) error {
	err := sayOwn.Handle(s, func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		o.Delay()
		in.Field1, in.Field2 = proto.String(workload.AnswerField1), proto.Int32(workload.AnswerField2)
		return in, nil
	})
	if err != nil {
		return err
	}
	return addOwn.Handle(s, func(_ context.Context, in *benchpb.AddRequest) (*benchpb.AddReply, error) {
		o.Delay()
		return &benchpb.AddReply{X: in.A + in.B}, nil
	})
}

// ownClient calls them. All callers send one message, which is converted once.
type ownClient struct {
	*anser.Client
	request *atomic.Pointer[request]
}

type request struct {
	from *workload.BenchmarkMessage
	to   *benchpb.BenchmarkMessage
}

// own returns the message of the workload as one with the code of "anser gen".
func (c ownClient) own(in *workload.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
	if r := c.request.Load(); r != nil && r.from == in {
		return r.to, nil
	}
	b, err := proto.Marshal(in)
	if err != nil {
		return nil, err
	}
	r := &request{in, new(benchpb.BenchmarkMessage)}
	if err := proto.Unmarshal(b, r.to); err != nil {
		return nil, err
	}
	c.request.Store(r)
	return r.to, nil
}

func (c ownClient) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	m, err := c.own(in)
	if err != nil {
		return nil, err
	}
	return sayOwn.Call(ctx, c.Client, m)
}

func (c ownClient) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out, err := addOwn.Call(ctx, c.Client, &benchpb.AddRequest{A: in.A, B: in.B})
	if err != nil {
		return nil, err
	}
	return &workload.AddReply{X: out.X}, nil
}

func (c ownClient) StartSay(ctx context.Context, in *workload.BenchmarkMessage) func() (workload.Said, error) {
	m, err := c.own(in)
	if err != nil {
		return func() (workload.Said, error) { return nil, err }
	}
	future := sayOwn.Go(ctx, c.Client, m)
	return func() (workload.Said, error) { return future.Wait() }
}

func (c ownClient) StartAdd(ctx context.Context, in *workload.AddRequest) func() (*workload.AddReply, error) {
	future := addOwn.Go(ctx, c.Client, &benchpb.AddRequest{A: in.A, B: in.B})
	return func() (*workload.AddReply, error) {
		out, err := future.Wait()
		if err != nil {
			return nil, err
		}
		return &workload.AddReply{X: out.X}, nil
	}
}
