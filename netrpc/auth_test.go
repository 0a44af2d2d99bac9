package netrpc_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// guarded returns a server that accepts two tokens.
func guarded(services ...any) *netrpc.Server {
	s := quiet(services...)
	s.Authenticate = func(_ context.Context, c *netrpc.Credentials) (any, error) {
		switch c.Token {
		case "one", "two":
			return "the bearer of " + c.Token, nil
		case "panic":
			panic("a secret")
		}
		return nil, errors.New("no")
	}
	return s
}

// A connection has a limited time for its login, whatever else it does; afterwards its time is
// unlimited.
func TestLoginTakesTooLong(t *testing.T) {
	for name, wire := range dialects {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := guarded(Caller{})
				s.HandshakeTimeout = 3 * time.Second
				connect := serveInMemory(t, s, wire.codec)
				silent := connect()
				defer silent.Close()
				c := wire.client(connect())
				defer c.Close()
				var ok bool
				if err := c.Call(netrpc.LoginMethod, "one", &ok); err != nil || !ok {
					t.Fatalf("login: %v, %v", ok, err)
				}
				began := time.Now()
				if _, err := silent.Read(make([]byte, 1)); err != io.EOF || time.Since(began) != 3*time.Second {
					t.Errorf("%v after %v: want the end after 3 s", err, time.Since(began))
				}
				time.Sleep(time.Hour)
				// A later login replaces the previous one.
				for _, token := range []string{"one", "two"} {
					var who string
					if err := c.Call("Caller.Is", &Args{}, &who); err != nil || who != "the bearer of "+token {
						t.Errorf("the caller is %q, %v: want the bearer of %s", who, err, token)
					}
					if err := c.Call(netrpc.LoginMethod, "two", &ok); err != nil {
						t.Error(err)
					}
				}
				// A failed one ends the connection.
				if err := c.Call(netrpc.LoginMethod, "panic", &ok); err == nil || !strings.Contains(err.Error(), "unauthenticated") {
					t.Errorf("a login by which Authenticate panics: %v", err)
				}
				if err := c.Call("Caller.Is", &Args{}, new(string)); err == nil {
					t.Error("the connection goes on")
				}
				if got := s.Stats().Unauthenticated; got < 3 {
					t.Errorf("%d refusals are counted", got)
				}
			})
		})
	}
}

// Before the login, the size of requests is limited.
func TestLimitBeforeLogin(t *testing.T) {
	for name, wire := range dialects {
		t.Run(name, func(t *testing.T) {
			s := guarded(Keeper{})
			addr := serve(t, s, wire.codec)
			connect := func() *netrpc.Client {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				return client(t, wire.client(conn), nil)
			}
			large := strings.Repeat("x", 100<<10)
			var ok bool
			if err := connect().Call(netrpc.LoginMethod, large, &ok); err == nil || ok {
				t.Errorf("a token of 100 KiB: %v, %v", ok, err)
			}
			c := connect()
			if err := c.Call(netrpc.LoginMethod, "one", &ok); err != nil {
				t.Fatal(err)
			}
			var n int
			if err := c.Call("Keeper.Length", []byte(large), &n); err != nil || n != len(large) {
				t.Errorf("after the login: %d, %v", n, err)
			}
		})
	}
}

// Over TLS a certificate can be sufficient.
func TestClientCertificates(t *testing.T) {
	certificate := authority.New("test").Issue(authority.Named("gopher"))
	s := quiet(Caller{})
	s.Authenticate = func(_ context.Context, c *netrpc.Credentials) (any, error) {
		if c.Peer.TLS == nil || len(c.Peer.TLS.PeerCertificates) == 0 {
			return nil, errors.New("no certificate")
		}
		return c.Peer.TLS.PeerCertificates[0].Subject.CommonName, nil
	}
	for name, codec := range map[string]func(io.ReadWriteCloser) netrpc.ServerCodec{"gob": nil, "JSON": jsonrpc.NewServerCodec} {
		l := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert})
		served := make(chan error, 1)
		go func() { served <- s.Serve(l, codec) }()
		d := netrpc.Dialer{TLS: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate}}}
		if codec != nil {
			d.Codec = jsonrpc.NewClientCodec
		}
		c, err := d.Dial(t.Context(), "tcp", l.Addr().String())
		client(t, c, err)
		var who string
		if err := c.Call("Caller.Is", &Args{}, &who); err != nil || who != "gopher" {
			t.Errorf("%s: the caller is %q, %v: want gopher", name, who, err)
		}
		d.TLS.Certificates = nil
		c, err = d.Dial(t.Context(), "tcp", l.Addr().String())
		client(t, c, err)
		if err := c.Call("Caller.Is", &Args{}, &who); err == nil || !strings.Contains(err.Error(), "unauthenticated") {
			t.Errorf("%s without a certificate: %v", name, err)
		}
		l.Close()
		<-served
	}
	s.Close()
}

// Slow is a service with a method that waits while other logins happen on its connection.
type Slow struct {
	began chan struct{}
	goOn  chan struct{}
}

// Is returns the identity of the caller after a while.
func (s *Slow) Is(ctx context.Context, _ *Args) (*string, error) {
	s.began <- struct{}{}
	<-s.goOn
	who := netrpc.IdentityFrom(ctx)
	text := fmt.Sprint(who)
	return &text, nil
}

// A call has the identity with which it was admitted: while it runs, and also while it waits for
// its turn.
func TestLoginDoesNotChangeTheIdentityOfCalls(t *testing.T) {
	for name, wire := range dialects {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := &Slow{make(chan struct{}, 10), make(chan struct{})}
				s := guarded(svc)
				s.MaxPerConn = 1
				connect := serveInMemory(t, s, wire.codec)
				c := wire.client(connect())
				defer c.Close()
				var ok bool
				var calls []*rpc.Call
				for _, token := range []string{"one", "two"} {
					if err := c.Call(netrpc.LoginMethod, token, &ok); err != nil {
						t.Fatal(err)
					}
					calls = append(calls, c.Go("Slow.Is", &Args{}, new(string), nil))
					synctest.Wait()
				}
				if err := c.Call(netrpc.LoginMethod, "one", &ok); err != nil {
					t.Fatal(err)
				}
				close(svc.goOn)
				for i, token := range []string{"one", "two"} {
					<-calls[i].Done
					if who := *calls[i].Reply.(*string); calls[i].Error != nil || who != "the bearer of "+token {
						t.Errorf("the caller is %q, %v: want the bearer of %s", who, calls[i].Error, token)
					}
				}
			})
		})
	}
}
