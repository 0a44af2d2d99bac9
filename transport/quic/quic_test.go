package quic_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/transport/quic"
	"github.com/anser-rpc/anser/transport/transporttest"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

func TestQUIC(t *testing.T) {
	a := transporttest.NewAuthority(t)
	config := a.Server(t, true)
	transporttest.Run(t, transporttest.Transport{
		TLS: true, ClientCertificate: true,
		Client: []anser.DialOption{quic.Transport(), anser.TLS(a.Client(t))},
		Listen: func(address string) (net.Listener, string, error) {
			if address == "" {
				address = "127.0.0.1:0"
			}
			l, err := quic.Listen(address, config)
			if err != nil {
				return nil, "", err
			}
			t.Cleanup(func() {
				l.Close()
				l.Wait()
			})
			return l, "quic://" + l.Addr().String(), nil
		},
	})
}

// A closed listener refuses streams on existing QUIC connections, and the client then opens
// another connection, which reaches the next listener.
func TestStreamsOfAClosedListener(t *testing.T) {
	a := transporttest.NewAuthority(t)
	l, err := quic.Listen("127.0.0.1:0", a.Server(t, false))
	if err != nil {
		t.Fatal(err)
	}
	config := a.Client(t)
	config.ServerName = "127.0.0.1"
	tr := quic.Transport()
	dial := func() net.Conn {
		t.Helper()
		nc, err := tr.Dial(t.Context(), l.Addr().String(), config)
		if err != nil {
			t.Fatal(err)
		}
		nc.Write([]byte("x")) // a new stream is announced with its first byte
		return nc
	}
	client := dial()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	second := dial()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if server.RemoteAddr().String() != other.RemoteAddr().String() {
		t.Error("two streams of a client are on two connections of QUIC")
	}
	l.Close()
	late := dial()
	if _, err := late.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "refuses further streams") {
		t.Errorf("a late stream: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if nc, err := tr.Dial(ctx, l.Addr().String(), config); err == nil {
		nc.Close()
		t.Error("a further connection is made, although nobody listens")
	}
	// Existing streams continue until they end.
	server.Write([]byte("y"))
	b := make([]byte, 1)
	if _, err := client.Read(b); err != nil || b[0] != 'y' {
		t.Error(b, err)
	}
	for _, nc := range []net.Conn{client, second, late, server, other} {
		nc.Close()
		nc.Close()
	}
	l.Wait()
}

func TestMistakes(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "nowhere.invalid:1x"} {
		if _, err := quic.Listen(address, transporttest.NewAuthority(t).Server(t, false)); err == nil {
			t.Errorf("%q is taken", address)
		}
	}
	if _, err := quic.Listen("127.0.0.1:0", nil); err == nil || !strings.Contains(err.Error(), "no QUIC without TLS") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := quic.Transport().Dial(ctx, "127.0.0.1:9", transporttest.NewAuthority(t).Client(t)); err == nil {
		t.Error("nobody listens, and the dial succeeds")
	}
}

// QUIC is encrypted, and authenticates clients if its configuration requires certificates.
func TestInPublic(t *testing.T) {
	a := transporttest.NewAuthority(t)
	for _, demands := range []bool{false, true} {
		l, err := quic.Listen("0.0.0.0:0", a.Server(t, demands))
		if err != nil {
			t.Fatal(err)
		}
		s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
		if demands {
			l.Close() // Serve gets as far as Accept
		}
		err = s.Serve(l)
		s.Close()
		l.Wait()
		if strings.Contains(err.Error(), "no authentication: ") == demands {
			t.Errorf("demands certificates %v: %v", demands, err)
		}
	}
}
