package anser_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/wire"
)

// Trailers, details or a message that are too large must not end the connection.
func TestLargeErrors(t *testing.T) {
	network := new(ansertest.Network)
	var refused error
	s := serve(t, network.Listen("a:1"), map[string]handler{
		"Fail.Trailers": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			for refused == nil {
				refused = anser.SetTrailer(ctx, "key-"+strings.Repeat("x", len(*in)), strings.Repeat("v", 1000))
				*in = append(*in, 'x')
			}
			return nil, anser.Errorf(anser.DataLoss, "lost")
		},
		"Fail.Trailer": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			refused = anser.SetTrailer(ctx, "key", strings.Repeat("v", 8<<20))
			return nil, anser.Errorf(anser.DataLoss, "lost")
		},
		"Fail.Details": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			return nil, anser.Errorf(anser.DataLoss, "lost").WithDetails(make([]byte, 8<<20))
		},
		"Fail.Message": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			return nil, anser.Errorf(anser.DataLoss, "%s", strings.Repeat("long ", 2<<20))
		},
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	for method := range s.Stats().Methods {
		if !strings.HasPrefix(method, "Fail.") {
			continue
		}
		refused = nil
		_, err := call(context.Background(), c, method, "")
		wantFault(t, err, anser.DataLoss, anser.Executed)
		if strings.HasPrefix(method, "Fail.Trailer") && (refused == nil || !strings.Contains(refused.Error(), "65536")) {
			t.Errorf("%s: SetTrailer: %v", method, refused)
		}
	}
	if st := s.Stats(); st.Accepted != 1 || st.Conns != 1 {
		t.Errorf("%d connections were needed", st.Accepted)
	}
}

// seen is what a handler received with its request.
type seen struct {
	metadata anser.Metadata
	trace    anser.Trace
	traced   bool
	priority anser.Priority
	attempt  int
}

// spy serves "Spy.Look", which records what it receives, and "Spy.Through", which calls Spy.Look
// with its own context.
func spy(t *testing.T, network *ansertest.Network) (*anser.Client, chan seen) {
	look := make(chan seen, 1)
	var c *anser.Client
	serve(t, network.Listen("a:1"), map[string]handler{
		"Spy.Look": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			s := seen{metadata: anser.MetadataFrom(ctx), priority: anser.PriorityFrom(ctx), attempt: anser.AttemptFrom(ctx)}
			s.trace, s.traced = anser.TraceFrom(ctx)
			look <- s
			return in, nil
		},
		"Spy.Through": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			return anser.Call[[]byte](ctx, c, "Spy.Look", in)
		},
	})
	c = dial(t, "a:1", anser.Dialer(network.Dial))
	return c, look
}

func TestMetadata(t *testing.T) {
	c, look := spy(t, new(ansertest.Network))
	sent := anser.Metadata{"Tenant": "acme", "cursor-bin": "\x00\xff\r\n", "empty": "", "note": "żółć"}
	ctx := anser.WithMetadata(context.Background(), sent)
	ctx = anser.WithMetadata(ctx, anser.Metadata{"TENANT": "other"})
	sent["note"] = "changed" // was copied
	if _, err := call(ctx, c, "Spy.Look", ""); err != nil {
		t.Fatal(err)
	}
	got := (<-look).metadata
	want := anser.Metadata{"tenant": "other", "cursor-bin": "\x00\xff\r\n", "empty": "", "note": "żółć"}
	if !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got.Get("Tenant") != "other" || got.Get("none") != "" {
		t.Errorf("%q", got)
	}
	got.Set("New", "x") // the caller owns it
	// Metadata goes one hop, unless a handler forwards it.
	if _, err := call(ctx, c, "Spy.Through", ""); err != nil {
		t.Fatal(err)
	}
	if got := (<-look).metadata; got != nil {
		t.Errorf("%q", got)
	}
	if _, err := call(context.Background(), c, "Spy.Look", ""); err != nil {
		t.Fatal(err)
	}
	if got := (<-look).metadata; got != nil {
		t.Errorf("%q", got)
	}
	if anser.MetadataFrom(ctx) != nil {
		t.Error("outgoing metadata is not what came in")
	}
}

