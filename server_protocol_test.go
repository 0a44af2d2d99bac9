package anser_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/msgpack"
)

// protocolClient is a connection of a protocol without a wire format: the test is its client.
type protocolClient struct {
	*anser.ProtocolConn
	drains chan time.Duration
	closes chan error
}

// openForeign opens a connection from this machine, which the test ends.
func openForeign(t *testing.T, s *anser.Server, state *tls.ConnectionState) *protocolClient {
	t.Helper()
	f, err := newForeign(s, anser.Peer{Addr: loopback(4000), Local: loopback(5000), TLS: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.End(io.EOF) })
	return f
}

func newForeign(s *anser.Server, peer anser.Peer) (*protocolClient, error) {
	f := &protocolClient{drains: make(chan time.Duration, 10), closes: make(chan error, 10)}
	var err error
	f.ProtocolConn, err = s.OpenConn(peer, anser.ProtocolHooks{
		Drain: func(grace time.Duration) { f.drains <- grace },
		Close: func(why error) { f.closes <- why },
	})
	return f, err
}

func loopback(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }

// start starts a call with a message. Its reply arrives on the channel.
func (f *protocolClient) start(r anser.ProtocolRequest, message any) (*anser.ProtocolCall, <-chan anser.ProtocolReply, error) {
	k, refused := f.Admit(&r)
	if refused != nil {
		return nil, nil, refused
	}
	in := k.NewRequest()
	reflect.ValueOf(in).Elem().Set(reflect.ValueOf(message))
	if r.IdempotencyKey != "" {
		encoded, err := r.Codec.Append(nil, in)
		if err != nil {
			return nil, nil, err
		}
		k.Identify(encoded)
	}
	replies := make(chan anser.ProtocolReply, 2)
	k.Run(in, func(r anser.ProtocolReply) error {
		replies <- r
		return nil
	})
	return k, replies, nil
}

func (f *protocolClient) call(r anser.ProtocolRequest, message any) (any, anser.Metadata, error) {
	_, replies, err := f.start(r, message)
	if err != nil {
		return nil, nil, err
	}
	reply := <-replies
	if reply.Err != nil {
		return nil, reply.Trailers, reply.Err
	}
	return reply.Message, reply.Trailers, nil
}

type word struct{ Text string }

func foreignServer(t *testing.T, opts ...anser.ServerOption) *anser.Server {
	t.Helper()
	s := anser.NewServer(opts...)
	t.Cleanup(func() { s.Close() })
	return s
}

// The data of a call over a protocol reaches the handler, and the result of the handler reaches
// the protocol.
func TestProtocolCalls(t *testing.T) {
	var seen []string
	s := foreignServer(t, anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			seen = append(seen, inv.Method+" "+inv.Codec().Name())
			return next(ctx, inv)
		}
	}))
	type key struct{}
	anser.Handle(s, "Words.Say", func(ctx context.Context, in *word) (*word, error) {
		md := anser.MetadataFrom(ctx)
		trace, _ := anser.TraceFrom(ctx)
		peer, _ := anser.PeerFrom(ctx)
		deadline, _ := ctx.Deadline()
		if md.Get("colour") != "blue" || trace.SpanID != [8]byte{2} || peer.Addr.String() != "127.0.0.1:4000" ||
			time.Until(deadline) > time.Minute || anser.AttemptFrom(ctx) != 3 || anser.PriorityFrom(ctx) != anser.Critical || ctx.Value(key{}) != "own" {
			t.Errorf("the handler sees %v, %v, %v, %v, %d, %v, %v", md, trace, peer, deadline, anser.AttemptFrom(ctx), anser.PriorityFrom(ctx), ctx.Value(key{}))
		}
		anser.SetTrailer(ctx, "mood", "good")
		if in.Text == "fail" {
			return nil, anser.Errorf(anser.NotFound, "no %w", io.EOF)
		}
		return &word{in.Text + "!"}, nil
	}, anser.Alias("Words.Tell"))
	f := openForeign(t, s, nil)
	r := anser.ProtocolRequest{
		Method: "Words.Tell", Metadata: anser.Metadata{"Colour": "blue"}, Trace: anser.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{2}},
		Priority: anser.Critical, Attempt: 3, Deadline: time.Now().Add(time.Minute), Codec: msgpack.New(),
		Values: context.WithValue(t.Context(), key{}, "own"),
	}
	reply, trailers, err := f.call(r, word{"hello"})
	if err != nil || reply.(*word).Text != "hello!" || trailers.Get("mood") != "good" {
		t.Errorf("%v, %v, %v", reply, trailers, err)
	}
	_, trailers, err = f.call(r, word{"fail"})
	if !errors.Is(err, anser.NotFound) || !errors.Is(err, io.EOF) || trailers.Get("mood") != "good" {
		t.Errorf("%v, %v", trailers, err)
	}
	if want := []string{"Words.Say msgpack", "Words.Say msgpack"}; !slices.Equal(seen, want) {
		t.Errorf("the interceptor has seen %q, want %q", seen, want)
	}
	for s.Stats().InFlight > 0 { // a call is counted until its reply was taken
		time.Sleep(time.Millisecond)
	}
	st := s.Stats()
	if m := st.Methods["Words.Say"]; m.Calls != 2 || m.Failed != 1 || st.Conns != 1 {
		t.Errorf("%+v of %+v", m, st)
	}
}

