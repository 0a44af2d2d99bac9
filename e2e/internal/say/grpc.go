package say

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/anser-rpc/anser/internal/benchpb"
)

// ServeGRPC is Serve for a server of grpc-go.
func ServeGRPC(commands io.Reader, answers io.Writer) error {
	h, end := grpcObserving(os.Getenv(ObserveVariable), otelgrpc.NewServerHandler)
	defer end()
	var opts []grpc.ServerOption
	if h != nil {
		opts = append(opts, grpc.StatsHandler(h))
	}
	s := grpc.NewServer(opts...)
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "Hello", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(Message)
			if err := decode(in); err != nil {
				return nil, err
			}
			benchpb.Answer(in)
			return in, nil
		}}},
	}, nil)
	l, err := listen()
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	err = answerFor(l, commands, answers)
	s.Stop()
	return errors.Join(err, <-served)
}

// ServeGRPCGateway is Serve for grpc-gateway in front of the server of gRPC at an address.
func ServeGRPCGateway(to string, commands io.Reader, answers io.Writer) error {
	conn, err := grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	mux := runtime.NewServeMux()
	if err := mux.HandlePath(http.MethodPost, sayPath, transcode(mux, conn)); err != nil {
		return err
	}
	l, err := listen()
	if err != nil {
		return err
	}
	s := &http.Server{Handler: mux}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	err = errors.Join(answerFor(l, commands, answers), s.Close())
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// transcode does what the code does that protoc-gen-grpc-gateway generates for a method with the
// body "*".
func transcode(mux *runtime.ServeMux, conn *grpc.ClientConn) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		inbound, outbound := runtime.MarshalerForRequest(mux, r)
		ctx, err := runtime.AnnotateContext(ctx, mux, r, sayPath, runtime.WithHTTPPathPattern(sayPath))
		if err != nil {
			runtime.HTTPError(r.Context(), mux, outbound, w, r, err)
			return
		}
		in, out := new(Message), new(Message)
		if err := inbound.NewDecoder(r.Body).Decode(in); err != nil && !errors.Is(err, io.EOF) {
			runtime.HTTPError(ctx, mux, outbound, w, r, status.Errorf(codes.InvalidArgument, "%v", err))
			return
		}
		io.Copy(io.Discard, r.Body)
		var md runtime.ServerMetadata
		err = conn.Invoke(ctx, sayPath, in, out, grpc.Header(&md.HeaderMD), grpc.Trailer(&md.TrailerMD))
		ctx = runtime.NewServerMetadataContext(ctx, md)
		if err != nil {
			runtime.HTTPError(ctx, mux, outbound, w, r, err)
			return
		}
		runtime.ForwardResponseMessage(ctx, mux, outbound, w, r, out, mux.GetForwardResponseOptions()...)
	}
}
