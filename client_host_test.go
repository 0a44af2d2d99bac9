package anser_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// However many calls begin at once, the number of connections is that of the option.
func TestConnsUnderLoad(t *testing.T) {
	for range 100 {
		network := new(ansertest.Network)
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 10 {
					if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		c.Close()
		if n := s.Stats().Accepted; n > 2 {
			t.Fatalf("%d connections, want 2 at most", n)
		}
		s.Close()
	}
}

// Clients of one process with the same options share the connections to an address, and the last
// one to be closed closes them.
func TestClientsShareConnections(t *testing.T) {
	ansertest.CheckLeaks(t)
	l := listen(t)
	s := serve(t, l, map[string]handler{"Echo.Say": echo})
	first, second := dial(t, l.Addr().String(), anser.Conns(1)), dial(t, l.Addr().String(), anser.Conns(1))
	other := dial(t, l.Addr().String(), anser.Conns(1), anser.Keepalive(time.Minute, time.Minute))
	for range 10 {
		for _, c := range []*anser.Client{first, second, other} {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := s.Stats().Accepted; n != 2 {
		t.Errorf("%d connections for two clients that share and one that differs, want 2", n)
	}
	first.Close()
	other.Close()
	if _, err := call(context.Background(), second, "Echo.Say", ""); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Accepted != 2 {
		t.Errorf("closing one client cost the other its connection: %d were made", st.Accepted)
	}
	second.Close()
	eventually(t, "all connections are closed", func() bool { return conns(s) == 0 })
	third := dial(t, l.Addr().String())
	if _, err := call(context.Background(), third, "Echo.Say", ""); err != nil {
		t.Fatal(err)
	}
}

// Clients with different numbers of connections share the larger number.
func TestClientsShareTheLargestNumberOfConnections(t *testing.T) {
	l := listen(t)
	inside, release := make(chan struct{}), make(chan struct{})
	s := serve(t, l, map[string]handler{"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		inside <- struct{}{}
		<-release
		return in, nil
	}})
	one := dial(t, l.Addr().String(), anser.Conns(1), anser.Timeout(patience))
	_ = dial(t, l.Addr().String(), anser.Conns(3), anser.Timeout(patience))
	var calls []*anser.Future[[]byte]
	for want := 1; want <= 3; want++ {
		calls = append(calls, anser.Go[[]byte](context.Background(), one, "Echo.Wait", text("")))
		<-inside
		eventually(t, "a further connection", func() bool {
			if conns(s) < want {
				calls = append(calls, anser.Go[[]byte](context.Background(), one, "Echo.Wait", text("")))
				<-inside
			}
			return conns(s) >= want
		})
	}
	close(release)
	for _, f := range calls {
		if _, err := f.Wait(); err != nil {
			t.Error(err)
		}
	}
	if n := s.Stats().Accepted; n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// A client makes more connections when the existing ones are saturated, up to eight, and closes
// them when they have been idle for a minute.
func TestGrowthAndShrinking(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var mu sync.Mutex
		open := 0
		release := make(chan struct{})
		l := network.Listen("a:1")
		go func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				mu.Lock()
				open++
				mu.Unlock()
				go func() {
					defer func() {
						mu.Lock()
						open--
						mu.Unlock()
						nc.Close()
					}()
					p := wirepeer.New(nc)
					settings := wire.DefaultSettings()
					settings.MaxCalls = 10
					p.Send(wirepeer.Hello(settings))
					if _, err := p.ReadHello(); err != nil {
						return
					}
					for {
						f, err := p.NextOf(wire.TypeRequest, wire.TypePing, wire.TypeClose)
						switch {
						case err != nil || f.Type == wire.TypeClose:
							return
						case f.Type == wire.TypePing:
							p.Send(wire.AppendPing(nil, wire.TypePong, 0))
						default:
							go func() {
								<-release
								mu.Lock()
								defer mu.Unlock()
								p.Send(wirepeer.Reply(f.ID, nil))
							}()
						}
					}
				}()
			}
		}()
		defer l.Close()
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return open
		}
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		var calls []*anser.Future[[]byte]
		for range 80 {
			calls = append(calls, anser.Go[[]byte](context.Background(), c, "Echo.Say", text(""), anser.Timeout(0)))
			synctest.Wait()
		}
		if n := count(); n != 8 {
			t.Errorf("%d connections for 80 calls of 10 each, want 8", n)
		}
		_, err := call(context.Background(), c, "Echo.Say", "")
		if e := wantFault(t, err, anser.ResourceExhausted, anser.NotSent); e.Phase != anser.PhaseWrite {
			t.Error(err)
		}
		close(release)
		for _, f := range calls {
			if _, err := f.Wait(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(55 * time.Second)
		if n := count(); n != 8 {
			t.Errorf("%d connections before a minute is over, want 8", n)
		}
		time.Sleep(10 * time.Second)
		if n := count(); n != 2 {
			t.Errorf("%d connections after a minute of silence, want 2", n)
		}
		if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
			t.Error(err)
		}
	})
}

