package load

import (
	"bytes"
	"context"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/rawjson"
)

// Workload is the request of the callers.
type Workload struct {
	Bytes     int                // of an encoded request
	Options   []anser.DialOption // required options of the client
	NewCaller func(c *anser.Client, method string) Caller
}

// Caller makes consecutive calls. It is used by one goroutine.
type Caller func(ctx context.Context, opts ...anser.CallOption) error

// wrongReply is the error for a successful call with a wrong reply.
var wrongReply = anser.Errorf(anser.DataLoss, "the reply is not what the request asked for")

// Say sends the message of 581 bytes that is common in comparisons of RPC frameworks, and checks
// the reply.
func Say() Workload {
	return Workload{Bytes: proto.Size(benchpb.Filled()), NewCaller: func(c *anser.Client, method string) Caller {
		request := benchpb.Filled()
		return func(ctx context.Context, opts ...anser.CallOption) error {
			reply, err := anser.Call[benchpb.BenchmarkMessage](ctx, c, method, request, opts...)
			if err == nil && !benchpb.Answered(reply) {
				err = wrongReply
			}
			return err
		}
	}}
}

// Bytes sends n bytes in the raw codec.
func Bytes(n int) Workload {
	request := bytes.Repeat([]byte{0xa5}, n)
	options := []anser.DialOption{anser.Codec(codec.Raw{}), anser.MaxMessage(max(4<<20, n+1))}
	return Workload{Bytes: n, Options: options, NewCaller: func(c *anser.Client, method string) Caller {
		return func(ctx context.Context, opts ...anser.CallOption) error {
			_, err := anser.Call[[]byte](ctx, c, method, &request, opts...)
			return err
		}
	}}
}

// JSON sends the text in the JSON codec.
func JSON(text []byte) Workload {
	request := json.RawMessage(text)
	options := []anser.DialOption{anser.Codec(rawjson.Codec{})}
	return Workload{Bytes: len(text), Options: options, NewCaller: func(c *anser.Client, method string) Caller {
		var reply json.RawMessage
		return func(ctx context.Context, opts ...anser.CallOption) error {
			return c.Call(ctx, method, &request, &reply, opts...)
		}
	}}
}
