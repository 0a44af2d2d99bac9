package anser_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
)

// The rules for connections apply to the connections of other protocols.
func TestProtocolConnections(t *testing.T) {
	far := anser.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4000}, Local: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 5000}}
	near := anser.Peer{Addr: loopback(1), Local: loopback(2)}
	refused := errors.New("not this one")
	for name, c := range map[string]struct {
		options []anser.ServerOption
		peer    anser.Peer
		open    int // connections before
		text    string
	}{
		"an address":      {options: []anser.ServerOption{anser.DenyFrom(netip.MustParsePrefix("127.0.0.0/8"))}, peer: near, text: "may not connect"},
		"the limit":       {options: []anser.ServerOption{anser.MaxConns(1)}, peer: near, open: 1, text: "limit of 1 connections"},
		"no protection":   {peer: far, text: "comes from another machine and has no TLS"},
		"an observer":     {options: []anser.ServerOption{anser.Observe(anser.Observer{ConnOpened: func(anser.ConnInfo) error { return refused }})}, peer: near, text: "not this one"},
		"a wrong option":  {options: []anser.ServerOption{anser.MaxConns(-1)}, peer: near, text: "MaxConns(-1)"},
		"nothing against": {peer: near},
		"a public server": {options: []anser.ServerOption{anser.InsecurePublic()}, peer: far},
	} {
		t.Run(name, func(t *testing.T) {
			s := foreignServer(t, c.options...)
			for range c.open {
				openForeign(t, s, nil)
			}
			f, err := newForeign(s, c.peer)
			if c.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				f.End(nil)
			} else if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %q", err, c.text)
			}
			if n := s.Stats().Conns; n != c.open {
				t.Errorf("%d connections are left, want %d", n, c.open)
			}
		})
	}
}

// The identity of a client is proven, renewed and revoked as over Anser's own protocol.
func TestProtocolIdentities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := new(atomic.Bool)
		s := anser.NewServer(anser.Authenticate(new(door)), anser.Authorize(&revocable{gone: gone}))
		defer s.Close()
		entered := make(chan context.Context, 1)
		anser.Handle(s, "Words.Say", func(ctx context.Context, in *word) (*word, error) {
			if anser.IdentityFrom(ctx).Subject != "ann" {
				t.Errorf("the identity is %v", anser.IdentityFrom(ctx))
			}
			entered <- ctx
			<-ctx.Done()
			return in, nil
		})
		f := openForeign(t, s, nil)
		if err := f.Authenticate(t.Context(), "test", []byte("wrong:ann")); err == nil || !f.NeedsLogin() {
			t.Error("a wrong token proves an identity")
		}
		if err := f.Authenticate(t.Context(), "test", []byte(secret+":ann")); err != nil || f.Identity().Subject != "ann" {
			t.Fatalf("%v, %v", err, f.Identity())
		}
		_, replies, err := f.start(anser.ProtocolRequest{Method: "Words.Say"}, word{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := <-entered
		gone.Store(true) // the policy changes while the call runs
		began := time.Now()
		if r := <-replies; anser.CodeOf(r.Err) != anser.PermissionDenied || r.Err.Outcome != anser.OutcomeUnknown {
			t.Errorf("the call that may not go on gets %v", r.Err)
		}
		<-ctx.Done()
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("it was cut off after %v", d)
		}
		synctest.Wait()
		if len(replies) > 0 {
			t.Error("it is answered twice")
		}
		if _, _, err := f.call(anser.ProtocolRequest{Method: "Words.Say"}, word{}); anser.CodeOf(err) != anser.PermissionDenied {
			t.Errorf("a further call gets %v", err)
		}
		if err := f.Authenticate(t.Context(), "test", []byte(secret+":bob")); err == nil {
			t.Error("the connection of one subject may become that of another")
		}
		if why := <-f.closes; why == nil {
			t.Error("it is closed without a reason")
		}
		if st := s.Stats(); st.CutOff != 1 || st.Unauthenticated["other subject"] != 1 {
			t.Errorf("%d cut off, not authenticated: %v", st.CutOff, st.Unauthenticated)
		}
	})
}

// revocable is a policy that allows everything until it has gone.
type revocable struct{ gone *atomic.Bool }

func (p *revocable) Allows(*anser.Identity, string) bool { return !p.gone.Load() }
func (p *revocable) Version() uint64 {
	if p.gone.Load() {
		return 2
	}
	return 1
}

// The connection of a client that does not authenticate is closed.
func TestProtocolLoginTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer(anser.Authenticate(new(door)), anser.HandshakeTimeout(3*time.Second))
		defer s.Close()
		f := openForeign(t, s, nil)
		began := time.Now()
		if why := <-f.closes; why == nil || time.Since(began) != 3*time.Second {
			t.Errorf("closed with %v after %v", why, time.Since(began))
		}
	})
}

