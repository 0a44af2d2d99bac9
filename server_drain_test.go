package anser_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// However a server ends, its last frame is CLOSE: for a client with a call in flight, for one
// that has sent no request, and for one whose reply is still on its way.
func TestLastWord(t *testing.T) {
	for name, end := range map[string]func(s *anser.Server){
		"Close": func(s *anser.Server) { s.Close() },
		"Shutdown": func(s *anser.Server) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			s.Shutdown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := serve(t, network.Listen("a:1"), map[string]handler{
					"Echo.Say": echo,
					"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
						<-ctx.Done()
						return in, nil
					},
				})
				idle, busy := rawClient(t, network, "a:1"), rawClient(t, network, "a:1")
				busy.Send(wire.AppendMethod(nil, 1, "Echo.Wait"), wire.AppendMethod(nil, 2, "Echo.Say"),
					wirepeer.Request(1, 1, nil), wirepeer.Request(2, 2, nil))
				synctest.Wait()
				go end(s)
				for _, p := range []*wirepeer.Peer{idle, busy} {
					if reason, text, err := p.ReadClose(); reason != wire.Normal || text != "the server is closed" || err != nil {
						t.Error(reason, text, err)
					}
					p.Close()
				}
				synctest.Wait()
				if st := s.Stats(); st.Conns != 0 || len(st.Closed) != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// DRAIN announces no grace when the time to shut down is over.
func TestDrainWithoutGrace(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		p := rawClient(t, network, "a:1")
		go s.Shutdown(late{context.Background()})
		f, err := p.Next()
		if f.Type != wire.TypeDrain || err != nil {
			t.Fatal(f.Type, err)
		}
		if grace, _ := wire.ParseDrain(f.Body); grace != 0 {
			t.Errorf("a grace of %d ms", grace)
		}
		p.Send(wire.AppendDrain(nil, wire.FlagAck, 0))
		p.ReadClose()
		p.Close()
	})
}

// A connection whose handshake ends as the server shuts down gets the same grace as the others.
func TestDrainAsAHandshakeEnds(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := &stoppingListener{Listener: network.Listen("a:1"), closed: make(chan struct{})}
		s := anser.NewServer(silent)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		down := make(chan error, 1)
		l.greeting = func() {
			go func() { down <- s.Shutdown(ctx) }()
			<-l.closed
		}
		run(t, s, l)
		p := rawClient(t, network, "a:1")
		f, err := p.Next()
		if f.Type != wire.TypeDrain || err != nil {
			t.Fatal(f.Type, err)
		}
		if grace, _ := wire.ParseDrain(f.Body); grace != 5000 {
			t.Errorf("a grace of %d ms, want 5000", grace)
		}
		p.Send(wire.AppendDrain(nil, wire.FlagAck, 0))
		p.ReadClose()
		p.Close()
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

// late is a context whose deadline has passed and whose timer has not fired yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Minute), true }

// A handler that goes on although its context has ended does not block Close forever.
func TestCloseWithAHandlerThatDoesNotReturn(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := anser.NewServer(silent)
				anser.Handle(s, "Echo.Stubborn", func(ctx context.Context, in *[]byte) (*[]byte, error) {
					time.Sleep(time.Minute)
					return in, nil
				}, opt)
				run(t, s, network.Listen("a:1"))
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				reply := anser.Go[[]byte](context.Background(), c, "Echo.Stubborn", text(""), anser.Timeout(0))
				time.Sleep(time.Second)
				began := time.Now()
				if err := s.Close(); err == nil || !strings.Contains(err.Error(), "handlers are still running") {
					t.Error(err)
				}
				if d := time.Since(began); d > 2*time.Second {
					t.Errorf("Close took %v", d)
				}
				_, err := reply.Wait()
				wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
				time.Sleep(time.Minute)
			})
		})
	}
}

// A client that does not answer DRAIN, or does not read at all, does not delay other clients.
func TestShutdownWithADeafClient(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		deaf := rawClient(t, network, "a:1")
		synctest.Wait() // the server has it among its connections
		good := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		if _, err := call(context.Background(), good, "Echo.Say", ""); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(ctx) }()
		time.Sleep(time.Second)
		if n := conns(s); n != 1 {
			t.Errorf("%d connections, want the deaf client's alone", n)
		}
		if err := <-down; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if f, err := deaf.Next(); f.Type != wire.TypeDrain || err != nil {
			t.Error(f.Type, err)
		} else if grace, _ := wire.ParseDrain(f.Body); grace != 5000 {
			t.Errorf("a grace of %d ms", grace)
		}
	})
}

// A client announces that it makes no further call: the server finishes the open calls, and
// closes the connection.
func TestDrainFromAClient(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Slow": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(time.Second)
			return in, nil
		}})
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Slow"), wirepeer.Request(1, 1, []byte("hello")), wire.AppendDrain(nil, 0, 0))
		if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
			t.Fatal(f.Type, err)
		}
		if reason, _, err := p.ReadClose(); reason != wire.Normal || err != nil {
			t.Fatal(reason, err)
		}
		p.Close()
		synctest.Wait()
		if st := s.Stats(); st.Conns != 0 || len(st.Closed) != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A call that a client makes after it announced that it makes none does not run: the connection
