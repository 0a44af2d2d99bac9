package anser_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A stream that is forwarded is the same stream there: messages of all sizes in both directions,
// half-close, end, error, details and trailers.
func TestForwardStreams(t *testing.T) {
	network := new(ansertest.Network)
	behind := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
		"Chat.Talk": talk,
		"Chat.Fail": func(ctx context.Context, st *bytesStream) error {
			anser.SetTrailer(ctx, "said", anser.MetadataFrom(ctx).Get("say"))
			st.Send(text("before"))
			return anser.Errorf(anser.Aborted, "stopped").WithDetails([]byte("details")).WithRetryAfter(time.Second)
		},
		"Chat.End": func(ctx context.Context, st *bytesStream) error {
			if err := sink(ctx, st); err != nil {
				return err
			}
			st.Send(text("before"))
			return anser.SetTrailer(ctx, "took", "7")
		},
	})
	s, _ := forwardTo(t, network, "a:1")
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	ctx := anser.WithMetadata(context.Background(), anser.Metadata{"say": "hello"})
	st := open(t, ctx, c, "Chat.Talk")
	for _, size := range []int{1, 0, 1000, 20 << 10, 1 << 20, 4 << 20} {
		m := strings.Repeat("x", size)
		go st.Send(text(m))
		hear(t, st, m)
	}
	if err := st.CloseSend(); err != nil {
		t.Error(err)
	}
	hearEnd(t, st)

	first, err := anser.OpenWith[[]byte, []byte](ctx, c, "Chat.Talk", text("first"))
	if err != nil {
		t.Fatal(err)
	}
	say(t, first, "second")
	hear(t, first, "first", "second")
	first.Close()

	st = open(t, ctx, c, "Chat.Fail")
	hear(t, st, "before")
	_, err = st.Recv()
	e := wantFault(t, err, anser.Aborted, anser.Executed)
	if e.Message != "stopped" || string(e.Details) != "details" || e.RetryAfter != time.Second || st.Trailer()["said"] != "hello" {
		t.Errorf("%+v, %v", e, st.Trailer())
	}

	st = open(t, ctx, c, "Chat.End")
	say(t, st, "a", "b")
	st.CloseSend()
	hear(t, st, "before")
	hearEnd(t, st)
	if got := st.Trailer(); got["took"] != "7" {
		t.Error(got)
	}
	_, err = open(t, ctx, c, "Chat.Nothing").Recv()
	wantFault(t, err, anser.Unimplemented, anser.Refused)
	eventually(t, "no stream is open", func() bool { return s.Stats().Streams == 0 && behind.Stats().Streams == 0 })
	if m := s.Stats().Methods["Chat.End"]; m != (anser.MethodStats{Calls: 1}) {
		t.Errorf("%+v", m)
	}
}

// A reader that is slow stops the sender at the other end: what waits in between is bounded by the
// windows.
func TestForwardBackpressure(t *testing.T) {
	for _, up := range []bool{true, false} {
		network := new(ansertest.Network)
		release := make(chan struct{})
		var sent atomic.Int64
		pour := func(st *bytesStream) error {
			for range 1000 {
				if err := st.Send(text(strings.Repeat("x", 10<<10))); err != nil {
					return err
				}
				sent.Add(1)
			}
			return nil
		}
		windows := anser.FlowControlWindows(64<<10, 256<<10)
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Sink": func(ctx context.Context, st *bytesStream) error {
				<-release
				return sink(ctx, st)
			},
			"Chat.Pour": func(_ context.Context, st *bytesStream) error { return pour(st) },
		}, windows)
		forwardToClient(t, network, dial(t, "a:1", anser.Dialer(network.Dial), windows), windows)
		c := dial(t, "gw:1", anser.Dialer(network.Dial), windows)
		method := "Chat.Pour"
		if up {
			method = "Chat.Sink"
		}
		st := open(t, context.Background(), c, method)
		done := returned(func() {
			if up {
				if err := pour(st); err != nil {
					t.Error(err)
				}
				st.CloseSend()
			}
		})
		last := int64(-1)
		eventually(t, "the sender waits", func() bool {
			time.Sleep(50 * time.Millisecond)
			was := last
			last = sent.Load()
			return last > 0 && was == last
		})
		if last > 100 { // 10 MB would be 1000; three windows and the buffers of connections are less than 1 MB
			t.Errorf("%d messages of 10 KiB were taken while none was read", last)
		}
		close(release)
		<-done
		n := 0
		for {
			_, err := st.Recv()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if !up && n != 1000 {
			t.Errorf("%d messages", n)
		}
	}
}

