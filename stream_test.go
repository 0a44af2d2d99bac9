package anser_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// bytesStream is a stream of bytes in both directions.
type bytesStream = anser.Stream[[]byte, []byte]

// streamHandler is the handler of a bytesStream.
type streamHandler = func(ctx context.Context, st *bytesStream) error

// talk sends every message back.
func talk(_ context.Context, st *bytesStream) error {
	for msg, err := range st.All() {
		if err == nil {
			err = st.Send(msg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// idle neither sends nor receives until its stream ends.
func idle(ctx context.Context, _ *bytesStream) error {
	<-ctx.Done()
	return ctx.Err()
}

// sink receives until the end.
func sink(_ context.Context, st *bytesStream) error {
	for _, err := range st.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// ended turns io.EOF, the successful end of a stream, into nil.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// serveStreams runs a server with the methods, and with Echo.Say, on l until the test ends.
func serveStreams(t testing.TB, l net.Listener, methods map[string]streamHandler, opts ...anser.ServerOption) *anser.Server {
	t.Helper()
	s := anser.NewServer(append([]anser.ServerOption{silent}, opts...)...)
	anser.Handle(s, "Echo.Say", echo)
	for name, h := range methods {
		if err := anser.HandleStream(s, name, h); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, l)
	return s
}

// open opens a stream of bytes.
func open(t testing.TB, ctx context.Context, c *anser.Client, method string, opts ...anser.CallOption) *bytesStream {
	t.Helper()
	st, err := anser.Open[[]byte, []byte](ctx, c, method, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// say sends the messages.
func say(t testing.TB, st *bytesStream, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := st.Send(text(m)); err != nil {
			t.Fatalf("send %.20q: %v", m, err)
		}
	}
}

// hear receives one message per wanted one and compares them.
func hear(t testing.TB, st *bytesStream, want ...string) {
	t.Helper()
	for _, w := range want {
		got, err := st.Recv()
		if err != nil {
			t.Fatalf("receive %.20q: %v", w, err)
		}
		if string(*got) != w {
			t.Fatalf("received %.20q (%d bytes), want %.20q (%d)", *got, len(*got), w, len(w))
		}
	}
}

// hearEnd fails the test unless the stream has ended successfully.
func hearEnd(t testing.TB, st *bytesStream) {
	t.Helper()
	if msg, err := st.Recv(); err != io.EOF {
		t.Fatalf("received %v, %v; want the end", msg, err)
	}
}

// returned runs f and returns a channel that is closed when it has returned.
func returned(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// over reports whether done is closed.
func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// A stream works the same, over every transport, whichever side sends more than one message.
func TestStreams(t *testing.T) {
	authority := transporttest.NewAuthority(t)
	for name, opts := range map[string]struct {
		server []anser.ServerOption
		dial   []anser.DialOption
	}{
		"tcp": {},
		"tls": {[]anser.ServerOption{serverTLS(t, authority, "127.0.0.1")}, []anser.DialOption{anser.TLS(&tls.Config{RootCAs: authority.Pool})}},
	} {
		t.Run(name, func(t *testing.T) {
			ansertest.CheckLeaks(t)
			l := listen(t)
			serveStreams(t, l, map[string]streamHandler{
				"Chat.Talk": talk,
				"Chat.Join": func(_ context.Context, st *bytesStream) error {
					var all []byte
					for msg, err := range st.All() {
						if err != nil {
							return err
						}
						all = append(all, *msg...)
					}
					return st.Send(&all)
				},
				"Chat.Split": func(_ context.Context, st *bytesStream) error {
					msg, err := st.Recv()
					if err != nil {
						return err
					}
					for _, part := range strings.Split(string(*msg), " ") {
						if err := st.Send(text(part)); err != nil {
							return err
						}
					}
					return nil
				},
			}, opts.server...)
			c := dial(t, l.Addr().String(), opts.dial...)
			ctx := context.Background()

			st := open(t, ctx, c, "Chat.Talk")
			for range 3 {
				say(t, st, "hello")
				hear(t, st, "hello")
			}
			say(t, st, "a", "", "b")
			if err := st.CloseSend(); err != nil {
				t.Fatal(err)
			}
			hear(t, st, "a", "", "b")
			hearEnd(t, st)
			hearEnd(t, st)

			st = open(t, ctx, c, "Chat.Join")
			say(t, st, "a", "b", "c")
			st.CloseSend()
			hear(t, st, "abc")
			hearEnd(t, st)

			st, err := anser.OpenWith[[]byte, []byte](ctx, c, "Chat.Split", text("some more words"))
			if err != nil {
				t.Fatal(err)
			}
			hear(t, st, "some", "more", "words")
			hearEnd(t, st)
		})
	}
}

// The typed forms, with a contract that both sides share.
func TestStreamMethod(t *testing.T) {
	const squares anser.StreamMethod[Args, Reply] = "Arith.Squares"
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	squares.Handle(s, func(ctx context.Context, st *anser.Stream[Reply, Args]) error {
		for in, err := range st.All() {
			if err != nil {
				return err
			}
			if err := st.Send(&Reply{in.A * in.A}); err != nil {
				return err
			}
		}
		return nil
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	st, err := squares.OpenWith(context.Background(), c, &Args{A: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&Args{A: 3}); err != nil {
		t.Fatal(err)
	}
	st.CloseSend()
	var got []int
	for out, err := range st.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, out.C)
	}
	if !slices.Equal(got, []int{4, 9}) {
		t.Error(got)
	}
	st, err = squares.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	st.CloseSend()
	for out, err := range st.All() {
		t.Error(out, err)
	}
}

// An empty message is a message, even as the first one.
func TestEmptyFirstMessage(t *testing.T) {
	network := new(ansertest.Network)
	serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	st, err := anser.OpenWith[[]byte, []byte](context.Background(), c, "Chat.Talk", text(""))
	if err != nil {
		t.Fatal(err)
	}
	st.CloseSend()
	hear(t, st, "")
	hearEnd(t, st)
}

// All ends with the stream, yields an error once, and can be called again after a break.
func TestAll(t *testing.T) {
	network := new(ansertest.Network)
	serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
		"Chat.Fail": func(_ context.Context, st *bytesStream) error {
			for _, m := range []string{"a", "b", "c"} {
				st.Send(text(m))
			}
			return anser.Errorf(anser.NotFound, "no more")
		},
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	st := open(t, context.Background(), c, "Chat.Fail")
	var got []string
	for msg := range st.All() {
		got = append(got, string(*msg))
		break
	}
	for msg, err := range st.All() {
		if err != nil {
			if msg != nil {
				t.Errorf("%q beside the error", *msg)
			}
			got = append(got, anser.CodeOf(err).String())
			continue
		}
		got = append(got, string(*msg))
	}
	if want := []string{"a", "b", "c", "not found"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// RecvInto reuses the memory of the message.
func TestRecvInto(t *testing.T) {
	network := new(ansertest.Network)
	serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	st := open(t, context.Background(), c, "Chat.Talk")
	say(t, st, "long message", "short")
	st.CloseSend()
	msg := make([]byte, 0, 64)
	first := &msg[:1][0]
	for _, want := range []string{"long message", "short"} {
		if err := st.RecvInto(&msg); err != nil || string(msg) != want || &msg[0] != first {
			t.Errorf("%q, %v; want %q in the same memory", msg, err, want)
		}
	}
	if err := st.RecvInto(&msg); err != io.EOF {
		t.Error(err)
	}
}

// The handler's error, metadata and trailers reach the client, and the client's metadata the
// handler.
func TestStreamErrorsAndTrailers(t *testing.T) {
	network := new(ansertest.Network)
	goOn := make(chan struct{})
	s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
		"Chat.Fail": func(ctx context.Context, st *bytesStream) error {
			anser.SetTrailer(ctx, "said", anser.MetadataFrom(ctx).Get("say"))
			st.Send(text("before"))
			return anser.Errorf(anser.Aborted, "stopped at %d", 7).WithDetails([]byte("details")).WithRetryAfter(time.Second)
		},
		"Chat.End": func(ctx context.Context, st *bytesStream) error {
			st.Send(text("before"))
			<-goOn
			return anser.SetTrailer(ctx, "took", "7")
		},
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	ctx := anser.WithMetadata(context.Background(), anser.Metadata{"say": "hello"})
	st := open(t, ctx, c, "Chat.Fail")
	hear(t, st, "before")
	_, err := st.Recv()
	e := wantFault(t, err, anser.Aborted, anser.Executed)
	if e.Message != "stopped at 7" || string(e.Details) != "details" || e.RetryAfter != time.Second || !e.Remote || e.Method != "Chat.Fail" || e.Address != "a:1" {
		t.Errorf("%+v", e)
	}
	if got := st.Trailer(); len(got) != 1 || got["said"] != "hello" {
		t.Error(got)
	}
	if _, again := st.Recv(); again != err {
		t.Errorf("then %v", again)
	}
	if e := st.Send(text("late")); e != err {
		t.Errorf("sending: %v", e)
	}
	if err := st.CloseSend(); err != e {
		t.Errorf("closing: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}

	st = open(t, ctx, c, "Chat.End")
	if got := st.Trailer(); got != nil {
		t.Error("trailers before the end:", got)
	}
	close(goOn)
	hear(t, st, "before")
	hearEnd(t, st)
	if got := st.Trailer(); len(got) != 1 || got["took"] != "7" {
		t.Error(got)
	}
	if err := st.Send(text("late")); err != io.EOF {
		t.Errorf("sending after success: %v", err)
	}
	if err := st.CloseSend(); err != nil {
		t.Error(err)
	}
	if m := s.Stats().Methods; m["Chat.Fail"] != (anser.MethodStats{Calls: 1, Failed: 1}) || m["Chat.End"] != (anser.MethodStats{Calls: 1}) {
		t.Errorf("%+v", m)
	}
}

// Messages of many senders arrive unchanged, however large, and each exactly once.
func TestConcurrentStreamUse(t *testing.T) {
	ansertest.CheckLeaks(t)
	l := listen(t)
	serveStreams(t, l, map[string]streamHandler{"Chat.Talk": talk}, anser.FlowControlWindows(64<<10, 128<<10))
	c := dial(t, l.Addr().String(), anser.FlowControlWindows(32<<10, 64<<10))
	st := open(t, context.Background(), c, "Chat.Talk")
	const senders, messages = 8, 50
	content := func(i, j int) []byte {
		return bytes.Repeat([]byte{byte(i), byte(j)}, 1+(i*7919+j*104729)%50_000)
	}
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for j := range messages {
				msg := content(i, j)
				if err := st.Send(&msg); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var mu sync.Mutex
	seen := make(map[[2]byte]bool)
	for range 3 {
		wg.Go(func() {
			for {
				mu.Lock()
				enough := len(seen) == senders*messages
				mu.Unlock()
				if enough {
					return
				}
				msg, err := st.Recv()
				if err == io.EOF {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				key := [2]byte((*msg)[:2])
				if !bytes.Equal(*msg, content(int(key[0]), int(key[1]))) {
					t.Errorf("a broken message of %v", key)
				}
				mu.Lock()
				if seen[key] {
					t.Errorf("%v came twice", key)
				}
				if seen[key] = true; len(seen) == senders*messages {
					st.CloseSend()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != senders*messages {
		t.Errorf("%d messages, want %d", len(seen), senders*messages)
	}
}
