package anser_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

const logWrite anser.OnewayMethod[[]byte] = "Log.Write"

func TestOneway(t *testing.T) {
	l := listen(t)
	s := anser.NewServer(silent)
	got := make(chan string, 10)
	logWrite.Handle(s, func(ctx context.Context, in *[]byte) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the context has no deadline")
		}
		got <- string(*in) + anser.MetadataFrom(ctx).Get("who")
		return errors.New("goes nowhere")
	})
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) {
		got <- "say " + string(*in)
		return in, nil
	}, anser.Concurrent())
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Conns(1))
	ctx := anser.WithMetadata(context.Background(), anser.Metadata{"who": "!"})
	if err := logWrite.Send(ctx, c, text("hello")); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "hello!" {
		t.Error(s)
	}
	if err := anser.Send(ctx, c, "Echo.Say", text("you")); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "say you" {
		t.Error(s)
	}
	_, err := call(ctx, c, "Log.Write", "hello")
	wantFault(t, err, anser.Unimplemented, anser.Refused)
	eventually(t, "the failed call is counted", func() bool {
		m := s.Stats().Methods["Log.Write"]
		return m.Calls == 2 && m.Failed == 2
	})
	if st := c.Status().Instances[0]; st.Active != 0 {
		t.Errorf("%d calls are active", st.Active)
	}
}

// A oneway call that is refused is counted by the server, and nothing is sent.
func TestOnewayRefusedIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		s := anser.NewServer(silent, anser.MaxInFlight(1))
		anser.Handle(s, "Log.Write", func(context.Context, *[]byte) (*[]byte, error) {
			<-release
			return nil, errors.New("late")
		}, anser.Concurrent())
		run(t, s, network.Listen("a:1"))
		p := rawClient(t, network, "a:1")
		oneway := func(id uint64, method uint32, codec uint8) []byte {
			f := wire.AppendRequest(nil, id, wire.FlagOneway, &wire.Request{Method: method, Codec: codec})
			wire.PutLength(f, uint32(len(f)-wire.HeaderSize))
			return f
		}
		p.Send(wire.AppendMethod(nil, 1, "Log.Write"), wire.AppendMethod(nil, 2, "No.Such"),
			oneway(1, 1, 1),  // runs
			oneway(2, 1, 1),  // over the limit
			oneway(3, 2, 1),  // no such method
			oneway(4, 1, 99), // no such codec
			wire.AppendPing(nil, wire.TypePing, 7))
		if f, err := p.Next(); err != nil || f.Type != wire.TypePong {
			t.Fatalf("%v %v: want the answer to the ping and nothing else", f, err)
		}
		synctest.Wait()
		if st := s.Stats(); st.Refused != 3 || st.InFlight != 1 || st.Methods["Log.Write"].Calls != 1 {
			t.Errorf("%+v", st)
		}
		close(release)
		synctest.Wait()
		p.Send(wire.AppendPing(nil, wire.TypePing, 8))
		if f, err := p.Next(); err != nil || f.Type != wire.TypePong {
			t.Fatalf("%v %v: want the answer to the ping and nothing else", f, err)
		}
	})
}

// An unsent message is tried elsewhere, and one that cannot be sent is an error.
func TestOnewayNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var got atomic.Int64
		s := anser.NewServer(silent)
		logWrite.Handle(s, func(context.Context, *[]byte) error { got.Add(1); return nil })
		run(t, s, network.Listen("b:1"))
		c := dial(t, "nobody:1,b:1", anser.Dialer(network.Dial))
		for range 20 {
			if err := logWrite.Send(context.Background(), c, text("")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := got.Load(); n != 20 {
			t.Errorf("%d of 20 messages have arrived", n)
		}
		alone := dial(t, "nobody:1", anser.Dialer(network.Dial))
		err := logWrite.Send(context.Background(), alone, text(""), anser.Timeout(time.Second))
		if e := fault(t, err); e.Outcome != anser.NotSent || e.Method != "Log.Write" {
			t.Error(e)
		}
		err = anser.Send(context.Background(), c, "Log.Write", new(chan int))
		wantFault(t, err, anser.InvalidArgument, anser.NotSent)
	})
}

// A message that was handed to a connection is never sent again, even if the connection is lost.
func TestOnewayIsNeverSentTwice(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var got atomic.Int64
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			for {
				f, err := p.NextOf(wire.TypeRequest)
				if err != nil {
					return
				}
				if f.Flags&wire.FlagOneway == 0 {
					t.Error("the request is not oneway")
				}
				got.Add(1)
				p.Close() // the message may have run, but its outcome is unknown
			}
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Idempotent(), anser.Conns(1))
		for i := range 5 {
			if err := logWrite.Send(context.Background(), c, text("")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second) // the next message gets a connection of its own
			if n := got.Load(); n != int64(i+1) {
				t.Fatalf("%d messages have arrived, %d were sent", n, i+1)
			}
		}
	})
}

// Send blocks while the server does not read what was sent before.
func TestOnewayWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		read := make(chan struct{})
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			<-read
			io.Copy(io.Discard, p)
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		message := make([]byte, 64<<10)
		var err error
		sent := 0
		for ; err == nil && sent < 1000; sent++ {
			err = anser.Send(context.Background(), c, "Log.Write", &message, anser.Timeout(time.Second))
		}
		wantFault(t, err, anser.DeadlineExceeded, anser.NotSent)
		if bytes := sent * len(message); bytes > 8<<20 {
			t.Errorf("%d bytes were taken by a connection that nobody reads", bytes)
		}
		close(read)
		synctest.Wait()
		if err := anser.Send(context.Background(), c, "Log.Write", &message); err != nil {
			t.Error(err)
		}
	})
}

// A draining server lets the oneway calls finish that it has accepted.
func TestDrainWaitsForOneways(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var finished atomic.Int64
				s := anser.NewServer(silent)
				logWrite.Handle(s, func(ctx context.Context, _ *[]byte) error {
					select {
					case <-time.After(time.Second):
						finished.Add(1)
					case <-ctx.Done():
					}
					return nil
				}, opt)
				run(t, s, network.Listen("a:1"))
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				if err := logWrite.Send(context.Background(), c, text("")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if err := s.Shutdown(ctx); err != nil || finished.Load() != 1 {
					t.Errorf("%v, and %d messages were finished", err, finished.Load())
				}
			})
		})
	}
}

func TestOnewayThroughInterceptors(t *testing.T) {
	l := listen(t)
	got := make(chan bool, 2)
	look := func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			if inv.Oneway {
				got <- inv.Server
			}
			return next(ctx, inv)
		}
	}
	s := anser.NewServer(silent, anser.Intercept(look))
	logWrite.Handle(s, func(context.Context, *[]byte) error { return nil })
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Intercept(look))
	if err := logWrite.Send(context.Background(), c, text("")); err != nil {
		t.Fatal(err)
	}
	if first, second := <-got, <-got; first || !second {
		t.Error(first, second)
	}
}

// BenchmarkSend sends messages of 64 bytes from one goroutine, and waits at the end until all have
// arrived.
func BenchmarkSend(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var got atomic.Int64
	s := anser.NewServer(silent)
	logWrite.Handle(s, func(context.Context, *[]byte) error { got.Add(1); return nil })
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String(), anser.Conns(1))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	payload := make([]byte, 64)
	n := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		if err := logWrite.Send(context.Background(), c, &payload); err != nil {
			b.Fatal(err)
		}
		n++
	}
	for got.Load() < n {
		time.Sleep(time.Millisecond)
	}
}