// The end of one side ends the other one.
func TestForwardedStreamsEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(st *bytesStream, caller, behind *anser.Client, s *anser.Server)
		why  error
	}{
		{"cancel", func(st *bytesStream, _, _ *anser.Client, _ *anser.Server) { st.Close() }, context.Canceled},
		{"caller", func(_ *bytesStream, caller, _ *anser.Client, _ *anser.Server) { caller.Close() }, context.Canceled},
		{"client", func(_ *bytesStream, _, behind *anser.Client, _ *anser.Server) { behind.Close() }, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				ends := make(chan error, 2)
				serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Idle": func(ctx context.Context, st *bytesStream) error {
					ends <- nil
					err := idle(ctx, st)
					ends <- err
					return err
				}})
				s, up := forwardTo(t, network, "a:1")
				client := dial(t, "gw:1", anser.Dialer(network.Dial))
				st := open(t, context.Background(), client, "Chat.Idle")
				say(t, st, "x")
				<-ends
				c.end(st, client, up, s)
				if err := <-ends; !errors.Is(err, c.why) {
					t.Error(err)
				}
				if _, err := st.Recv(); err == nil || err == io.EOF {
					t.Error(err)
				}
				synctest.Wait()
				if n := s.Stats().Streams; n != 0 {
					t.Errorf("%d streams", n)
				}
			})
		})
	}
}

// A stream that its client may no longer have ends on both sides.
func TestForwardedStreamIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		ends := make(chan error, 1)
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Idle": func(ctx context.Context, st *bytesStream) error {
			err := idle(ctx, st)
			ends <- err
			return err
		}})
		p := new(policy)
		p.set("ann Chat.Idle")
		s, _ := forwardTo(t, network, "a:1", anser.Authenticate(new(door)), anser.Authorize(p))
		st := open(t, context.Background(), dial(t, "gw:1", inMemory(network, showing("ann"))...), "Chat.Idle")
		say(t, st, "x")
		time.Sleep(time.Second)
		p.set()
		_, err := st.Recv()
		wantFault(t, err, anser.PermissionDenied, anser.OutcomeUnknown)
		if err := <-ends; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if st := s.Stats(); st.InFlight != 0 || st.CutOff != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// The loss of the server behind ends a stream, and its outcome is unknown.
func TestForwardedStreamIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			p.NextOf(wire.TypeData)
			p.Conn.Close()
		})
		s, _ := forwardTo(t, network, "a:1")
		st := open(t, context.Background(), dial(t, "gw:1", anser.Dialer(network.Dial)), "Chat.Idle")
		say(t, st, "x")
		_, err := st.Recv()
		wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		synctest.Wait()
		if n := s.Stats().InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// Compressed messages are forwarded as they are, also by a server without the algorithm, and
// decompressed for a server that does not have it.
func TestForwardCompressedStreams(t *testing.T) {
	gzip := compress.BuiltIn()[0]
	message := strings.Repeat("compressible ", 10_000)
	for _, c := range []struct {
		name  string
		there bool // the other server has the algorithm
	}{{"forwarded", true}, {"decompressed", false}} {
		t.Run(c.name, func(t *testing.T) {
			network := new(ansertest.Network)
			accepts := func(yes bool) anser.ServerOption {
				if yes {
					return anser.AcceptCompression(gzip)
				}
				return anser.AcceptCompression()
			}
			behind := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk}, accepts(c.there))
			s, _ := forwardTo(t, network, "a:1")
			client := dial(t, "gw:1", anser.Dialer(network.Dial), anser.Compress(gzip, anser.Forced))
			st := open(t, context.Background(), client, "Chat.Talk")
			say(t, st, message, "short")
			hear(t, st, message, "short")
			st.CloseSend()
			hearEnd(t, st)
			if out, err := call(context.Background(), client, "Echo.Say", message); err != nil || out != message {
				t.Error(len(out), err)
			}
			for _, z := range behind.Stats().Compression {
				if z.Packed > 0 && !c.there {
					t.Errorf("%+v", z)
				}
			}
			if n := len(s.Stats().Compression); n != 0 {
				t.Errorf("the server in between has compressed: %+v", s.Stats().Compression)
			}
		})
	}
}

