package embedded

import (
	"context"

	"google.golang.org/grpc"
)

// streams ends the clients' streams when the member stops. These are watches and lease renewals,
// which never end by themselves: otherwise etcd would wait seven seconds before it cuts them off.
type streams struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func newStreams() *streams {
	ctx, cancel := context.WithCancel(context.Background())
	return &streams{ctx, cancel}
}

func (s *streams) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainStreamInterceptor(s.intercept)}
}

func (s *streams) intercept(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	return handle(server, boundStream{stream, ctx})
}

// boundStream is a stream whose context ends with the member.
type boundStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s boundStream) Context() context.Context { return s.ctx }
