package connectstubs_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	"github.com/anser-rpc/anser"
	pb "github.com/anser-rpc/anser/connectstubs/internal/pingpb"
	"github.com/anser-rpc/anser/connectstubs/internal/pingpb/pingpbconnect"
)

func base64(s string) string { return connect.EncodeBinaryHeader([]byte(s)) }

// fill sets headers with several values, in an order, and binary ones.
func fill(h *connect.Header) {
	h.Set("One", "1")
	h.Add("Many", "b")
	h.Add("Many", "a")
	h.Set("Raw-Bin", base64("\x00\xff"))
	h.Add("Raws-Bin", base64("x"))
	h.Add("Raws-Bin", base64("")+","+base64("\x80y"))
	h.SetValues("None", nil)
}

// check complains about headers that are not those of fill, in another number.
func check(t *testing.T, what string, h *connect.Header, others int) {
	t.Helper()
	for key, want := range map[string][]string{
		"one": {"1"}, "many": {"b", "a"}, "raw-bin": {base64("\x00\xff")}, "raws-bin": {base64("x"), "", base64("\x80y")},
	} {
		if got := h.Values(key); !slices.Equal(got, want) {
			t.Errorf("%s: %s is %q, want %q", what, key, got, want)
		}
	}
	if h.Len() != 4+others {
		t.Errorf("%s: there are %d keys: %v", what, h.Len(), h)
	}
}

func TestHeadersOfCalls(t *testing.T) {
	for _, fails := range []bool{false, true} {
		client, _ := open(t, &probe{ping: func(ctx context.Context, in *pb.PingRequest) (*pb.PingResponse, error) {
			info, ok := connect.CallInfoForServerContext(ctx)
			if !ok || info.Spec.Procedure != pingpbconnect.PingServicePingProcedure || info.Protocol != "anser" || info.PeerAddr == "" || info.ReceiveStats.Size != 3 {
				t.Errorf("the server knows %+v", info)
			}
			check(t, "the request", info.RequestHeader(), 0)
			fill(info.ResponseHeader())
			fill(info.ResponseTrailer())
			info.ResponseTrailer().Set("Last", "x")
			if fails {
				return nil, connect.NewError(connect.CodeNotFound, "none")
			}
			return &pb.PingResponse{Text: in.Text}, nil
		}})
		ctx, info := connect.NewClientContext(t.Context())
		fill(info.RequestHeader())
		info.RequestHeader().Set("Grpc-Headers", "a key of the stubs themselves is left out")
		_, err := client.Ping(ctx, &pb.PingRequest{Text: "x"})
		if (err != nil) != fails {
			t.Fatal(err)
		}
		check(t, "the headers", info.ResponseHeader(), 0)
		check(t, "the trailers", info.ResponseTrailer(), 1)
		if info.Protocol != "anser" || info.Codec != "proto" || info.Spec.StreamType != connect.StreamTypeUnary || info.SendStats.Size != 3 {
			t.Errorf("the client knows %+v", info)
		}
	}
}

// Headers of a stream arrive with its first message, before the stream goes on, and with its end if
// there is none.
func TestHeadersOfStreams(t *testing.T) {
	client, _ := open(t, &probe{
		cumSum: func(ctx context.Context, st pingpbconnect.PingServiceCumSumServerStream) error {
			info, _ := connect.CallInfoForServerContext(ctx)
			check(t, "the request", info.RequestHeader(), 0)
			fill(info.ResponseHeader())
			for range 2 {
				if err := st.SendHeaders(); err != nil {
					return err
				}
			}
			info.ResponseHeader().Set("Late", "not sent")
			in, err := st.Receive()
			if err != nil {
				return err
			}
			if err := st.Send(&pb.CumSumResponse{Sum: in.Number}); err != nil {
				return err
			}
			if _, err := st.Receive(); !errors.Is(err, io.EOF) {
				return connect.Errorf(connect.CodeInternal, "the stream goes on: %v", err)
			}
			fill(info.ResponseTrailer())
			return nil
		},
		countUp: func(ctx context.Context, in *pb.CountUpRequest, st pingpbconnect.PingServiceCountUpServerStream) error {
			info, _ := connect.CallInfoForServerContext(ctx)
			fill(info.ResponseHeader())
			fill(info.ResponseTrailer())
			if in.Number != 0 {
				return connect.NewError(connect.CodeDataLoss, "lost")
			}
			return nil
		},
	})
	ctx, info := connect.NewClientContext(t.Context())
	fill(info.RequestHeader())
	st, err := client.CumSum(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.SendHeaders(); err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&pb.CumSumRequest{Number: 4}); err != nil {
		t.Fatal(err)
	}
	if out, err := st.Receive(); err != nil || out.Sum != 4 {
		t.Fatalf("%v, %v", out, err)
	}
	check(t, "the headers", info.ResponseHeader(), 0)
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	check(t, "the trailers", info.ResponseTrailer(), 0)

	for number, code := range map[int64]connect.Code{0: 0, 1: connect.CodeDataLoss} {
		ctx, info := connect.NewClientContext(t.Context())
		st, err := client.CountUp(ctx, &pb.CountUpRequest{Number: number})
		if err != nil {
			t.Fatal(err)
		}
		_, err = st.Receive()
		if ended := errors.Is(err, io.EOF); ended != (code == 0) || !ended && connect.CodeOf(err) != code {
			t.Errorf("at the end: %v", err)
		}
		check(t, "the headers of a stream without messages", info.ResponseHeader(), 0)
		check(t, "its trailers", info.ResponseTrailer(), 0)
	}
}