// The intervals between reconnect attempts grow: about 1 s, 1.6 s, 2.56 s … and 2 minutes.
func TestBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var mu sync.Mutex
		var tries []time.Time
		c := dial(t, "a:1", anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries, time.Now())
			return nil, syscall.ECONNREFUSED
		}))
		_, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failfast))
		wantFault(t, err, anser.Unavailable, anser.NotSent)
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		want := time.Second / 2
		for i := 1; i < len(tries); i++ {
			got := tries[i].Sub(tries[i-1])
			if got < want*79/100 || got > want*121/100 {
				t.Errorf("try %d came after %v, want about %v", i, got, want)
			}
			if want = want * 16 / 10; i == 1 {
				want = time.Second
			}
			want = min(want, 2*time.Minute)
		}
		if len(tries) < 30 || len(tries) > 60 {
			t.Errorf("%d tries in an hour", len(tries))
		}
	})
}

// A connection that lasted is replaced at once, even without a call; one that did not last is not.
func TestReconnect(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Say", echo)
		var mu sync.Mutex
		var accepted []*ansertest.FaultyConn
		run(t, s, ansertest.FaultyListener(network.Listen("a:1"), ansertest.Faults{}, func(c *ansertest.FaultyConn) {
			mu.Lock()
			defer mu.Unlock()
			accepted = append(accepted, c)
		}))
		cut := func() {
			mu.Lock()
			defer mu.Unlock()
			accepted[len(accepted)-1].Cut()
		}
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(accepted)
		}
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
			t.Fatal(err)
		}
		for want := 2; want < 5; want++ {
			time.Sleep(6 * time.Second)
			cut()
			time.Sleep(100 * time.Millisecond)
			if n := count(); n != want {
				t.Fatalf("%d connections were made, want %d", n, want)
			}
		}
		before := count()
		cut() // after 100 ms only
		time.Sleep(600 * time.Millisecond)
		if n := count(); n > before+1 {
			t.Errorf("%d connections were made within 600 ms", n-before)
		}
	})
}

// Connecting has a timeout of its own, separate from the call's.
func TestConnectTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		dialer := anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for want, opts := range map[time.Duration][]anser.DialOption{
			5 * time.Second: {dialer},
			time.Second:     {dialer, anser.ConnectTimeout(time.Second)},
		} {
			c := dial(t, "a:1", opts...)
			began := time.Now()
			_, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failfast), anser.Timeout(time.Minute))
			wantFault(t, err, anser.Unavailable, anser.NotSent)
			if d := time.Since(began); d != want {
				t.Errorf("the call failed after %v, want %v", d, want)
			}
		}
	})
}

// A client that is closed behind the handshake of TLS, and before the server has answered, closes
// its connection. The race detector looks at what the two goroutines share.
func TestCloseBehindTheHandshakeOfTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer nc.Close()
		_, err = io.Copy(io.Discard, nc) // completes the TLS handshake, but sends no Anser preface
		ended <- err
	}()
	c := dial(t, l.Addr().String(), anser.TLS(&tls.Config{RootCAs: a.Pool}), anser.HandshakeTimeout(time.Minute))
	called := apart(context.Background(), c, "Echo.Say", text(""), anser.Timeout(time.Minute))
	// Waiting for the server to have read the preface would order the two goroutines for the race
	// detector.
	time.Sleep(300 * time.Millisecond)
	c.Close()
	if _, err := called.Wait(); err == nil {
		t.Error("no error")
	}
	l.Close() // a client that has not dialed by then is not waited for
	<-ended
}
