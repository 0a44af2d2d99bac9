package grpcstubs

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/stubwire"
)

// Conn is what generated clients call through. It is safe for concurrent use.
type Conn struct {
	client *anser.Client
	opts   []anser.CallOption
}

var _ grpc.ClientConnInterface = (*Conn)(nil)

// inProtobuf is the codec of all calls.
var inProtobuf = anser.Codec(protobuf.New())

// NewConn returns a Conn that calls through c, which it does not close. The options apply to every
// unary call.
func NewConn(c *anser.Client, opts ...anser.CallOption) *Conn {
	return &Conn{c, append([]anser.CallOption{inProtobuf}, opts...)}
}

// usable returns an error for misuse of a Conn.
func (c *Conn) usable(ctx context.Context) error {
	switch {
	case c == nil || c.client == nil:
		return status.Error(codes.InvalidArgument, "grpcstubs: the client of the Conn is nil: make it with anser.Dial and grpcstubs.NewConn")
	case ctx == nil:
		return status.Error(codes.InvalidArgument, "grpcstubs: the context is nil: pass context.Background()")
	}
	return nil
}

// methodName turns "/orders.v1.Orders/Place" into "orders.v1.Orders.Place".
func methodName(full string) (string, error) {
	service, method, ok := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	if !ok || service == "" || method == "" || strings.Contains(method, "/") {
		return "", status.Errorf(codes.Unimplemented, "malformed method name %q: want /package.Service/Method", full)
	}
	return service + "." + method, nil
}

// Invoke makes a unary call.
func (c *Conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) (err error) {
	if err := c.usable(ctx); err != nil {
		return err
	}
	o, err := optionsOf(ctx, method, opts)
	if err != nil {
		return err
	}
	defer func() { o.finish(err) }()
	name, err := methodName(method)
	if err != nil {
		return err
	}
	if err := o.checkSize(args, o.maxSend, "sent"); err != nil {
		return err
	}
	var trailer anser.Metadata
	all := append(append(make([]anser.CallOption, 0, len(c.opts)+2), c.opts...), anser.Trailer(&trailer))
	if o.failFast {
		all = append(all, anser.WithFailMode(anser.Failfast))
	}
	err = toStatus(c.client.Call(outgoing(ctx, o.credentials), name, args, reply, all...))
	if err == nil {
		err = o.checkSize(reply, o.maxRecv, "received")
	}
	header := stubwire.UnpackHeaders(trailer)
	if header == nil {
		header = metadata.MD{}
	}
	o.header(header)
	o.trailer(fromAnser(trailer))
	return err
}

// callOptions are those of a call that have a meaning here.
type callOptions struct {
	credentials      metadata.MD
	failFast         bool
	maxSend, maxRecv int // 0: Anser's limits alone
	headers          []*metadata.MD
	trailers         []*metadata.MD
	finished         []func(error)
}

// optionsOf returns the options, or an error for one that would be ignored.
func optionsOf(ctx context.Context, method string, opts []grpc.CallOption) (*callOptions, error) {
	o := new(callOptions)
	for _, opt := range opts {
		switch opt := opt.(type) {
		case grpc.HeaderCallOption:
			o.headers = append(o.headers, opt.HeaderAddr)
		case grpc.TrailerCallOption:
			o.trailers = append(o.trailers, opt.TrailerAddr)
		case grpc.FailFastCallOption:
			o.failFast = opt.FailFast
		case grpc.MaxSendMsgSizeCallOption:
			o.maxSend = opt.MaxSendMsgSize
		case grpc.MaxRecvMsgSizeCallOption:
			o.maxRecv = opt.MaxRecvMsgSize
		case grpc.OnFinishCallOption:
			o.finished = append(o.finished, opt.OnFinish)
		case grpc.PerRPCCredsCallOption:
			if opt.Creds.RequireTransportSecurity() {
				return nil, status.Error(codes.Unauthenticated, "grpcstubs: credentials that need TLS cannot be an option of a call: use anser.Credentials and anser.TLS of the client")
			}
			md, err := opt.Creds.GetRequestMetadata(ctx, method)
			if err != nil {
				return nil, status.Errorf(codes.Unauthenticated, "grpcstubs: get the credentials of the call: %v", err)
			}
			o.credentials = metadata.Join(o.credentials, metadata.New(md))
		case grpc.CompressorCallOption:
			if opt.CompressorType != "identity" && opt.CompressorType != "" {
				return nil, unsupported("grpc.UseCompressor", "use anser.Compress")
			}
		case grpc.ContentSubtypeCallOption:
			if opt.ContentSubtype != "proto" && opt.ContentSubtype != "" {
				return nil, unsupported("grpc.CallContentSubtype", "messages are protobuf")
			}
		case grpc.MaxRetryRPCBufferSizeCallOption, grpc.EmptyCallOption, *grpc.EmptyCallOption, grpc.StaticMethodCallOption:
			// There is nothing that they could change.
		default:
			return nil, unsupported(fmt.Sprintf("%T", opt), "leave it out")
		}
	}
	return o, nil
}

func unsupported(option, instead string) error {
	return status.Errorf(codes.Unimplemented, "grpcstubs: the option %s has no meaning over Anser: %s", option, instead)
}

func (o *callOptions) header(md metadata.MD) {
	for _, at := range o.headers {
		*at = md
	}
}

func (o *callOptions) trailer(md metadata.MD) {
	for _, at := range o.trailers {
		*at = md
	}
}

func (o *callOptions) finish(err error) {
	for _, f := range o.finished {
		f(err)
	}
}

// checkSize returns an error for a message that is larger than the limit of its option.
func (o *callOptions) checkSize(msg any, limit int, what string) error {
	m, ok := msg.(proto.Message)
	if limit <= 0 || !ok {
		return nil
	}
	if n := proto.Size(m); n > limit {
		return status.Errorf(codes.ResourceExhausted, "grpcstubs: the message %s has %d bytes, more than the limit of %d", what, n, limit)
	}
	return nil
}