func TestMetadataMistakes(t *testing.T) {
	c, _ := spy(t, new(ansertest.Network))
	many := anser.Metadata{}
	for i := range 129 {
		many.Set(fmt.Sprint("k", i), "v")
	}
	for want, md := range map[string]anser.Metadata{
		"metadata with 129 keys is over the limit of 128":                                many,
		"metadata key of 0 bytes, want 1 to 255":                                         {"": "x"},
		"metadata key of 256 bytes, want 1 to 255":                                       {strings.Repeat("k", 256): "x"},
		`metadata key "a b" has a character outside a-z 0-9 - _ .`:                       {"a b": "x"},
		`metadata key "anser-user" is reserved`:                                          {"Anser-User": "x"},
		`metadata value of key "a" is not plain text: end the key in -bin to send bytes`: {"a": "x\r\ny"},
		"is over the limit of 65536: send less, or send it in the message":               {"a": strings.Repeat("x", 64<<10)},
	} {
		_, err := call(anser.WithMetadata(context.Background(), md), c, "Spy.Look", "")
		if e := fault(t, err); e.Outcome != anser.NotSent || e.Phase != anser.PhaseEncode || !strings.Contains(e.Message, want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestTraceAndPriority(t *testing.T) {
	network := new(ansertest.Network)
	c, look := spy(t, network)
	if _, err := call(context.Background(), c, "Spy.Look", ""); err != nil {
		t.Fatal(err)
	}
	if s := <-look; s.traced || s.priority != anser.Normal || s.attempt != 0 {
		t.Errorf("%+v", s)
	}
	trace := anser.Trace{TraceID: [16]byte{1, 2, 3}, SpanID: [8]byte{4, 5}, Flags: 1}
	ctx := anser.WithPriority(anser.WithTrace(context.Background(), trace), anser.Sheddable)
	for _, method := range []string{"Spy.Look", "Spy.Through"} { // both are propagated along the chain of calls
		if _, err := call(ctx, c, method, ""); err != nil {
			t.Fatal(err)
		}
		if s := <-look; !s.traced || s.trace != trace || s.priority != anser.Sheddable {
			t.Errorf("%s: %+v", method, s)
		}
	}
	// Ids of zeros are not a trace: neither on the wire nor in a context, where they end the
	// incoming trace.
	for _, none := range []anser.Trace{{}, {TraceID: trace.TraceID}, {SpanID: trace.SpanID, Flags: 1}} {
		if _, err := call(anser.WithTrace(ctx, none), c, "Spy.Look", ""); err != nil {
			t.Fatal(err)
		}
		if s := <-look; s.traced {
			t.Errorf("%+v", s)
		}
	}
	p := rawClient(t, network, "a:1")
	p.Send(wire.AppendMethod(nil, 1, "Spy.Look"), wire.AppendRequest(nil, 1, wire.FlagTrace, &wire.Request{Method: 1, Codec: 1, Priority: 2}))
	if s := <-look; s.traced {
		t.Errorf("%+v", s)
	}
	if p := anser.PriorityFrom(anser.WithPriority(context.Background(), 99)); p != anser.Critical {
		t.Error(p)
	}
	if _, ok := anser.TraceFrom(context.Background()); ok {
		t.Error("a trace from nowhere")
	}
}

func TestTrailers(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{
		"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			for _, err := range []error{
				anser.SetTrailer(ctx, "Took", "1 ms"), anser.SetTrailer(derived, "took", "2 ms"), anser.SetTrailer(ctx, "raw-bin", "\x00"),
			} {
				if err != nil {
					t.Error(err)
				}
			}
			for want, err := range map[string]error{
				`set trailer: metadata key "a b"`: anser.SetTrailer(ctx, "a b", ""),
				`is not plain text`:               anser.SetTrailer(ctx, "a", "\n"),
				`is reserved`:                     anser.SetTrailer(ctx, "anser-x", ""),
			} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %s", err, want)
				}
			}
			if len(*in) > 0 {
				return nil, anser.NotFound
			}
			return in, nil
		},
		"Echo.Many": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			for i := range 128 {
				if err := anser.SetTrailer(ctx, fmt.Sprint("k", i), ""); err != nil {
					t.Error(err)
				}
			}
			if err := anser.SetTrailer(ctx, "one-more", ""); err == nil || !strings.Contains(err.Error(), "128") {
				t.Error(err)
			}
			return in, anser.SetTrailer(ctx, "k7", "again")
		},
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	want := anser.Metadata{"took": "2 ms", "raw-bin": "\x00"}
	for _, in := range []string{"", "fail"} {
		var md anser.Metadata
		_, err := call(context.Background(), c, "Echo.Say", in, anser.Trailer(&md))
		if (err != nil) != (in != "") || !maps.Equal(md, want) {
			t.Errorf("%q, %v", md, err)
		}
	}
	var md anser.Metadata
	if _, err := call(context.Background(), c, "Echo.Many", "", anser.Trailer(&md)); err != nil || len(md) != 128 || md["k7"] != "again" {
		t.Error(len(md), err)
	}
	if err := anser.SetTrailer(context.Background(), "k", "v"); err == nil || err.Error() != `set trailer "k": the context is not that of a handler` {
		t.Error(err)
	}
	if _, ok := anser.PeerFrom(context.Background()); ok {
		t.Error("a peer from nowhere")
	}
}

