package load

import (
	"context"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// The methods of a server for measurements.
const (
	SayMethod  anser.Method[benchpb.BenchmarkMessage, benchpb.BenchmarkMessage] = "Hello.Say"
	EchoMethod anser.Method[[]byte, []byte]                                     = "Echo.Bytes"
	AddMethod  anser.Method[benchpb.AddRequest, benchpb.AddReply]               = "MathService.Add"
)

// NewServer returns a server with these methods, which accepts every compression.
func NewServer(opts ...anser.ServerOption) *anser.Server {
	s := anser.NewServer(append([]anser.ServerOption{anser.AcceptCompression(all.Compressors()...)}, opts...)...)
	SayMethod.Handle(s, func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		benchpb.Answer(in)
		return in, nil
	})
	EchoMethod.Handle(s, func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	AddMethod.Handle(s, func(_ context.Context, in *benchpb.AddRequest) (*benchpb.AddReply, error) {
		return &benchpb.AddReply{X: in.GetA() + in.GetB()}, nil
	})
	return s
}
