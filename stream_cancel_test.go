package anser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/wire"
)

// Half-closing ends one direction only.
func TestCloseSend(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		goOn := make(chan struct{})
		var sendErr error
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Late": func(_ context.Context, st *bytesStream) error {
				if _, err := st.Recv(); err != io.EOF {
					return fmt.Errorf("%w instead of the end", err)
				}
				<-goOn
				sendErr = st.Send(text("late"))
				return nil
			},
			"Chat.Self": func(_ context.Context, st *bytesStream) error {
				return errors.Join(st.CloseSend(), st.Close())
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		st := open(t, context.Background(), c, "Chat.Late")
		for range 2 {
			if err := st.CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
		err := st.Send(text("more"))
		if e := fault(t, err); e.Code != anser.FailedPrecondition || !strings.Contains(e.Message, "CloseSend was called") {
			t.Error(err)
		}
		synctest.Wait()
		close(goOn)
		hear(t, st, "late")
		hearEnd(t, st)
		if sendErr != nil {
			t.Error(sendErr)
		}

		st = open(t, context.Background(), c, "Chat.Self")
		_, err = st.Recv()
		if e := fault(t, err); e.Code != anser.FailedPrecondition || strings.Count(e.Message, "by returning") != 2 {
			t.Error(err)
		}
	})
}

// A client that ends a stream ends the calls that wait on it, and the handler with its calls that
// wait.
func TestCancelStream(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(st *bytesStream, cancel context.CancelFunc, c *anser.Client)
		opts []anser.CallOption
		code anser.Code
	}{
		"close":   {end: func(st *bytesStream, _ context.CancelFunc, _ *anser.Client) { st.Close() }, code: anser.Canceled},
		"context": {end: func(_ *bytesStream, cancel context.CancelFunc, _ *anser.Client) { cancel() }, code: anser.Canceled},
		"client":  {end: func(_ *bytesStream, _ context.CancelFunc, c *anser.Client) { c.Close() }, code: anser.Canceled},
		"timeout": {
			end:  func(*bytesStream, context.CancelFunc, *anser.Client) { time.Sleep(time.Minute) },
			opts: []anser.CallOption{anser.Timeout(30 * time.Second)}, code: anser.DeadlineExceeded,
		},
	} {
		for _, flooding := range []string{"client", "handler"} {
			t.Run(name+" while the "+flooding+" floods", func(t *testing.T) {
				bubble(t, func(t *testing.T, network *ansertest.Network) {
					handler := make(chan error, 3)
					s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
						"Chat.Hang": func(ctx context.Context, st *bytesStream) error {
							var err error
							if flooding == "handler" {
								err = flood(st)
							} else {
								<-ctx.Done()
								err = flood(st)
							}
							handler <- err
							for err = nil; err == nil; { // messages that had arrived may come first
								_, err = st.Recv()
							}
							handler <- err
							<-ctx.Done()
							handler <- ctx.Err()
							return err
						},
					})
					client := dial(t, "a:1", anser.Dialer(network.Dial))
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					st := open(t, ctx, client, "Chat.Hang", c.opts...)
					var sendErr, recvErr error
					waiting := returned(func() {
						if flooding == "client" {
							sendErr = flood(st)
						} else {
							<-st.Context().Done()
							sendErr = flood(st)
						}
					})
					receiving := returned(func() {
						if flooding == "handler" {
							<-st.Context().Done()
						}
						for recvErr == nil { // messages that had arrived may come first
							_, recvErr = st.Recv()
						}
					})
					synctest.Wait()
					if over(waiting) || over(receiving) || len(handler) > 0 {
						t.Fatal("nobody waits")
					}
					began := time.Now()
					c.end(st, cancel, client)
					<-waiting
					<-receiving
					for _, err := range []error{sendErr, recvErr} {
						outcome := anser.OutcomeUnknown
						if e := fault(t, err); e.Remote && name == "timeout" {
							outcome = anser.Executed // the handler's deadline passes at the same moment
						}
						if e := wantFault(t, err, c.code, outcome); e.Method != "Chat.Hang" || e.Address != "a:1" || e.Remote != (outcome == anser.Executed) {
							t.Errorf("%+v", e)
						}
					}
					if d := time.Since(began); d > time.Minute {
						t.Error("it took", d)
					}
					for range 2 {
						err := <-handler
						// When the client is closed, its connection is closed too.
						if code := anser.CodeOf(err); code != c.code && (name != "client" || code != anser.Unavailable) {
							t.Errorf("the handler got %v", err)
						}
					}
					if err := <-handler; anser.CodeOf(err) != c.code {
						t.Error("the handler's context:", err)
					}
					synctest.Wait()
					if st := s.Stats(); st.Streams != 0 || st.InFlight != 0 {
						t.Errorf("%+v", st)
					}
				})
			})
		}
	}
}

