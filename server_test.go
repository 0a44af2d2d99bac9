package anser_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// The server sends the reason to a connection that does not finish its handshake.
func TestHandshakeTimeout(t *testing.T) {
	for name, sent := range map[string][]byte{
		"nothing":        nil,
		"half a preface": wire.AppendPreface(nil)[:5],
		"no settings":    wire.AppendPreface(nil),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
				nc, err := network.Dial(context.Background(), "tcp", "a:1")
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				began := time.Now()
				nc.Write(sent)
				p := wirepeer.New(nc)
				if err := p.ReadPreface(); err != nil {
					t.Fatal(err)
				}
				if reason, text, err := p.ReadClose(); reason != wire.Timeout || text != "no handshake within 5s (anser.HandshakeTimeout)" || err != nil {
					t.Fatal(reason, text, err)
				}
				if d := time.Since(began); d < 5*time.Second || d > 6*time.Second {
					t.Errorf("closed after %v", d)
				}
				nc.Close()
				synctest.Wait()
				if st := s.Stats(); st.HandshakeFailed != 1 || st.Closed["TIMEOUT"] != 1 || st.LimitsHit["HandshakeTimeout"] != 1 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

func TestListenMistakes(t *testing.T) {
	s := anser.NewServer(silent)
	for address, want := range map[string]string{
		"127.0.0.1":        `listen on "127.0.0.1": the address has no port: use host:port`,
		"127.0.0.1:":       `listen on "127.0.0.1:": the address has no port: use host:port`,
		":0":               `listen on ":0": the address is reachable from other machines and there is no TLS and no authentication: give the server anser.TLS and anser.Authenticate (or a TLS configuration whose ClientAuth is tls.RequireAndVerifyClientCert), listen on 127.0.0.1, or accept the risk with anser.InsecurePublic`,
		"0.0.0.0:0":        "give the server anser.TLS",
		"[::]:0":           "give the server anser.TLS",
		"192.0.2.1:0":      "give the server anser.TLS",
		"example.org:8972": "give the server anser.TLS",
		"127.0.0.1:http_":  "listen on 127.0.0.1:http_",
	} {
		l, err := s.Listen(address)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Listen(%q): %v, want %s", address, err, want)
		}
		if err := s.ListenAndServe(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ListenAndServe(%q): %v, want %s", address, err, want)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.8.8.8:0"} {
		l, err := s.Listen(address)
		if err != nil {
			t.Errorf("Listen(%q): %v", address, err)
			continue
		}
		l.Close()
	}
	a := transporttest.NewAuthority(t)
	mutual := anser.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}, ClientCAs: a.Pool, ClientAuth: tls.RequireAndVerifyClientCert})
	for want, opts := range map[string][]anser.ServerOption{
		"":                      {anser.InsecurePublic()},
		" ":                     {mutual},
		"  ":                    {serverTLS(t, a, "127.0.0.1"), anser.Authenticate(new(door))},
		"and there is no TLS: ": {anser.Authenticate(new(door))},
		"no authentication: ":   {serverTLS(t, a, "127.0.0.1")},
	} {
		l, err := anser.NewServer(opts...).Listen("0.0.0.0:0")
		if err == nil {
			l.Close()
		}
		if want = strings.TrimLeft(want, " "); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	// A plain listener of the user is checked in the same way.
	public, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := anser.NewServer(silent).Serve(public); err == nil || !strings.Contains(err.Error(), "anser.InsecurePublic") {
		t.Error(err)
	}
	taken := listen(t)
	if _, err := s.Listen(taken.Addr().String()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Error(err)
	}
}

// Close and Shutdown may be called in any state and any number of times, and leave nothing
// running.
func TestEndOfAServer(t *testing.T) {
	ansertest.CheckLeaks(t)
	ctx := context.Background()
	s := anser.NewServer(silent) // never served
	for range 2 {
		if err := errors.Join(s.Close(), s.Shutdown(ctx)); err != nil {
			t.Error(err)
		}
	}
	if err := s.Serve(new(ansertest.Network).Listen("a:1")); err != anser.ErrServerClosed {
		t.Error(err)
	}

	bubble(t, func(t *testing.T, network *ansertest.Network) { // where no goroutine is too slow for Close
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Say", echo)
		first, second := network.Listen("a:1"), network.Listen("b:1")
		served := make(chan error, 2)
		go func() { served <- s.Serve(first) }()
		go func() { served <- s.Serve(second) }()
		for _, address := range []string{"a:1", "b:1"} {
			c := dial(t, address, anser.Dialer(network.Dial))
			if _, err := call(ctx, c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
		}
		if addrs := s.Addrs(); len(addrs) != 2 || addrs[0].String() != "a:1" || addrs[1].String() != "b:1" {
			t.Error(addrs)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := s.Shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for range 2 {
			if err := <-served; err != anser.ErrServerClosed {
				t.Error(err)
			}
		}
		if st := s.Stats(); st.Conns != 0 || len(s.Addrs()) != 0 {
			t.Errorf("%+v, %v", st, s.Addrs())
		}
	})
}

// Shutdown waits for the calls in flight, on whichever goroutine they run, and accepts no others.
func TestShutdownWaitsForCalls(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := anser.NewServer(silent)
				anser.Handle(s, "Echo.Slow", func(ctx context.Context, in *[]byte) (*[]byte, error) {
					time.Sleep(20 * time.Second)
					return in, ctx.Err()
				}, opt)
				run(t, s, network.Listen("a:1"))
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(0))
				var calls []*anser.Future[[]byte]
				for range 5 {
					calls = append(calls, anser.Go[[]byte](context.Background(), c, "Echo.Slow", text("hello")))
				}
				time.Sleep(time.Second)
				began := time.Now()
				down := make(chan error, 1)
				go func() { down <- s.Shutdown(context.Background()) }()
				time.Sleep(time.Second)
				_, err := call(context.Background(), c, "Echo.Slow", "", anser.WithFailMode(anser.Failfast))
				if e := fault(t, err); e.Outcome != anser.NotSent && e.Outcome != anser.Refused {
					t.Errorf("a call during the drain: %v", err)
				}
				for _, f := range calls {
					if out, err := f.Wait(); err != nil || string(*out) != "hello" {
						t.Error(err)
					}
				}
				if err := <-down; err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d < 19*time.Second || d > 20*time.Second {
					t.Errorf("shutdown took %v, the last call 19 s", d)
				}
				if st := s.Stats(); st.Conns != 0 || st.InFlight != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// When the grace is over, the remaining connections are closed, and the contexts of the handlers
// end.
func TestShutdownGrace(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		ended := make(chan error, 1)
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return in, nil
		}})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(0))
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Wait", text(""))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		began := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if d := time.Since(began); d != 30*time.Second {
			t.Errorf("shutdown took %v", d)
		}
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
		_, err := reply.Wait()
		wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
	})
}