// Headers that cannot be sent are errors, on both sides.
func TestHeadersThatAreRefused(t *testing.T) {
	calls := 0
	client, _ := open(t, &probe{
		ping: func(ctx context.Context, in *pb.PingRequest) (*pb.PingResponse, error) {
			calls++
			info, _ := connect.CallInfoForServerContext(ctx)
			switch in.Text {
			case "header":
				info.ResponseHeader().Set("x-bin", "not base64!")
			case "trailer":
				info.ResponseTrailer().Set("x-bin", "not base64!")
			case "line":
				info.ResponseTrailer().Set("x", "two\nlines")
			}
			return new(pb.PingResponse), nil
		},
		countUp: func(ctx context.Context, _ *pb.CountUpRequest, st pingpbconnect.PingServiceCountUpServerStream) error {
			info, _ := connect.CallInfoForServerContext(ctx)
			info.ResponseHeader().Set("x-bin", "not base64!")
			return st.Send(new(pb.CountUpResponse))
		},
	})
	for _, values := range []map[string]string{{"x-bin": "not base64!"}, {"x": "two\nlines"}, {"x y": "1"}} {
		ctx, info := connect.NewClientContext(t.Context())
		for k, v := range values {
			info.RequestHeader().Set(k, v)
		}
		if _, err := client.Ping(ctx, new(pb.PingRequest)); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("a call with %q: %v", values, err)
		}
		if _, err := client.CountUp(ctx, new(pb.CountUpRequest)); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("a stream with %q: %v", values, err)
		}
	}
	if calls != 0 {
		t.Errorf("%d calls have run", calls)
	}
	for _, text := range []string{"header", "trailer", "line"} {
		if _, err := client.Ping(t.Context(), &pb.PingRequest{Text: text}); connect.CodeOf(err) != connect.CodeInternal {
			t.Errorf("the server sets a bad %s: %v", text, err)
		}
	}
	st, err := client.CountUp(t.Context(), new(pb.CountUpRequest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Receive(); connect.CodeOf(err) != connect.CodeInternal || !strings.Contains(err.Error(), "base64") {
		t.Errorf("the server sets a bad header of a stream: %v", err)
	}
}

// Metadata of Anser and headers of Connect are the same, and headers go to the callee only.
func TestMetadataOfAnser(t *testing.T) {
	back, _ := open(t, &probe{ping: func(ctx context.Context, _ *pb.PingRequest) (*pb.PingResponse, error) {
		info, _ := connect.CallInfoForServerContext(ctx)
		return &pb.PingResponse{Text: info.RequestHeader().Get("a") + info.RequestHeader().Get("flow-b")}, nil
	}})
	front, c := open(t, &probe{ping: func(ctx context.Context, _ *pb.PingRequest) (*pb.PingResponse, error) {
		info, _ := connect.CallInfoForServerContext(ctx)
		out, err := back.Ping(ctx, new(pb.PingRequest))
		if err != nil {
			return nil, err
		}
		out.Text = info.RequestHeader().Get("a") + info.RequestHeader().Get("flow-b") + "," + out.Text
		return out, nil
	}})
	ctx, info := connect.NewClientContext(anser.WithMetadata(t.Context(), anser.Metadata{"flow-b": "2"}))
	info.RequestHeader().Set("A", "1")
	if out, err := front.Ping(ctx, new(pb.PingRequest)); err != nil || out.Text != "12,2" {
		t.Errorf("%v, %v", out, err)
	}
	if out, err := anser.Call[pb.PingResponse](anser.WithMetadata(t.Context(), anser.Metadata{"a": "3"}), c, service+"Ping", new(pb.PingRequest)); err != nil || out.Text != "3," {
		t.Errorf("%v, %v", out, err)
	}
}
