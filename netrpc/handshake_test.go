package netrpc_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/internal/testusage"
	"github.com/anser-rpc/anser/netrpc"
)

// helloOnly is a client's side of a connection that never reads, so that a TLS handshake stops
// after the ClientHello.
type helloOnly struct{ net.Conn }

func (helloOnly) Read([]byte) (int, error) { return 0, io.EOF }

// Connections that stop before the end of the TLS handshake or of the login lose their places to
// others. Connections that may call already do not.
func TestMaxHandshakes(t *testing.T) {
	ca := authority.New("handshakes")
	server := &tls.Config{Certificates: []tls.Certificate{ca.Issue()}}
	client := &tls.Config{RootCAs: ca.Pool, ServerName: "127.0.0.1"}
	write := func(b string) func(net.Conn) error {
		return func(nc net.Conn) error {
			_, err := io.WriteString(nc, b)
			return err
		}
	}
	secure := func(nc net.Conn) error { return tls.Client(nc, client).Handshake() }
	for name, c := range map[string]struct {
		tls, login bool
		begin      func(net.Conn) error
	}{
		"TLS, silent":           {true, false, write("")},
		"TLS, part of a hello":  {true, false, write("\x16\x03\x01")},
		"TLS, hello only":       {true, false, func(nc net.Conn) error { tls.Client(helloOnly{nc}, client).Handshake(); return nil }},
		"TLS, no login":         {true, true, secure},
		"plain, silent":         {false, true, write("")},
		"plain, part of a call": {false, true, write("\x7f\x01")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const places, stalled = 4, 16
			s := quiet(new(Arith))
			if c.login {
				s = guarded(new(Arith))
			}
			s.HandshakeTimeout, s.MaxHandshakes = time.Hour, places
			l := listen(t)
			addr := l.Addr().String()
			if c.tls {
				l = tls.NewListener(l, server)
			}
			go s.Serve(l, nil)
			t.Cleanup(func() { closeServer(t, s) })
			good := func() *netrpc.Client {
				d := netrpc.Dialer{Timeout: time.Minute}
				if c.tls {
					d.TLS = client
				}
				if c.login {
					d.Token = "one"
				}
				known, err := d.Dial(t.Context(), "tcp", addr)
				if err != nil {
					t.Fatalf("a good client: %v", err)
				}
				mustAdd(t, known)
				return known
			}
			first := good()
			defer first.Close()
			var opened sync.WaitGroup
			var conns [stalled]net.Conn
			for i := range conns {
				opened.Go(func() {
					nc, err := net.Dial("tcp", addr)
					if err == nil {
						conns[i] = nc
						err = c.begin(nc)
					}
					// A handshake that the server ends has lost its place.
					if err != nil && !errors.Is(err, io.EOF) && !isReset(err) {
						t.Error(err)
					}
				})
			}
			opened.Wait()
			for _, nc := range conns {
				defer nc.Close()
			}
			second := good()
			defer second.Close()
			left := func() bool { return s.Stats().Conns <= places+2 }
			if !testusage.Soon(left) {
				t.Errorf("%d connections are left, want %d at most", s.Stats().Conns, places+2)
			}
			if n := s.Stats().RefusedConns; n < stalled-places {
				t.Errorf("%d connections are counted as refused, want at least %d", n, stalled-places)
			}
			mustAdd(t, first)
			mustAdd(t, second)
		})
	}
}

// A server that needs neither a handshake nor a login has connections that call when they like.
func TestMaxHandshakesWithoutAny(t *testing.T) {
	s := quiet(new(Arith))
	s.MaxHandshakes = 1
	addr := serve(t, s, nil)
	clients := make([]*netrpc.Client, 10)
	for i := range clients {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = netrpc.NewClient(conn)
		defer clients[i].Close()
	}
	if !testusage.Soon(func() bool { return s.Stats().Conns == len(clients) }) {
		t.Errorf("%d connections, want %d", s.Stats().Conns, len(clients))
	}
	for _, c := range clients {
		mustAdd(t, c)
	}
}

// A server that is slow to check a login does not blame the client.
func TestMaxHandshakesWhileALoginIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := guarded(new(Arith))
		s.MaxHandshakes = 1
		check := s.Authenticate
		s.Authenticate = func(ctx context.Context, c *netrpc.Credentials) (any, error) {
			time.Sleep(10 * time.Second)
			return check(ctx, c)
		}
		connect := serveInMemory(t, s, nil)
		var wg sync.WaitGroup
		for _, token := range []string{"one", "two"} {
			c := netrpc.NewClient(connect())
			defer c.Close()
			wg.Go(func() {
				var ok bool
				if err := c.Call(netrpc.LoginMethod, token, &ok); err != nil || !ok {
					t.Errorf("login: %v, %v", ok, err)
				}
			})
		}
		wg.Wait()
		if n := s.Stats().RefusedConns; n != 0 {
			t.Errorf("%d connections have lost their places", n)
		}
	})
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}
