package anser_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A credential that expires without another one ends streams and calls, and further ones are
// refused. The reply of a handler that ignores its context is not sent.
func TestCredentialExpires(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		d := &door{life: 1500 * time.Millisecond}
		running, finish := make(chan struct{}), make(chan struct{})
		s := anser.NewServer(silent, anser.Authenticate(d))
		anser.Handle(s, "Who.AmI", whoami)
		anser.Handle(s, "Who.Waits", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			close(running)
			<-finish
			return whoami(ctx, in)
		})
		ended := make(chan error, 1)
		anser.HandleStream(s, "Chat.Hold", func(ctx context.Context, _ *anser.Stream[[]byte, []byte]) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		})
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial), showing("ann"), anser.InsecureCredentials(), anser.Conns(1)) // which never renews
		waiting := apart(context.Background(), c, "Who.Waits", text(""))
		<-running
		st, err := anser.Open[[]byte, []byte](context.Background(), c, "Chat.Hold")
		if err != nil {
			t.Fatal(err)
		}
		_, err = st.Recv()
		wantFault(t, err, anser.Unauthenticated, anser.OutcomeUnknown)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler's context: %v", err)
		}
		_, err = call(context.Background(), c, "Who.AmI", "")
		if e := wantFault(t, err, anser.Unauthenticated, anser.Refused); e.Message != "unauthenticated" {
			t.Error(e.Message)
		}
		_, err = waiting.Wait()
		wantFault(t, err, anser.Unauthenticated, anser.OutcomeUnknown)
		close(finish)
	})
}

// Credentials that are renewed in time keep a connection alive: no call fails, no stream ends.
func TestCredentialsAreRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		d := &door{life: time.Hour}
		s := anser.NewServer(silent, anser.Authenticate(d))
		anser.Handle(s, "Who.Until", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
			return text(anser.IdentityFrom(ctx).Expires.Format(time.RFC3339Nano)), nil
		})
		anser.HandleStream(s, "Chat.Echo", func(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
			for m, err := range st.All() {
				if err != nil {
					return err
				}
				if err := st.Send(m); err != nil {
					return err
				}
			}
			return nil
		})
		run(t, s, network.Listen("a:1"))
		var n atomic.Int64
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.InsecureCredentials(), anser.Conns(1), anser.Credentials(func(context.Context) (anser.Credential, error) {
			if n.Add(1) == 2 {
				return anser.Credential{}, errors.New("not now")
			}
			return anser.Credential{Scheme: "test", Data: []byte(secret + ":ann"), Expires: time.Now().Add(2 * time.Second)}, nil
		}))
		st, err := anser.Open[[]byte, []byte](context.Background(), c, "Chat.Echo")
		if err != nil {
			t.Fatal(err)
		}
		until := func() string {
			out, err := call(context.Background(), c, "Who.Until", "")
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		first := until()
		eventually(t, "the connection is good for longer", func() bool { return until() != first })
		if n.Load() < 3 {
			t.Errorf("the source was asked %d times: want one for the connection, one that fails, and another", n.Load())
		}
		if err := st.Send(text("still here")); err != nil {
			t.Fatal(err)
		}
		if m, err := st.Recv(); err != nil || string(*m) != "still here" {
			t.Fatal(err)
		}
		st.Close()
		if n := s.Stats().Accepted; n != 1 {
			t.Errorf("%d connections were made", n)
		}
	})
}