// Metadata goes one hop, unless its key says that it is propagated; then a handler in between may
// change it.
func TestMetadataFlows(t *testing.T) {
	network := new(ansertest.Network)
	tell := func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		var all []string
		for k, v := range anser.MetadataFrom(ctx) {
			all = append(all, k+"="+v)
		}
		slices.Sort(all)
		return text(strings.Join(all, " ")), nil
	}
	serve(t, network.Listen("last:1"), map[string]handler{"Echo.Tell": tell})
	last := dial(t, "last:1", anser.Dialer(network.Dial))
	var set anser.Metadata
	serve(t, network.Listen("middle:1"), map[string]handler{"Echo.Tell": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		if set != nil {
			ctx = anser.WithMetadata(ctx, set)
		}
		ctx, cancel := context.WithCancel(ctx) // a derived one works too
		defer cancel()
		return anser.Go[[]byte](ctx, last, "Echo.Tell", in).Wait()
	}})
	serve(t, network.Listen("first:1"), map[string]handler{"Echo.Tell": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		return anser.Call[[]byte](ctx, dial(t, "middle:1", anser.Dialer(network.Dial)), "Echo.Tell", in)
	}})
	c := dial(t, "first:1", anser.Dialer(network.Dial))
	ctx := anser.WithMetadata(context.Background(), anser.Metadata{"Flow-Tenant": "acme", "flow-id-bin": "\x00\xff", "hop": "one"})
	for want, md := range map[string]anser.Metadata{
		"flow-id-bin=\x00\xff flow-tenant=acme":            nil,
		"flow-id-bin=\x00\xff flow-tenant=other more=here": {"FLOW-TENANT": "other", "more": "here"},
		"flow-id-bin= flow-new=new flow-tenant=acme":       {"flow-id-bin": "", "flow-new": "new"},
	} {
		set = md
		if out, err := call(ctx, c, "Echo.Tell", ""); err != nil || out != want {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
	}
	// Propagated metadata counts like added metadata, and a call that carries too much is not sent.
	set = make(anser.Metadata)
	for i := range 127 {
		set[fmt.Sprintf("k%d", i)] = ""
	}
	_, err := call(ctx, c, "Echo.Tell", "")
	if e := fault(t, err); e.Code != anser.ResourceExhausted || !strings.Contains(e.Message, "129 keys is over the limit of 128") {
		t.Error(e)
	}
}