// A call that is cut off while its message is being decoded does not run.
func TestProtocolCallCutOffBeforeItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := new(atomic.Bool)
		s := anser.NewServer(anser.Authenticate(new(door)), anser.Authorize(&revocable{gone: gone}))
		defer s.Close()
		anser.Handle(s, "Words.Say", func(context.Context, *word) (*word, error) {
			t.Error("it runs")
			return nil, nil
		})
		f := openForeign(t, s, nil)
		if err := f.Authenticate(t.Context(), "test", []byte(secret+":ann")); err != nil {
			t.Fatal(err)
		}
		k, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Say"})
		if refused != nil {
			t.Fatal(refused)
		}
		gone.Store(true)
		time.Sleep(2 * time.Second)
		replies := new(atomic.Int64)
		k.Run(k.NewRequest(), func(r anser.ProtocolReply) error {
			replies.Add(1)
			if anser.CodeOf(r.Err) != anser.PermissionDenied {
				t.Errorf("it gets %v", r.Err)
			}
			return nil
		})
		synctest.Wait()
		if st := s.Stats(); replies.Load() != 1 || st.InFlight != 0 || st.CutOff != 1 {
			t.Errorf("%d replies, %d in flight, %d cut off", replies.Load(), st.InFlight, st.CutOff)
		}
	})
}

// Contexts end with the caller's cancel and with the connection, and every call is answered once.
func TestProtocolCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer()
		defer s.Close()
		anser.Handle(s, "Words.Wait", func(ctx context.Context, _ *word) (*word, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		f := openForeign(t, s, nil)
		for name, end := range map[string]func(*anser.ProtocolCall){
			"cancel": func(k *anser.ProtocolCall) { k.Cancel(); k.Cancel() },
			"lost":   func(*anser.ProtocolCall) { f.End(io.ErrUnexpectedEOF) },
		} {
			if name == "lost" {
				continue // below: it is the last one
			}
			k, replies, err := f.start(anser.ProtocolRequest{Method: "Words.Wait"}, word{})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			end(k)
			if r := <-replies; anser.CodeOf(r.Err) != anser.Canceled {
				t.Errorf("%s: %v", name, r.Err)
			}
		}
		_, replies, err := f.start(anser.ProtocolRequest{Method: "Words.Wait", Deadline: time.Now().Add(time.Second)}, word{})
		if err != nil {
			t.Fatal(err)
		}
		if r := <-replies; anser.CodeOf(r.Err) != anser.DeadlineExceeded {
			t.Errorf("at its deadline: %v", r.Err)
		}
		_, replies, err = f.start(anser.ProtocolRequest{Method: "Words.Wait"}, word{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.End(io.ErrUnexpectedEOF)
		if r := <-replies; anser.CodeOf(r.Err) != anser.Canceled {
			t.Errorf("with its connection lost: %v", r.Err)
		}
		synctest.Wait() // until the call is counted out
		if st := s.Stats(); st.InFlight != 0 || st.Conns != 0 || st.Cancelled != 1 {
			t.Errorf("%d in flight, %d connections, %d cancelled", st.InFlight, st.Conns, st.Cancelled)
		}
	})
}

// A shutdown drains connections of other protocols, too, and waits for their calls.
func TestProtocolDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer()
		release := make(chan struct{})
		anser.Handle(s, "Words.Wait", func(_ context.Context, in *word) (*word, error) {
			<-release
			return in, nil
		})
		f := openForeign(t, s, nil)
		_, replies, err := f.start(anser.ProtocolRequest{Method: "Words.Wait"}, word{"late"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		var shut error
		all.Go(func() { shut = s.Shutdown(ctx) })
		if grace := <-f.drains; grace != time.Minute {
			t.Errorf("the grace is %v", grace)
		}
		if _, _, err := f.call(anser.ProtocolRequest{Method: "Words.Wait"}, word{}); anser.CodeOf(err) != anser.Unavailable {
			t.Errorf("a new call gets %v", err)
		}
		time.Sleep(10 * time.Second)
		if len(f.closes) > 0 {
			t.Error("it is closed while a call runs")
		}
		close(release)
		if r := <-replies; r.Err != nil || r.Message.(*word).Text != "late" {
			t.Errorf("the open call gets %v", r)
		}
		if why := <-f.closes; why != nil {
			t.Errorf("after the drain it is closed with %v", why)
		}
		f.End(io.EOF)
		all.Wait()
		if shut != nil {
			t.Error(shut)
		}
		if _, err := newForeign(s, anser.Peer{Addr: loopback(1), Local: loopback(2)}); !errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("a new connection gets %v", err)
		}
	})
}

// An idle connection of another protocol is closed after IdleTimeout.
func TestProtocolIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer(anser.IdleTimeout(time.Minute))
		defer s.Close()
		f := openForeign(t, s, nil)
		began := time.Now()
		<-f.drains
		if why := <-f.closes; why != nil || time.Since(began) > time.Minute+3*time.Second {
			t.Errorf("closed with %v after %v", why, time.Since(began))
		}
	})
}