// rawLogin completes a handshake as a client that presents a credential of the subject.
func rawLogin(t testing.TB, address, subject string) *wirepeer.Peer {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	p := wirepeer.New(nc)
	settings := wire.DefaultSettings()
	settings.Features = wire.FeatureAuth
	if err := p.Send(wirepeer.Hello(settings), auth(subject)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ReadHello(); err != nil {
		t.Fatal(err)
	}
	return p
}

func auth(subject string) []byte { return wire.AppendAuth(nil, "test", []byte(secret+":"+subject)) }

// A client may renew the credential of its connection, but not change the subject.
func TestRenewals(t *testing.T) {
	l := listen(t)
	d := new(door)
	s := serve(t, l, map[string]handler{"Who.AmI": whoami}, anser.Authenticate(d))
	address := l.Addr().String()
	t.Run("same subject", func(t *testing.T) {
		p := rawLogin(t, address, "ann")
		asked := d.asked.Load()
		p.Send(auth("ann"), wire.AppendMethod(nil, 1, "Who.AmI"), wirepeer.Request(1, 1, nil))
		if f, err := p.NextOf(wire.TypeReply, wire.TypeClose); err != nil || f.Type != wire.TypeReply {
			t.Fatal(f, err)
		}
		eventually(t, "it was checked", func() bool { return d.asked.Load() > asked })
	})
	t.Run("other subject", func(t *testing.T) {
		p := rawLogin(t, address, "ann")
		p.Send(auth("bob"))
		if reason, text, err := p.ReadClose(); reason != wire.Unauthenticated || text != "unauthenticated" || err != nil {
			t.Error(reason, text, err)
		}
		if s.Stats().Unauthenticated["other subject"] != 1 {
			t.Errorf("%+v", s.Stats().Unauthenticated)
		}
	})
	t.Run("wrong", func(t *testing.T) {
		p := rawLogin(t, address, "ann")
		p.Send(wire.AppendAuth(nil, "test", []byte("wrong:ann")))
		if f, err := p.NextOf(wire.TypeDrain, wire.TypeClose); err != nil || f.Type != wire.TypeDrain {
			t.Fatal(f, err)
		}
		p.Send(wire.AppendMethod(nil, 1, "Who.AmI"), wirepeer.Request(1, 1, nil)) // calls that cross the DRAIN are served
		if f, err := p.NextOf(wire.TypeReply, wire.TypeClose); err != nil || f.Type != wire.TypeReply {
			t.Fatal(f, err)
		}
	})
	t.Run("malformed", func(t *testing.T) {
		p := rawLogin(t, address, "ann")
		p.Send(wire.AppendHeader(nil, wire.Header{Type: wire.TypeAuth}))
		if reason, _, err := p.ReadClose(); reason != wire.BadFrame || err != nil {
			t.Error(reason, err)
		}
	})
	t.Run("flood", func(t *testing.T) {
		p := rawLogin(t, address, "ann")
		for range 5 {
			p.Send(auth("ann"))
		}
		if reason, text, err := p.ReadClose(); reason != wire.Flood || !strings.Contains(text, "credentials more often than every 1s") || err != nil {
			t.Error(reason, text, err)
		}
	})
	t.Run("revoked", func(t *testing.T) {
		p := rawLogin(t, address, "ann")
		d.revoked.Store(true)
		defer d.revoked.Store(false)
		if reason, text, err := p.ReadClose(); reason != wire.Unauthenticated || text != "unauthenticated" || err != nil {
			t.Error(reason, text, err)
		}
	})
}

// A source of credentials that fails for a while is two lines in the log of the client.
func TestRenewalIsLoggedOnChange(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent, anser.Authenticate(&door{life: time.Hour}))
		run(t, s, network.Listen("a:1"))
		log := new(testlog.Buffer)
		var n atomic.Int64
		var fails atomic.Bool
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.InsecureCredentials(), anser.Conns(1), anser.Logger(log.Logger()),
			anser.Credentials(func(context.Context) (anser.Credential, error) {
				if n.Add(1); fails.Load() {
					return anser.Credential{}, errors.New("not now")
				}
				return anser.Credential{Scheme: "test", Data: []byte(secret + ":ann"), Expires: time.Now().Add(4 * time.Second)}, nil
			}))
		call(context.Background(), c, "Who.AmI", "") // connects
		fails.Store(true)
		time.Sleep(5 * time.Minute)
		if text := log.Take(); n.Load() < 5 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "could not be renewed") {
			t.Errorf("the log of %d renewals: %q", n.Load(), text)
		}
		fails.Store(false)
		time.Sleep(5 * time.Minute)
		if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "renewed again") {
			t.Errorf("the log after the source came back: %q", text)
		}
	})
}
