package anser_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// Connections without a call are not checked, on either side, except for their pings.
func TestQuietConnectionsNeedNoMaintenance(t *testing.T) {
	const conns = 100
	for name, test := range map[string]struct {
		idle time.Duration // before a ping
		most uint64        // runs of a connection on one side in ten minutes
	}{
		"without pings": {time.Hour, 0},
		"with pings":    {30 * time.Second, 20 * 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var servers []*anser.Server
				var addresses []string
				for i := range conns {
					addresses = append(addresses, fmt.Sprintf("a:%d", i+1))
					servers = append(servers, serve(t, network.Listen(addresses[i]), map[string]handler{"Echo.Say": echo}, anser.Keepalive(test.idle, 10*time.Second)))
				}
				c := dial(t, strings.Join(addresses, ","), anser.Dialer(network.Dial), anser.Conns(1), anser.Balancer(balance.RoundRobin()), anser.Keepalive(test.idle, 10*time.Second))
				for range 3 {
					callsInTurn(t, c, 4*conns)
				}
				quietFor(t, c, servers, test.most*conns)
			})
		})
	}
}

// quietFor fails the test if the maintenance does more than it may in ten minutes, on either side.
func quietFor(t *testing.T, c *anser.Client, servers []*anser.Server, most uint64) {
	t.Helper()
	runs := func() (client, server uint64) {
		synctest.Wait()
		for _, s := range servers {
			server += s.MaintenanceRuns()
		}
		return c.MaintenanceRuns(), server
	}
	time.Sleep(5 * time.Second)
	clientBefore, serverBefore := runs()
	if clientBefore == 0 || serverBefore == 0 {
		t.Fatalf("the maintenance never ran: %d times on the client, %d on the server", clientBefore, serverBefore)
	}
	time.Sleep(10 * time.Minute)
	client, server := runs()
	if client -= clientBefore; client > most {
		t.Errorf("the maintenance of the client ran %d times in ten minutes, want at most %d", client, most)
	}
	if server -= serverBefore; server > most {
		t.Errorf("the maintenance of the server ran %d times in ten minutes, want at most %d", server, most)
	}
}

// The same for one server with many clients, after work of all kinds: workers, large messages, and
// streams, which stay open.
func TestQuietServerNeedsNoMaintenance(t *testing.T) {
	const conns = 100
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent, anser.Keepalive(time.Hour, 10*time.Second))
		anser.Handle(s, "Echo.Say", echo, anser.Concurrent())
		anser.HandleStream(s, "Echo.Talk", sink)
		run(t, s, network.Listen("a:1"))
		for range conns {
			p := rawClient(t, network, "a:1")
			p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wirepeer.Request(1, 1, make([]byte, 20<<10)))
			if _, err := p.NextOf(wire.TypeReply); err != nil {
				t.Fatal(err)
			}
		}
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Keepalive(time.Hour, 10*time.Second))
		for range 10 {
			st := open(t, t.Context(), c, "Echo.Talk")
			for range 100 {
				say(t, st, strings.Repeat("x", 10<<10))
			}
		}
		time.Sleep(10 * time.Second) // half of the workers end with every second
		quietFor(t, c, []*anser.Server{s}, 0)
	})
}

// A ping is sent within 0.2 s of its time, and a connection without an answer is closed as
// precisely.
func TestKeepaliveIsInTime(t *testing.T) {
	const exact = 200 * time.Millisecond
	watch := func(t *testing.T, side string, p *wirepeer.Peer) {
		began := time.Now()
		for i, frame := range []wire.Type{wire.TypePing, wire.TypeClose} {
			want := []time.Duration{30 * time.Second, 40 * time.Second}[i]
			if _, err := p.NextOf(frame); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d < want || d > want+time.Duration(i+1)*exact {
				t.Errorf("%s: %v after %v, want %v", side, frame, d, want)
			}
		}
	}
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		p := rawClient(t, network, "a:1")
		time.Sleep(7 * time.Second)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
		watch(t, "server", p)
	})
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		over := make(chan struct{})
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			defer close(over)
			for range 2 {
				f, err := p.NextOf(wire.TypeRequest)
				if err != nil {
					return
				}
				p.Send(wirepeer.Reply(f.ID, []byte("ok")))
			}
			watch(t, "client", p)
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		for range 2 {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
			time.Sleep(7 * time.Second)
		}
		<-over
	})
}