// A server that shuts down gives connections in their handshake one second to finish it. A
// connection that has just finished must not be lost after that second.
func TestShutdownAsAHandshakeEnds(t *testing.T) {
	network := new(ansertest.Network)
	l := &hookedListener{Listener: network.Listen("a:1"), done: make(chan struct{})}
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Slow", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		time.Sleep(1500 * time.Millisecond)
		return in, nil
	})
	l.hook = func() {
		go func() {
			s.Shutdown(context.Background())
			close(l.done)
		}()
		time.Sleep(100 * time.Millisecond) // Shutdown gets as far as it can
	}
	run(t, s, l)
	nc, err := network.Dial(context.Background(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p := wirepeer.New(nc)
	p.Send(wirepeer.Hello(wire.DefaultSettings()), wire.AppendMethod(nil, 1, "Echo.Slow"), wirepeer.Request(1, 1, []byte("hello")))
	if _, err := p.ReadHello(); err != nil {
		t.Fatal(err)
	}
	if f, err := p.NextOf(wire.TypeReply); string(f.Body[2:]) != "hello" || err != nil {
		t.Fatal(err)
	}
	p.Send(wire.AppendDrain(nil, wire.FlagAck, 0))
	p.ReadClose()
	p.Close()
	<-l.done
}

// hookedListener calls hook when the deadline of its first connection is cleared.
type hookedListener struct {
	net.Listener
	hook func()
	done chan struct{}
}

func (l *hookedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &hookedConn{Conn: nc, hook: sync.OnceFunc(l.hook)}, nil
}

type hookedConn struct {
	net.Conn
	hook func()
}

func (c *hookedConn) SetDeadline(t time.Time) error {
	err := c.Conn.SetDeadline(t)
	if t.IsZero() {
		c.hook()
	}
	return err
}

// A signal drains the server, and ListenAndServe returns nil.
func TestSignal(t *testing.T) {
	s := anser.NewServer(silent, anser.DrainGrace(20*time.Second))
	inside := make(chan struct{})
	anser.Handle(s, "Echo.Slow", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		close(inside)
		time.Sleep(100 * time.Millisecond)
		return in, ctx.Err()
	})
	served := make(chan error, 1)
	go func() { served <- s.ListenAndServe("127.0.0.1:0") }()
	eventually(t, "the server listens", func() bool { return len(s.Addrs()) == 1 })
	c := dial(t, s.Addrs()[0].String())
	reply := anser.Go[[]byte](context.Background(), c, "Echo.Slow", text("hello"))
	<-inside
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if out, err := reply.Wait(); err != nil || string(*out) != "hello" {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}

	s = anser.NewServer(silent, anser.NoSignals())
	go func() { served <- s.ListenAndServe("127.0.0.1:0") }()
	eventually(t, "the server listens", func() bool { return len(s.Addrs()) == 1 })
	s.Close()
	if err := <-served; err != anser.ErrServerClosed {
		t.Error(err)
	}
}

// flaky is a listener that fails now and then, in the ways in which listeners do.
type flaky struct {
	net.Listener
	errs []error
}

func (l *flaky) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", err)}
	}
	return l.Listener.Accept()
}

func TestAcceptErrors(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		log := new(testlog.Buffer)
		serve(t, &flaky{network.Listen("a:1"), []error{syscall.EMFILE, syscall.ECONNABORTED, syscall.ENFILE, syscall.ENOBUFS}}, map[string]handler{"Echo.Say": echo}, anser.Logger(log.Logger()))
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		began := time.Now()
		if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < 75*time.Millisecond || d > time.Second {
			t.Errorf("accepted again after %v", d)
		}
		if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "accept failed") {
			t.Errorf("the log of the errors: %q", text)
		}
	})
	s := anser.NewServer(silent)
	defer s.Close()
	if err := s.Serve(&flaky{new(ansertest.Network).Listen("a:1"), []error{syscall.EINVAL}}); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}