// The rules for Anser's own calls apply to the calls of other protocols.
func TestProtocolCallsPassTheSameChecks(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	for name, c := range map[string]struct {
		options []anser.ServerOption
		handle  []anser.HandleOption
		request anser.ProtocolRequest
		busy    int // calls that are running
		code    anser.Code
		text    string
		limit   string // the counted limit
	}{
		"an unknown method": {request: anser.ProtocolRequest{Method: "Words.Sai"}, code: anser.Unimplemented, text: `did you mean "Words.Say"`},
		"a method that could be forwarded": {
			options: []anser.ServerOption{anser.Forward(func(context.Context, *anser.ForwardCall) (*anser.Client, string, error) { return nil, "", nil })},
			request: anser.ProtocolRequest{Method: "Other.Say"}, code: anser.Unimplemented, text: `"Other.Say" is not served here, nor forwarded over this protocol: `,
		},
		"a method of the protocol": {request: anser.ProtocolRequest{Method: anser.MethodsName}, code: anser.Unimplemented, text: "not served"},
		"a stream":                 {request: anser.ProtocolRequest{Method: "Words.Stream"}, code: anser.Unimplemented, text: "is a stream"},
		"another codec":            {handle: []anser.HandleOption{anser.OnlyCodecs(msgpack.New())}, code: anser.Unimplemented, text: "does not take the codec"},
		"a large message": {
			options: []anser.ServerOption{anser.MaxMessage(100)}, request: anser.ProtocolRequest{Size: 101},
			code: anser.ResourceExhausted, text: "over the limit of 100", limit: "MaxMessage",
		},
		"large metadata": {
			request: anser.ProtocolRequest{Metadata: anser.Metadata{"key": strings.Repeat("x", 70<<10)}},
			code:    anser.ResourceExhausted, text: "metadata of",
		},
		"bad metadata": {request: anser.ProtocolRequest{Metadata: anser.Metadata{"a key": "x"}}, code: anser.InvalidArgument, text: "a key"},
		"the server's limit": {
			options: []anser.ServerOption{anser.MaxInFlight(1)}, busy: 1,
			code: anser.ResourceExhausted, text: "limit of 1 calls in flight", limit: "MaxInFlight",
		},
		"the method's limit": {
			handle: []anser.HandleOption{anser.MaxInFlight(1)}, busy: 1,
			code: anser.ResourceExhausted, text: "Words.Say is at its limit of 1", limit: "MaxInFlight",
		},
		"the connection's limit": {
			options: []anser.ServerOption{anser.MaxCalls(1)}, busy: 1,
			code: anser.ResourceExhausted, text: "limit of 1 open calls", limit: "MaxCalls",
		},
		"memory": {
			options: []anser.ServerOption{anser.MaxMemory(16 << 20)}, request: anser.ProtocolRequest{Size: 3 << 20}, busy: 5,
			code: anser.ResourceExhausted, text: "anser.MaxMemory", limit: "MaxMemory",
		},
		"a deadline that has passed": {request: anser.ProtocolRequest{Deadline: time.Now().Add(-time.Second)}, code: anser.DeadlineExceeded, text: "time was over"},
		"a long wait": {
			options: []anser.ServerOption{anser.MaxQueueTime(time.Second)}, request: anser.ProtocolRequest{Arrived: time.Now().Add(-time.Minute), Priority: anser.Critical},
			code: anser.ResourceExhausted, text: "waited longer than 1s", limit: "MaxQueueTime",
		},
		"an observer": {
			options: []anser.ServerOption{anser.Observe(anser.Observer{Request: func(_ context.Context, m anser.MessageInfo) error {
				return anser.Errorf(anser.Aborted, "%s with %d bytes", m.Method, m.Bytes)
			}})},
			request: anser.ProtocolRequest{Size: 7}, code: anser.Aborted, text: "Words.Say with 7 bytes",
		},
		"a policy without an identity": {
			options: []anser.ServerOption{anser.Authenticate(new(door)), anser.Authorize(onlyAnn{})},
			code:    anser.Unauthenticated, text: "unauthenticated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := foreignServer(t, c.options...)
			ran := new(atomic.Int64)
			anser.Handle(s, "Words.Say", func(ctx context.Context, in *word) (*word, error) {
				ran.Add(1)
				select {
				case <-block:
				case <-ctx.Done():
				}
				return in, nil
			}, c.handle...)
			anser.HandleStream(s, "Words.Stream", func(context.Context, *anser.Stream[word, word]) error { return nil })
			f := openForeign(t, s, nil)
			r := c.request
			if r.Method == "" {
				r.Method = "Words.Say"
			}
			for range c.busy {
				if _, _, err := f.start(r, word{}); err != nil {
					t.Fatal(err)
				}
			}
			refusedBefore := s.Stats().Refused
			_, _, err := f.call(r, word{})
			if anser.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v (%v), want %v with %q", err, anser.CodeOf(err), c.code, c.text)
			}
			if errors.Is(err, anser.ErrTooLarge) != (c.limit == "MaxMessage") {
				t.Errorf("%v is ErrTooLarge: %v", err, !errors.Is(err, anser.ErrTooLarge))
			}
			if e, ok := errors.AsType[*anser.Error](err); !ok || e.Outcome != anser.Refused {
				t.Errorf("the outcome is %v, want Refused", e.Outcome)
			}
			st := s.Stats()
			if st.Refused != refusedBefore+1 || c.limit != "" && st.LimitsHit[c.limit] != 1 {
				t.Errorf("refused %d, hit %v: want 1 and %s", st.Refused-refusedBefore, st.LimitsHit, c.limit)
			}
			for ran.Load() < int64(c.busy) {
				time.Sleep(time.Millisecond)
			}
			if ran.Load() > int64(c.busy) {
				t.Error("it ran")
			}
		})
	}
}

// onlyAnn is a policy.
type onlyAnn struct{}

func (onlyAnn) Allows(id *anser.Identity, _ string) bool { return id.Subject == "ann" }
func (onlyAnn) Version() uint64                          { return 1 }