// A server that is only given connections leaves no goroutine behind when they have ended.
func TestProtocolConnectionsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		s := anser.NewServer()
		anser.Handle(s, "Words.Say", func(_ context.Context, in *word) (*word, error) { return in, nil })
		for range 3 {
			f, err := newForeign(s, anser.Peer{Addr: loopback(1), Local: loopback(2)})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := f.call(anser.ProtocolRequest{Method: "Words.Say"}, word{"a"}); err != nil {
				t.Fatal(err)
			}
			f.End(nil)
			synctest.Wait()
		}
	})
}

// A connection that others share is idle when they are.
func TestProtocolShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer(anser.IdleTimeout(time.Minute))
		defer s.Close()
		anser.Handle(s, "Words.Say", func(ctx context.Context, in *word) (*word, error) {
			time.Sleep(90 * time.Second)
			return in, nil
		})
		f := openForeign(t, s, nil)
		guest := &protocolClient{drains: make(chan time.Duration, 10), closes: make(chan error, 10)}
		var err error
		guest.ProtocolConn, err = f.Share(anser.ProtocolHooks{
			Drain: func(grace time.Duration) { guest.drains <- grace },
			Close: func(why error) { guest.closes <- why },
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		if _, _, err := guest.call(anser.ProtocolRequest{Method: "Words.Say"}, word{"a"}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		select {
		case <-f.drains:
			t.Fatal("it drains while another one has a call")
		default:
		}
		<-f.drains
		<-guest.drains
		if after := time.Since(began); after < 58*time.Second || after > 63*time.Second {
			t.Errorf("it drains %v after the last call", after)
		}
		guest.End(nil)
	})
}

// A connection needs no identity while another client that shares it has one, and is closed some
// time after the last one of them has left.
func TestProtocolShareIdentities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byName := anser.AuthenticatorFunc(func(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
			return &anser.Identity{Subject: string(l.Data)}, nil
		})
		s := anser.NewServer(anser.Authenticate(byName))
		defer s.Close()
		f := openForeign(t, s, nil)
		share := func() *protocolClient {
			guest := &protocolClient{drains: make(chan time.Duration, 10), closes: make(chan error, 10)}
			var err error
			guest.ProtocolConn, err = f.Share(anser.ProtocolHooks{
				Drain: func(grace time.Duration) { guest.drains <- grace },
				Close: func(why error) { guest.closes <- why },
			})
			if err != nil {
				t.Fatal(err)
			}
			return guest
		}
		known, unknown := share(), share()
		if err := known.Authenticate(t.Context(), "token", []byte("ann")); err != nil {
			t.Fatal(err)
		}
		if why := <-unknown.closes; why == nil {
			t.Error("a client without an identity stays")
		}
		unknown.End(nil)
		time.Sleep(time.Hour)
		select {
		case why := <-f.closes:
			t.Fatalf("it is closed with %v while a client has an identity", why)
		default:
		}
		known.End(nil)
		began := time.Now()
		if why := <-f.closes; why == nil || time.Since(began) != 5*time.Second {
			t.Errorf("it is closed after %v with %v", time.Since(began), why)
		}
	})
}

// Calls that are cut off are answered before the connection is closed, unless that takes long.
func TestProtocolAnswersBeforeClose(t *testing.T) {
	for name, slow := range map[string]time.Duration{"soon": 100 * time.Millisecond, "late": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var revoked atomic.Bool
				byName := anser.AuthenticatorFunc(func(context.Context, *anser.AuthRequest) (*anser.Identity, error) {
					return &anser.Identity{Subject: "ann", Revoked: revoked.Load}, nil
				})
				s := anser.NewServer(anser.Authenticate(byName))
				defer s.Close()
				anser.Handle(s, "Words.Wait", func(ctx context.Context, in *word) (*word, error) {
					<-ctx.Done()
					return in, nil
				})
				f := openForeign(t, s, nil)
				if err := f.Authenticate(t.Context(), "token", []byte("ann")); err != nil {
					t.Fatal(err)
				}
				k, refused := f.Admit(&anser.ProtocolRequest{Method: "Words.Wait"})
				if refused != nil {
					t.Fatal(refused)
				}
				answered := make(chan time.Time, 1)
				var got *anser.Error
				k.Run(k.NewRequest(), func(r anser.ProtocolReply) error {
					got = r.Err
					time.Sleep(slow)
					answered <- time.Now()
					return nil
				})
				revoked.Store(true)
				why := <-f.closes
				closed := time.Now()
				f.End(why)
				after := closed.Sub(<-answered)
				if why == nil || anser.CodeOf(got) != anser.Unauthenticated {
					t.Errorf("closed with %v, the call ends with %v", why, got)
				}
				if name == "soon" && after != 0 || name == "late" && after != time.Second-time.Minute {
					t.Errorf("closed %v after the answer", after)
				}
			})
		})
	}
}
