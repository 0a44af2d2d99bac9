package anser_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// A function that panics affects no other session, and the sessions that outlive their
// connections are no more than the connections that are allowed.
func TestSessionsAreLimited(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent, anser.MaxConns(3), anser.OnSession(func(*anser.Session) { panic("on purpose") }))
		run(t, s, network.Listen("a:1"))
		for id := range uint64(20) {
			nc, err := network.Dial(context.Background(), "tcp", "a:1")
			if err != nil {
				t.Fatal(err)
			}
			p := wirepeer.New(nc)
			settings := wire.DefaultSettings()
			settings.Session = id + 1
			p.Send(wirepeer.Hello(settings))
			if _, err := p.ReadHello(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			nc.Close()
			synctest.Wait()
		}
		if n := len(s.Sessions()); n == 0 || n > 3 {
			t.Errorf("%d sessions are kept, want up to 3", n)
		}
		if n := s.Stats().Panics; n != 20 {
			t.Errorf("%d panics, want 20", n)
		}
	})
}

// The memory that the other direction of a connection costs a server that has used it.
func TestMemoryOfSessions(t *testing.T) {
	const n = 500
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	run(t, s, network.Listen("a:1"))
	var conns []net.Conn
	for id := range uint64(n) {
		nc, err := network.Dial(context.Background(), "tcp", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		p := wirepeer.New(nc)
		settings := wire.DefaultSettings()
		settings.Session = id + 1
		p.Send(wirepeer.Hello(settings))
		if _, err := p.ReadHello(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, nc)
	}
	eventually(t, "there are sessions", func() bool { return len(s.Sessions()) == n })
	before := heapInUse()
	if sent, failed := s.Broadcast(context.Background(), "Client.Note", text(""), nil); sent != n {
		t.Fatal(failed)
	}
	for _, nc := range conns {
		if _, err := io.ReadFull(nc, make([]byte, wire.HeaderSize)); err != nil {
			t.Fatal(err)
		}
	}
	size := (heapInUse() - before) / n
	t.Logf("a session that was used costs %d bytes more", size)
	if size > 24<<10 && !raced {
		t.Errorf("a session that was used costs %d bytes more, want at most 24 KiB", size)
	}
}

// A client that names the session of another client does not get it without the other client's
// certificate.
func TestSessionsBelongToCertificates(t *testing.T) {
	a := transporttest.NewAuthority(t)
	l := listen(t)
	s := anser.NewServer(silent, anser.TLS(&tls.Config{
		Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}, ClientCAs: a.Pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	run(t, s, l)
	join := func(own tls.Certificate) {
		nc, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: a.Pool, Certificates: []tls.Certificate{own}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		p := wirepeer.New(nc)
		settings := wire.DefaultSettings()
		settings.Session = 42
		p.Send(wirepeer.Hello(settings))
		if _, err := p.ReadHello(); err != nil {
			t.Fatal(err)
		}
	}
	victim, thief := a.Issue(t, time.Hour, "victim"), a.Issue(t, time.Hour, "thief")
	join(victim)
	join(victim)
	eventually(t, "the victim has a session", func() bool { return len(s.Sessions()) == 1 })
	join(thief)
	eventually(t, "the thief has another one", func() bool { return len(s.Sessions()) == 2 })
	eventually(t, "all are connected", func() bool { return s.Stats().Conns == 3 })
	if n := len(s.Sessions()); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}

// A client that does not read gets no more broadcasts, and does not delay other clients.
func TestBroadcastToAClientThatDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent, anser.WriteStall(time.Minute))
		run(t, s, network.Listen("a:1"))
		nc, err := network.Dial(context.Background(), "tcp", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		p := wirepeer.New(nc)
		settings := wire.DefaultSettings()
		settings.Session = 42
		p.Send(wirepeer.Hello(settings))
		if _, err := p.ReadHello(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(s.Sessions()) != 1 {
			t.Fatal("there is no session")
		}
		began := time.Now()
		message := make([]byte, 256<<10)
		sent := 0
		for range 100 {
			n, failed := s.Broadcast(context.Background(), "Client.Note", &message, nil)
			if sent += n; len(failed) > 0 {
				wantFault(t, failed[0].Err, anser.ResourceExhausted, anser.NotSent)
			}
			synctest.Wait()
		}
		if sent == 0 || sent > 30 || time.Since(began) > 0 {
			t.Errorf("%d messages of 256 KiB were taken in %v", sent, time.Since(began))
		}
		go io.Copy(io.Discard, nc)
		synctest.Wait()
		if n, failed := s.Broadcast(context.Background(), "Client.Note", &message, nil); n != 1 {
			t.Error(failed)
		}
	})
}