// flood sends until Send fails.
func flood(st *bytesStream) error {
	msg := make([]byte, 10_000)
	for {
		if err := st.Send(&msg); err != nil {
			return err
		}
	}
}

// A client that stops to range and cancels its context leaks nothing, and what it did not receive
// takes no credit from other streams on its connection.
func TestLeaveStream(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Flood": func(_ context.Context, st *bytesStream) error { return flood(st) },
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		for range 20 { // five times the connection's window
			ctx, cancel := context.WithCancel(context.Background())
			st := open(t, ctx, c, "Chat.Flood")
			synctest.Wait() // the stream's window is full
			for range st.All() {
				break
			}
			cancel()
			synctest.Wait()
		}
		if st := s.Stats(); st.Streams != 0 || st.Conns != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// The end of a handler's context ends its Send and Recv, and a goroutine that outlives the handler
// sees that the stream is over.
func TestAfterTheHandler(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var left *bytesStream
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Quit": func(_ context.Context, st *bytesStream) error {
				left = st
				return nil
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		st := open(t, context.Background(), c, "Chat.Quit")
		hearEnd(t, st)
		synctest.Wait()
		if err := left.Send(text("late")); anser.CodeOf(err) != anser.FailedPrecondition {
			t.Error(err)
		}
		if _, err := left.Recv(); anser.CodeOf(err) != anser.FailedPrecondition {
			t.Error(err)
		}
		if left.Context().Err() == nil {
			t.Error("its context goes on")
		}
		hearEnd(t, st)
	})
}

// A stream whose context has ended before CloseSend is cancelled, and never succeeds.
func TestCloseSendAfterCancel(t *testing.T) {
	l := listen(t)
	serveStreams(t, l, map[string]streamHandler{
		"Chat.Count": func(_ context.Context, st *bytesStream) error {
			for {
				if _, err := st.Recv(); err == io.EOF {
					return nil
				} else if err != nil {
					return err
				}
			}
		},
	})
	c := dial(t, l.Addr().String())
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		st := open(t, ctx, c, "Chat.Count")
		cancel()
		st.CloseSend()
		if _, err := st.Recv(); anser.CodeOf(err) != anser.Canceled {
			t.Fatalf("the stream ends with %v", err)
		}
	}
}

// A client that ends its side after the handler's context has ended does nothing wrong: until the
// handler returns, the client cannot know. The handler's result ends the stream.
func TestEndAfterTheHandlersDeadline(t *testing.T) {
	last := wire.AppendEnd(nil, 1, nil)
	for name, frames := range map[string]struct{ before, after [][]byte }{
		"between messages": {nil, [][]byte{last}},
		"inside a message": {[][]byte{dataFrame(1, wire.FlagMore, []byte("a"))}, [][]byte{dataFrame(1, 0, []byte("b")), last}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				stopped, goOn := make(chan error, 1), make(chan struct{})
				s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Slow": func(_ context.Context, st *bytesStream) error {
					_, err := st.Recv()
					stopped <- err
					<-goOn
					return anser.Errorf(anser.Aborted, "the handler's own error")
				}}, anser.Intercept(briefly))
				p := rawClient(t, network, "a:1")
				p.Send(append([][]byte{wire.AppendMethod(nil, 1, "Chat.Slow"), openRequest(1, 1, nil)}, frames.before...)...)
				wantFault(t, <-stopped, anser.DeadlineExceeded, anser.OutcomeUnknown)
				p.Send(frames.after...)
				synctest.Wait()
				if n := s.Stats().Streams; n != 1 {
					t.Errorf("%d streams are open while the handler runs", n)
				}
				close(goOn)
				f, err := p.Next()
				if err != nil || f.Type != wire.TypeError || f.ID != 1 {
					t.Fatal(f.Type, f.ID, err)
				}
				if e, err := wire.ParseError(f.Flags, f.Body); e.Message != "the handler's own error" || err != nil {
					t.Errorf("%+v, %v", e, err)
				}
				if n := s.Unread(); n != 0 {
					t.Errorf("%d bytes of credit are missing", n)
				}
			})
		})
	}
}

// briefly gives handlers a context that ends after a second.
func briefly(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return next(ctx, inv)
	}
}