// An instance that stops answering is ejected within 2.8 s, under load and by the first call
// after a long silence, and again after it had come back.
func TestSilenceIsFoundInTime(t *testing.T) {
	const within = 2800 * time.Millisecond // 2.7 s, and 0.1 s until the check of the cluster
	for _, test := range []struct {
		name  string
		pause time.Duration // between two calls
		quiet time.Duration // without calls, before
	}{
		{"under load", time.Millisecond, 0},
		{"few calls", 300 * time.Millisecond, 0},
		{"after silence", 100 * time.Millisecond, 10 * time.Minute},
		{"just before a ping", 100 * time.Millisecond, 29500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				w := newWard(t, network, 3, anser.WithFailMode(anser.Failover))
				a := w.who["a:1"].stall.Load()
				var moved []*anser.Future[[]byte]
				for round := range 2 {
					time.Sleep(10 * time.Second) // between two pings of an instance
					for range 20 {
						w.call(workMethod, 1)
						time.Sleep(test.pause)
					}
					time.Sleep(test.quiet)
					a.Stall()
					began := time.Now()
					for w.status("a:1").Ejected == "" {
						moved = append(moved, anser.Go[[]byte](context.Background(), w.client, workMethod, text(""), anser.Idempotent(), anser.Timeout(time.Minute)))
						time.Sleep(test.pause)
						if d := time.Since(began); d > within+3*test.pause { // one call in three goes there
							t.Fatalf("round %d: silence was not found within %v", round, d)
						}
					}
					a.Resume()
					for _, f := range moved {
						if _, err := f.Wait(); err != nil {
							t.Error(err)
						}
					}
					moved = nil
					time.Sleep(3 * time.Second)
					if s := w.status("a:1"); s.Ejected != "" {
						t.Fatalf("round %d: %+v after it was back", round, s)
					}
				}
			})
		})
	}
}

// A part of a frame that arrives on a connection without maintenance under way wakes its
// maintenance: the rest must arrive in time.
func TestPartOfAFrameWakesAConnection(t *testing.T) {
	for name, test := range map[string]struct {
		opt  anser.Option
		want time.Duration
		says string
	}{
		"read timeout": {anser.ReadTimeout(3 * time.Second), 3 * time.Second, "anser.ReadTimeout"},
		"slow frame":   {anser.WriteStall(5 * time.Second), 5 * time.Second, "anser.WriteStall"},
	} {
		t.Run(name, func(t *testing.T) {
			feed := func(side string, p *wirepeer.Peer, frame []byte) {
				time.Sleep(10 * time.Second)
				began := time.Now()
				p.Send(frame[:len(frame)/2])
				for {
					f, err := p.NextOf(wire.TypePing, wire.TypeClose)
					if err != nil {
						t.Error(side, err)
						return
					}
					if f.Type == wire.TypePing {
						continue
					}
					reason, text, err := wire.ParseClose(f.Body)
					if reason != wire.Timeout || !strings.Contains(text, test.says) || err != nil {
						t.Errorf("%s: CLOSE with %v %q, %v", side, reason, text, err)
					}
					break
				}
				if d := time.Since(began); d < test.want || d > test.want+1200*time.Millisecond {
					t.Errorf("%s: closed after %v, want about %v", side, d, test.want)
				}
			}
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, test.opt)
				p := rawClient(t, network, "a:1")
				p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
				feed("server", p, wirepeer.Request(1, 1, make([]byte, 100)))
			})
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				over := make(chan struct{})
				rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
					defer close(over)
					f, err := p.NextOf(wire.TypeRequest)
					if err != nil {
						return
					}
					p.Send(wirepeer.Reply(f.ID, []byte("ok")))
					feed("client", p, wire.AppendPing(nil, wire.TypePing, 1))
				})
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), test.opt)
				if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
					t.Fatal(err)
				}
				<-over
			})
		})
	}
}

// A stream that is open for long delays the idle timeout of its connection, which begins when the
// stream ends.
func TestIdleTimeoutAfterAStream(t *testing.T) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var client []anser.DialOption
				var server []anser.ServerOption
				if side == "client" {
					client = append(client, anser.IdleTimeout(time.Minute))
				} else {
					server = append(server, anser.IdleTimeout(time.Minute))
				}
				s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Echo.Talk": talk}, server...)
				c := dial(t, "a:1", append(client, anser.Dialer(network.Dial), anser.Conns(1))...)
				for range 2 {
					st := open(t, t.Context(), c, "Echo.Talk")
					say(t, st, "hello")
					hear(t, st, "hello")
					time.Sleep(10 * time.Minute)
					if n := s.Stats().Conns; n != 1 {
						t.Fatalf("%d connections while a stream is open", n)
					}
					if err := st.CloseSend(); err != nil {
						t.Fatal(err)
					}
					hearEnd(t, st)
					began := time.Now()
					for s.Stats().Conns == 1 && time.Since(began) < 5*time.Minute {
						time.Sleep(100 * time.Millisecond)
					}
					about(t, "closed", time.Since(began), time.Minute)
				}
			})
		})
	}
}