// ends as soon as no call is open, and the reply would be lost.
func TestCallAfterADrainFromAClient(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendDrain(nil, 0, 0), wirepeer.Request(1, 1, nil))
		f, err := p.Next()
		if f.Type != wire.TypeError || err != nil {
			t.Fatal(f.Type, err)
		}
		if e, _ := wire.ParseError(f.Flags, f.Body); e.Code != wire.Unavailable || e.Outcome != wire.Refused {
			t.Errorf("%+v", e)
		}
		if reason, _, err := p.ReadClose(); reason != wire.Normal || err != nil {
			t.Fatal(reason, err)
		}
		if n := s.Stats().Methods["Echo.Say"].Calls; n != 0 {
			t.Errorf("%d calls ran", n)
		}
	})
}

// An ACK without a DRAIN has no effect.
func TestAckWithoutADrain(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendDrain(nil, wire.FlagAck, 0))
		synctest.Wait()
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wirepeer.Request(1, 1, nil))
		if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
			t.Fatal(f.Type, err)
		}
		go s.Shutdown(context.Background())
		if f, err := p.Next(); f.Type != wire.TypeDrain || err != nil {
			t.Fatal(f.Type, err)
		}
		p.Send(wire.AppendDrain(nil, wire.FlagAck, 0))
		if reason, _, err := p.ReadClose(); reason != wire.Normal || err != nil {
			t.Fatal(reason, err)
		}
		p.Close()
	})
}

// After its ACK a client must not call; calls that crossed the DRAIN are served.
func TestCallsAroundADrain(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		s := serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": echo,
			"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				<-release
				return in, nil
			},
		})
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Wait"), wire.AppendMethod(nil, 2, "Echo.Say"), wirepeer.Request(1, 1, nil))
		synctest.Wait()
		go s.Shutdown(context.Background())
		if f, err := p.Next(); f.Type != wire.TypeDrain || err != nil {
			t.Fatal(f.Type, err)
		}
		p.Send(wirepeer.Request(2, 2, nil)) // it crossed the DRAIN
		if f, err := p.Next(); f.Type != wire.TypeReply || f.ID != 2 || err != nil {
			t.Fatal(f.Type, f.ID, err)
		}
		p.Send(wire.AppendDrain(nil, wire.FlagAck, 0), wirepeer.Request(3, 2, nil))
		f, err := p.Next()
		if f.Type != wire.TypeError || f.ID != 3 || err != nil {
			t.Fatal(f.Type, f.ID, err)
		}
		if e, _ := wire.ParseError(f.Flags, f.Body); e.Code != wire.Unavailable || e.Outcome != wire.Refused {
			t.Errorf("%+v", e)
		}
		close(release)
		if f, err := p.Next(); f.Type != wire.TypeReply || f.ID != 1 || err != nil {
			t.Fatal(f.Type, f.ID, err)
		}
		if reason, _, err := p.ReadClose(); reason != wire.Normal || err != nil {
			t.Fatal(reason, err)
		}
		p.Close()
	})
}

// Restarting the servers of a service one after the other, under load, fails no call.
func TestRollingRestart(t *testing.T) {
	ansertest.CheckLeaks(t)
	m := registry.NewMemory()
	defer m.Close()
	begin := func(address string) *anser.Server {
		s := anser.NewServer(silent, anser.Announce(m, registry.Instance{Service: "echo"}))
		anser.Handle(s, "Echo.Say", echo)
		anser.Handle(s, "Echo.Slow", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(5 * time.Millisecond)
			return in, nil
		})
		l, err := s.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		go s.Serve(l)
		eventually(t, "the server listens", func() bool { return len(s.Addrs()) == 1 })
		return s
	}
	all := make([]*anser.Server, 3)
	for i := range all {
		all[i] = begin(servers.Address(t)) // which no other process takes while it is restarted
	}
	stop := make(chan struct{})
	var calls, failed atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			c := dial(t, "memory:///echo", m.Scheme("memory"))
			method := []string{"Echo.Say", "Echo.Slow"}[g%2]
			for {
				select {
				case <-stop:
					c.Close()
					return
				default:
				}
				if _, err := call(context.Background(), c, method, "hello"); err != nil {
					failed.Add(1)
					t.Error(err)
				}
				calls.Add(1)
			}
		})
	}
	for round := range 5 {
		for i, s := range all {
			address := s.Addrs()[0].String()
			before := calls.Load()
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			all[i] = begin(address)
			eventually(t, "calls go on", func() bool { return calls.Load() > before+50 })
		}
		if failed.Load() > 0 {
			t.Fatalf("%d of %d calls failed by round %d", failed.Load(), calls.Load(), round)
		}
	}
	close(stop)
	wg.Wait()
	for _, s := range all {
		s.Close()
	}
}
