package protocols_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/anser-rpc/anser"
)

// Words is the message of the matrix.
type Words struct{ Text string }

// matrixServer serves what the cells of the matrix ask for.
type matrixServer struct {
	direct  string // the address
	address string // of a proxy that counts bytes
	proxy   *proxy

	runs  atomic.Int32
	ended chan struct{} // a call was cancelled
	began chan struct{}
	leave chan struct{}
}

func (m *matrixServer) say(ctx context.Context, in *Words) (*Words, error) {
	switch in.Text {
	case "deadline":
		at, ok := ctx.Deadline()
		return &Words{fmt.Sprint(ok && time.Until(at) < 90*time.Second)}, nil
	case "wait":
		m.began <- struct{}{}
		<-ctx.Done()
		m.ended <- struct{}{}
		return nil, ctx.Err()
	case "linger":
		m.began <- struct{}{}
		<-m.leave
		return in, nil
	case "metadata":
		return &Words{anser.MetadataFrom(ctx)["tenant"]}, nil
	case "trailer":
		return in, anser.SetTrailer(ctx, "last", "trailer")
	case "error":
		detail, err := anypb.New(&errdetails.ErrorInfo{Reason: "why"})
		if err != nil {
			return nil, err
		}
		details, err := proto.Marshal(&spb.Status{Code: int32(anser.Unavailable), Message: "not now", Details: []*anypb.Any{detail}})
		if err != nil {
			return nil, err
		}
		return nil, anser.Errorf(anser.Unavailable, "not now").WithDetails(details).WithRetryAfter(anser.RetryNever)
	case "trace":
		t, _ := anser.TraceFrom(ctx)
		return &Words{hex.EncodeToString(t.TraceID[:])}, nil
	case "count":
		return &Words{fmt.Sprint(m.runs.Add(1))}, nil
	}
	return &Words{strings.ToUpper(in.Text)}, nil
}

func startMatrix(t *testing.T) (*matrixServer, *anser.Server) {
	t.Helper()
	m := &matrixServer{ended: make(chan struct{}, 10), began: make(chan struct{}, 10), leave: make(chan struct{})}
	var server *anser.Server
	m.direct = serve(t, func(s *anser.Server) {
		server = s
		anser.Handle(s, "test.Matrix.Say", m.say, anser.Deduplicate())
		anser.ServerStreamMethod[Words, Words]("test.Matrix.Tell").Handle(s, func(_ context.Context, in *Words, out anser.Sender[Words]) error {
			return cmp.Or(out.Send(in), out.Send(in))
		})
		anser.ClientStreamMethod[Words, Words]("test.Matrix.Hear").Handle(s, func(_ context.Context, in anser.Receiver[Words]) (*Words, error) {
			all := new(Words)
			for w, err := range in.All() {
				if err != nil {
					return nil, err
				}
				all.Text += w.Text
			}
			return all, nil
		})
		anser.HandleStream(s, "test.Matrix.Chat", func(_ context.Context, st *anser.Stream[Words, Words]) error {
			for w, err := range st.All() {
				if err != nil {
					return err
				}
				if err := st.Send(w); err != nil {
					return err
				}
			}
			return nil
		})
	}, anser.MaxMessage(1<<20))
	m.proxy = &proxy{to: m.direct}
	m.address = m.proxy.start(t)
	return m, server
}
