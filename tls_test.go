package anser_test

import (
	"context"
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// serverTLS returns TLS for a server with those names and addresses.
func serverTLS(t testing.TB, a *transporttest.Authority, names ...string) anser.Option {
	t.Helper()
	return anser.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, names...)}})
}

// The client verifies the server by the address it dialed, in TLS 1.3.
func TestTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	peers := make(chan anser.Peer, 1)
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		p, _ := anser.PeerFrom(ctx)
		peers <- p
		return in, nil
	}}, serverTLS(t, a, "127.0.0.1"))
	c := dial(t, l.Addr().String(), anser.TLS(&tls.Config{RootCAs: a.Pool}))
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Fatal(out, err)
	}
	if p := <-peers; p.TLS == nil || p.TLS.Version != tls.VersionTLS13 || p.Addr == nil || p.Local.String() != l.Addr().String() {
		t.Errorf("%+v", p)
	}
}

// If the TLS settings of both sides do not match, the error says so and what to do, and the call
// was not sent.
func TestTLSMismatch(t *testing.T) {
	a, other := transporttest.NewAuthority(t), transporttest.NewAuthority(t)
	for name, test := range map[string]struct {
		server []anser.ServerOption
		client []anser.DialOption
		want   string
	}{
		"client without": {[]anser.ServerOption{serverTLS(t, a, "127.0.0.1")}, nil, "this port speaks TLS: give the client anser.TLS"},
		"server without": {nil, []anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.Pool})}, "first record does not look like a TLS handshake: give the server anser.TLS, or leave the option out here"},
		"server of several protocols without": {
			[]anser.ServerOption{anser.Protocols(shoutProtocol{"HOOT"})},
			[]anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.Pool})},
			"first record does not look like a TLS handshake: give the server anser.TLS, or leave the option out here",
		},
		"other name": {[]anser.ServerOption{serverTLS(t, a, "example.org")}, []anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.Pool})}, "127.0.0.1"},
		"other authority": {
			[]anser.ServerOption{serverTLS(t, a, "127.0.0.1")},
			[]anser.DialOption{anser.TLS(&tls.Config{RootCAs: other.Pool})},
			"certificate signed by unknown authority",
		},
		"old version": {
			[]anser.ServerOption{serverTLS(t, a, "127.0.0.1")},
			[]anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.Pool, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12})},
			"protocol version",
		},
		"no client certificate": {
			[]anser.ServerOption{anser.TLS(&tls.Config{
				Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}, ClientCAs: a.Pool, ClientAuth: tls.RequireAndVerifyClientCert,
			})},
			[]anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.Pool})},
			"certificate required",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			s := serve(t, l, map[string]handler{"Echo.Say": echo}, test.server...)
			c := dial(t, l.Addr().String(), test.client...)
			_, err := call(context.Background(), c, "Echo.Say", "hello", anser.WithFailMode(anser.Failfast))
			e := wantFault(t, err, anser.Unavailable, anser.NotSent)
			if !strings.Contains(e.Message, test.want) {
				t.Error(e.Message)
			}
			eventually(t, "the failure is counted", func() bool { return s.Stats().HandshakeFailed > 0 })
			if n := s.Stats().Methods["Echo.Say"].Calls; n != 0 {
				t.Errorf("%d calls ran", n)
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "echo")
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Say", echo)
	l, err := s.Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, l)
	c := dial(t, "unix://"+path)
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Fatal(out, err)
	}
	s.Close()
	eventually(t, "the client knows", func() bool { return !c.Status().Instances[0].Connected })
	_, err = call(context.Background(), c, "Echo.Say", "hello", anser.WithFailMode(anser.Failfast))
	if e := fault(t, err); e.Outcome != anser.NotSent {
		t.Error(err)
	}
}