// A server without the algorithm of a message can only forward it.
func TestForwardUnknownCompression(t *testing.T) {
	gzip := compress.BuiltIn()[0]
	packed, err := gzip.Append(nil, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		network := new(ansertest.Network)
		var accepts anser.ServerOption = anser.AcceptCompression()
		if there {
			accepts = anser.AcceptCompression(gzip)
		}
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk}, accepts)
		forwardTo(t, network, "a:1", anser.AcceptCompression())
		p := rawClient(t, network, "gw:1")
		request := wire.Request{Method: 1, Codec: 1, Compression: gzip.ID(), Priority: 2, Payload: packed}
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Chat.Talk"))
		p.Send(wire.AppendRequest(nil, 1, wire.FlagForced, &request))
		f, err := p.NextOf(wire.TypeReply, wire.TypeError)
		if err != nil {
			t.Fatal(err)
		}
		request.Method = 2
		p.Send(wire.AppendRequest(nil, 2, wire.FlagStream, &request))
		g, err := p.NextOf(wire.TypeData, wire.TypeError)
		if err != nil {
			t.Fatal(err)
		}
		if !there {
			for _, f := range []wirepeer.Frame{f, g} {
				if e, err := wire.ParseError(f.Flags, f.Body); err != nil || f.Type != wire.TypeError || e.Code != wire.Unimplemented || e.Outcome != wire.Refused {
					t.Error(f, e, err)
				}
			}
			continue
		}
		r, err := wire.ParseReply(f.Flags, f.Body)
		if err != nil || f.Type != wire.TypeReply || r.Compression != gzip.ID() {
			t.Fatal(f, err)
		}
		if out, err := gzip.Decompress(nil, r.Payload, 100); err != nil || string(out) != "hello" {
			t.Error(out, err)
		}
		if _, _, payload, err := wire.ParseData(g.Body); err != nil || g.Type != wire.TypeData || string(payload) != "hello" {
			t.Error(g, err)
		}
	}
}

// A message over the limit of the server that forwards it ends the stream on both sides.
func TestForwardStreamLimit(t *testing.T) {
	network := new(ansertest.Network)
	behind := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk})
	forwardTo(t, network, "a:1", anser.MaxMessage(50<<10))
	p := rawClient(t, network, "gw:1")
	piece := make([]byte, 16<<10)
	frame := wire.AppendDataHead(nil, 1, wire.FlagMore, 1, 0)
	frame = append(frame, piece...)
	wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
	p.Send(wire.AppendMethod(nil, 1, "Chat.Talk"), wire.AppendRequest(nil, 1, wire.FlagStream, &wire.Request{Method: 1, Codec: 1, Priority: 2}))
	p.Send(frame, frame, frame, frame)
	f, err := p.NextOf(wire.TypeError, wire.TypeEnd)
	if err != nil || f.Type != wire.TypeError {
		t.Fatal(f, err)
	}
	if e, err := wire.ParseError(f.Flags, f.Body); err != nil || e.Code != wire.ResourceExhausted {
		t.Fatal(e, err)
	}
	eventually(t, "the stream has ended there", func() bool { return behind.Stats().Streams == 0 })
}

// A client that ends its side of a forwarded stream just after the other server has ended the
// stream, and before the forwarding server says so, gets the other server's result.
func TestForwardEndAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Quit": func(context.Context, *bytesStream) error { return nil },
		})
		ended, goOn := make(chan error, 1), make(chan struct{})
		forwardTo(t, network, "a:1", anser.Intercept(func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error {
				err := next(ctx, inv)
				ended <- err
				<-goOn
				return err
			}
		}))
		c := dial(t, "gw:1", anser.Dialer(network.Dial))
		st := open(t, context.Background(), c, "Chat.Quit")
		if err := <-ended; err != nil {
			t.Error("the stream was forwarded with", err)
		}
		if err := st.CloseSend(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		close(goOn)
		hearEnd(t, st)
	})
}
