package main

import (
	"context"
	"fmt"

	"github.com/cloudwego/kitex/pkg/serviceinfo"

	"github.com/anser-rpc/anser/arena/workload"
)

// This is what the kitex command generates for the two services, with one difference: the messages
// encode and decode themselves with the methods that vtproto generated, and not by reflection.

const (
	serviceHello = "Hello"
	methodSay    = "Say"
	serviceMath  = "MathService"
	methodAdd    = "Add"
)

type (
	sayMessage = payload[workload.BenchmarkMessage, *workload.BenchmarkMessage]
	addArgs    = payload[workload.AddRequest, *workload.AddRequest]
	addResult  = payload[workload.AddReply, *workload.AddReply]
)

// hello and math are the handlers' types, as Kitex registers them.
type hello interface {
	Say(ctx context.Context, m *workload.BenchmarkMessage) (*workload.BenchmarkMessage, error)
}

type math interface {
	Add(ctx context.Context, m *workload.AddRequest) (*workload.AddReply, error)
}

func helloInfo() *serviceinfo.ServiceInfo {
	return info(serviceHello, (*hello)(nil), methodSay, method(hello.Say))
}

func mathInfo() *serviceinfo.ServiceInfo {
	return info(serviceMath, (*math)(nil), methodAdd, method(math.Add))
}

func info(service string, handler any, name string, m serviceinfo.MethodInfo) *serviceinfo.ServiceInfo {
	return &serviceinfo.ServiceInfo{
		ServiceName:  service,
		HandlerType:  handler,
		Methods:      map[string]serviceinfo.MethodInfo{name: m},
		PayloadCodec: serviceinfo.Protobuf,
		Extra:        map[string]any{serviceinfo.PackageName: "arena.workload"},
	}
}

// method describes a unary method of the handler type H.
func method[H, Q, R any, PQ vtMessage[Q], PR vtMessage[R]](call func(H, context.Context, PQ) (PR, error)) serviceinfo.MethodInfo {
	handler := func(ctx context.Context, handler, args, result any) error {
		reply, err := call(handler.(H), ctx, args.(*payload[Q, PQ]).message)
		if err != nil {
			return err
		}
		result.(*payload[R, PR]).message = reply
		return nil
	}
	return serviceinfo.NewMethodInfo(handler,
		func() any { return new(payload[Q, PQ]) },
		func() any { return new(payload[R, PR]) },
		false)
}

// vtMessage is a pointer to a message with the methods of vtproto.
type vtMessage[M any] interface {
	*M
	SizeVT() int
	MarshalVT() ([]byte, error)
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
}

// payload holds the request or the reply of a call, as Kitex's protobuf codec takes them.
type payload[M any, P vtMessage[M]] struct{ message P }

// Size and FastWrite let Kitex encode straight into its output buffer.
func (p *payload[M, P]) Size() int { return p.message.SizeVT() }

// FastWrite encodes into b, which has Size bytes. Kitex takes no error from it; the only one there
// is would be that this program left a required field out.
func (p *payload[M, P]) FastWrite(b []byte) int {
	n, err := p.message.MarshalToSizedBufferVT(b)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", p.message, err))
	}
	return n
}

// Marshal is for Kitex's type assertion; it calls FastWrite.
func (p *payload[M, P]) Marshal([]byte) ([]byte, error) { return p.message.MarshalVT() }

// Unmarshal decodes b, which is Kitex's again afterwards: vtproto copies strings.
func (p *payload[M, P]) Unmarshal(b []byte) error {
	p.message = new(M)
	return p.message.UnmarshalVT(b)
}
