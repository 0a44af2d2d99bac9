package kcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/kcp"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// kcp-go starts goroutines with the program, and sessions linger for a moment after their end.
func TestMain(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := goleak.Find(
			goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).sched"),
			goleak.IgnoreTopFunction("github.com/xtaci/kcp-go/v5.(*TimedSched).prepend"),
		)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			fmt.Println(err)
			code = 1
			break
		}
	}
	os.Exit(code)
}

func listen(t *testing.T, opts ...kcp.Option) func(address string) (net.Listener, string, error) {
	return func(address string) (net.Listener, string, error) {
		if address == "" {
			address = "127.0.0.1:0"
		}
		l, err := kcp.Listen(address, opts...)
		if err != nil {
			return nil, "", err
		}
		t.Cleanup(func() {
			l.Close()
			l.Wait()
		})
		return l, "kcp://" + l.Addr().String(), nil
	}
}

// relaxed lets a hundred clients and their server share a busy machine under the race detector:
// KCP reacts to a slow processor as to a lossy line, by sending more.
var relaxed = kcp.Interval(50 * time.Millisecond)

func TestKCP(t *testing.T) {
	transporttest.Run(t, transporttest.Transport{Listen: listen(t, relaxed), Client: []anser.DialOption{kcp.Transport(relaxed)}})
}

// The defaults, with one client.
func TestDefaults(t *testing.T) {
	server := anser.NewServer(silent)
	anser.Handle(server, "Test.Echo", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	l, target, err := listen(t)("")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-ended
	}()
	c, err := anser.Dial(target, kcp.Transport(), silent, anser.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for size := range 20 {
		in := make([]byte, 1<<size)
		out := new([]byte)
		if err := c.Call(t.Context(), "Test.Echo", &in, out); err != nil || len(*out) != len(in) {
			t.Error(len(in), len(*out), err)
		}
	}
}

func TestCipherAndFEC(t *testing.T) {
	opts := []kcp.Option{relaxed, kcp.Passphrase("correct horse battery staple", "salt of a test"), kcp.FEC(10, 3)}
	transporttest.Run(t, transporttest.Transport{Listen: listen(t, opts...), Client: []anser.DialOption{kcp.Transport(opts...)}})
}

func TestTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	transporttest.Run(t, transporttest.Transport{
		Listen: listen(t, relaxed), TLS: true, ClientCertificate: true,
		Server: []anser.ServerOption{anser.TLS(a.Server(t, true))},
		Client: []anser.DialOption{kcp.Transport(relaxed), anser.TLS(a.Client(t))},
	})
}

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// A client without the passphrase gets no answer, and no call runs.
func TestWrongPassphrase(t *testing.T) {
	server := anser.NewServer(silent)
	anser.Handle(server, "Test.Echo", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	l, target, err := listen(t, kcp.Passphrase("right", "salt of a test"))("")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-ended
	}()
	for name, opts := range map[string][]kcp.Option{
		"wrong": {kcp.Passphrase("wrong", "salt of a test")}, "other salt": {kcp.Passphrase("right", "salt of another")}, "none": nil,
	} {
		c, err := anser.Dial(target, kcp.Transport(opts...), anser.HandshakeTimeout(200*time.Millisecond), silent)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Call(t.Context(), "Test.Echo", new([]byte), new([]byte), anser.WithFailMode(anser.Failfast))
		if e, ok := err.(*anser.Error); !ok || e.Outcome != anser.NotSent {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
	if n := server.Stats().Accepted; n != 0 {
		t.Errorf("%d connections were accepted", n)
	}
}

// Packets that arrive while a listener ends leave nothing behind, and a peer that has no room for
// what it is sent holds nothing up: Wait returns, and TestMain looks for goroutines.
func TestLatePackets(t *testing.T) {
	first := make([]byte, 24) // a packet with which KCP begins a session; its window is 0
	first[0], first[4] = 1, 81
	var all sync.WaitGroup
	defer all.Wait()
	for range 100 {
		l, err := kcp.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			nc, err := net.Dial("udp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				defer nc.Close()
				for range 20 {
					nc.Write(first) // an error means that the listener has ended
				}
			})
		}
		all.Go(func() {
			l.Close()
			l.Wait()
		})
	}
}

func TestMistakes(t *testing.T) {
	for _, o := range []kcp.Option{
		kcp.Passphrase("", "salt of a test"), kcp.Passphrase("x", "short"), kcp.FEC(0, 3), kcp.FEC(200, 100),
		kcp.Window(1), kcp.MTU(9000), kcp.Interval(time.Microsecond),
	} {
		if _, err := kcp.Listen("127.0.0.1:0", o); err == nil || !strings.Contains(err.Error(), "want") {
			t.Error(err)
		}
		if _, err := anser.Dial("kcp://127.0.0.1:1", kcp.Transport(o)); err == nil || !strings.Contains(err.Error(), "want") {
			t.Error(err)
		}
	}
	if _, err := kcp.Listen("nowhere"); err == nil {
		t.Error("an address without a port is taken")
	}
}

// KCP's own cipher does not authenticate, and does not count as protection on a public address.
func TestInPublic(t *testing.T) {
	for _, opts := range [][]kcp.Option{nil, {kcp.Passphrase("correct horse", "battery staple")}} {
		l, err := kcp.Listen("0.0.0.0:0", opts...)
		if err != nil {
			t.Fatal(err)
		}
		s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
		err = s.Serve(l)
		s.Close()
		l.Wait()
		if !strings.Contains(err.Error(), "no TLS and no authentication: ") {
			t.Error(err)
		}
	}
}
