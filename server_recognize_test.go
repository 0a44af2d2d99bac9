package anser_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// shoutProtocol is a protocol that begins with its name, and answers with what it got.
type shoutProtocol struct{ name string }

func (p shoutProtocol) Name() string { return p.name }

func (p shoutProtocol) NextProtos() []string { return []string{strings.ToLower(p.name)} }

func (p shoutProtocol) Begins(begin []byte) (is, may bool) {
	n := min(len(begin), len(p.name))
	may = string(begin[:n]) == p.name[:n]
	return may && n == len(p.name), may
}

func (p shoutProtocol) Serve(s *anser.Server, in anser.Incoming) error {
	c, err := s.OpenConn(in.Peer, anser.ProtocolHooks{
		Drain: func(time.Duration) {}, Close: func(error) { in.Conn.Close() },
	})
	if err != nil {
		return err
	}
	_, err = in.Conn.Write(append([]byte(p.name+" got "), in.Begin...))
	c.End(err)
	return err
}

// serveProtocols serves two protocols besides Anser's own.
func serveProtocols(t *testing.T, opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	l := listen(t)
	return serveProtocolsOn(t, l, opts...), l.Addr().String()
}

func serveProtocolsOn(t *testing.T, l net.Listener, opts ...anser.ServerOption) *anser.Server {
	t.Helper()
	s := anser.NewServer(append(opts, anser.Protocols(shoutProtocol{"HOOT"}, shoutProtocol{"HONK"}), anser.NoSignals())...)
	served := make(chan struct{})
	go func() {
		s.Serve(l)
		close(served)
	}()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	return s
}

// The first bytes decide, however they arrive, and are not lost.
func TestRecognize(t *testing.T) {
	s, address := serveProtocols(t)
	for _, row := range []struct {
		parts []string
		want  string // "" means that the connection is closed without an answer
	}{
		{[]string{"HOOT!"}, "HOOT got HOOT!"},
		{[]string{"HONK"}, "HONK got HONK"},
		{[]string{"H", "O", "N", "K and more"}, "HONK got HONK and more"},
		{[]string{"HO", "OT"}, "HOOT got HOOT"},
		{[]string{"hoot"}, ""},
		{[]string{"HOOX"}, ""},
		{[]string{"\x00\x01\x02"}, ""},
	} {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range row.parts {
			if i > 0 {
				time.Sleep(10 * time.Millisecond) // so that the parts arrive one by one
			}
			io.WriteString(nc, part)
		}
		nc.SetReadDeadline(time.Now().Add(time.Minute))
		got, err := io.ReadAll(nc)
		if string(got) != row.want {
			t.Errorf("%q is answered with %q, %v, want %q", row.parts, got, err, row.want)
		}
		nc.Close()
	}
	c, err := anser.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := anser.Call[anser.MethodList](t.Context(), c, anser.MethodsName, new(anser.None)); err != nil {
		t.Errorf("a client of Anser on the same port: %v", err)
	}
	eventually(t, "only the client of Anser is left", func() bool { return s.Stats().Conns == 1 })
}

// A connection of another protocol counts once.
func TestRecognizedConnsAreCountedOnce(t *testing.T) {
	s, address := serveProtocols(t)
	for range 3 {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		nc.Write([]byte("HOOT"))
		io.ReadAll(nc)
		nc.Close()
	}
	if n := s.Stats().Accepted; n != 3 {
		t.Errorf("%d connections are counted, want 3", n)
	}
}

// A client that sends nothing, or not enough, loses its connection in time and gets no answer in
// Anser's protocol, which it may not speak.
func TestRecognizeSilence(t *testing.T) {
	_, address := serveProtocols(t, anser.HandshakeTimeout(50*time.Millisecond))
	for _, begin := range []string{"", "HO"} {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(nc, begin)
		nc.SetReadDeadline(time.Now().Add(time.Minute))
		if got, _ := io.ReadAll(nc); len(got) > 0 {
			t.Errorf("after %q the client gets %q", begin, got)
		}
		nc.Close()
	}
}

// politeProtocol has an answer for clients that say nothing.
type politeProtocol struct{ shoutProtocol }

const farewellText = "HTTP/1.1 408 Request Timeout\r\n\r\n"

func (politeProtocol) Farewell() []byte { return []byte(farewellText) }

// rudeProtocol panics in place of one.
type rudeProtocol struct{ shoutProtocol }

func (rudeProtocol) Farewell() []byte { panic("rude") }

// A client that has begun no protocol learns that its connection ends without a request: when its
// handshake is late, and when its place in the crowd of handshakes is given to another.
func TestFarewell(t *testing.T) {
	t.Run("timeout", func(t *testing.T) {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			farewells(t, network.Listen("a:1"), network.Dial, anser.HandshakeTimeout(time.Second))
		})
	})
	t.Run("lost places", func(t *testing.T) {
		farewells(t, listen(t), new(net.Dialer).DialContext, anser.HandshakeTimeout(time.Hour), anser.MaxHandshakes(1))
	})
}

func farewells(t *testing.T, l net.Listener, dial func(ctx context.Context, network, address string) (net.Conn, error), opts ...anser.ServerOption) {
	t.Helper()
	polite := anser.Protocols(shoutProtocol{"HISS"}, politeProtocol{shoutProtocol{"HOWL"}})
	s := serveProtocolsOn(t, l, append(opts, polite)...)
	var conns []net.Conn
	wants := make(map[net.Conn]string)
	for _, row := range [][2]string{{"", farewellText}, {"HO", farewellText}, {string(wire.Magic[:2]), ""}, {"", ""}} {
		nc, err := dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		io.WriteString(nc, row[0])
		conns, wants[nc] = append(conns, nc), row[1]
	}
	for _, nc := range conns[:3] { // the last one may keep its place
		nc.SetReadDeadline(time.Now().Add(time.Minute))
		if got, err := io.ReadAll(nc); string(got) != wants[nc] || err != nil {
			t.Errorf("the client gets %q, %v, want %q", got, err, wants[nc])
		}
	}
	if n := s.Stats().Panics; n != 0 {
		t.Errorf("%d panics", n)
	}
}

// Over TLS it comes after the handshake of TLS.
func TestFarewellOverTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	_, address := serveProtocols(t, anser.HandshakeTimeout(time.Hour), anser.MaxHandshakes(1), anser.TLS(a.Server(t, false)),
		anser.Protocols(politeProtocol{shoutProtocol{"HOWL"}}))
	tc, err := tls.Dial("tcp", address, a.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer tc.Close()
	nc, err := net.Dial("tcp", address) // which gets its place
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	tc.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := io.ReadAll(tc); string(got) != farewellText || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A panic of a farewell ends its connection only.
func TestFarewellPanics(t *testing.T) {
	s, address := serveProtocols(t, anser.HandshakeTimeout(50*time.Millisecond), silent, anser.Protocols(rudeProtocol{shoutProtocol{"HOWL"}}))
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := io.ReadAll(nc); len(got) > 0 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	eventually(t, "the panic is counted", func() bool { return s.Stats().Panics == 1 })
}

// lateConn is a connection whose first bytes are on their way for a while.
type lateConn struct {
	net.Conn
	late sync.Once
}

func (c *lateConn) Write(p []byte) (int, error) {
	c.late.Do(func() { time.Sleep(2 * time.Second) })
	return c.Conn.Write(p)
}

// A client whose first bytes come too late gets the words of another protocol. It does not take the
// server for one that speaks no other, and tries again.
func TestFarewellToALateClient(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo},
			anser.Protocols(politeProtocol{shoutProtocol{"HOWL"}}), anser.HandshakeTimeout(time.Second))
		var dialed atomic.Int32
		c := dial(t, "a:1", anser.Conns(1), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			nc, err := network.Dial(ctx, kind, address)
			if dialed.Add(1) == 1 && err == nil {
				nc = &lateConn{Conn: nc}
			}
			return nc, err
		}))
		if _, err := call(t.Context(), c, "Echo.Say", "", anser.Timeout(time.Minute)); err != nil {
			t.Error(err)
		}
		if n, failed := dialed.Load(), s.Stats().HandshakeFailed; n != 2 || failed != 1 {
			t.Errorf("%d connections, of which %d failed, want 2 and 1", n, failed)
		}
	})
}

// A configuration that is chosen for each connection offers the protocols too.
func TestRecognizeChosenTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	chosen := &tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}, NextProtos: []string{anser.ALPN}}
	choose := func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
	_, address := serveProtocols(t, anser.TLS(&tls.Config{NextProtos: []string{anser.ALPN}, GetConfigForClient: choose}))
	for _, name := range []string{"hoot", anser.ALPN} {
		tc, err := tls.Dial("tcp", address, &tls.Config{RootCAs: a.Client(t).RootCAs, NextProtos: []string{name}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := tc.ConnectionState().NegotiatedProtocol; got != name {
			t.Errorf("a client that offers %s gets %q", name, got)
		}
		tc.Close()
	}
}

// Over TLS the protocols are offered by their names, and a list of the configuration is left alone.
func TestRecognizeTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	own := &tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}}
	_, address := serveProtocols(t, anser.TLS(own))
	for _, offer := range [][]string{{"honk"}, {"hoot"}, {anser.ALPN}, nil} {
		tc, err := tls.Dial("tcp", address, &tls.Config{RootCAs: a.Client(t).RootCAs, NextProtos: offer})
		if err != nil {
			t.Fatalf("a client that offers %q: %v", offer, err)
		}
		if got := tc.ConnectionState().NegotiatedProtocol; len(offer) > 0 && got != offer[0] {
			t.Errorf("%q was negotiated, want %q", got, offer[0])
		}
		io.WriteString(tc, "HONK")
		tc.SetReadDeadline(time.Now().Add(time.Minute))
		if got, err := io.ReadAll(tc); string(got) != "HONK got HONK" {
			t.Errorf("the answer is %q, %v", got, err)
		}
		tc.Close()
	}
	only := own.Clone()
	only.NextProtos = []string{"hoot"}
	_, address = serveProtocols(t, anser.TLS(only))
	if tc, err := tls.Dial("tcp", address, &tls.Config{RootCAs: a.Client(t).RootCAs, NextProtos: []string{"honk"}}); err == nil {
		tc.Close()
		t.Error("a protocol is negotiated that the configuration does not have")
	}
	if !slices.Equal(only.NextProtos, []string{"hoot"}) {
		t.Errorf("the configuration was changed to %q", only.NextProtos)
	}
}

// An option without a protocol is a mistake that Serve returns.
func TestProtocolsNil(t *testing.T) {
	s := anser.NewServer(anser.Protocols(nil))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), "anser.Protocols") {
		t.Errorf("the error is %v", err)
	}
}

// panicking is a protocol that is broken.
type panicking struct{ shoutProtocol }

func (panicking) Serve(*anser.Server, anser.Incoming) error { panic("broken") }

func (p panicking) Begins(begin []byte) (is, may bool) {
	if begin[0] == '!' {
		panic("broken, too")
	}
	return p.shoutProtocol.Begins(begin)
}

// A protocol that panics loses its connection, and nothing else happens.
func TestProtocolPanics(t *testing.T) {
	s := anser.NewServer(anser.Protocols(panicking{shoutProtocol{"HOOT"}}, shoutProtocol{"HONK"}), anser.NoSignals(), silent)
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		s.Serve(l)
		close(served)
	}()
	defer func() {
		s.Close()
		<-served
	}()
	for begin, want := range map[string]string{"HOOT": "", "HONK": "HONK got HONK", "!": ""} {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(nc, begin)
		nc.SetReadDeadline(time.Now().Add(time.Minute))
		if got, _ := io.ReadAll(nc); string(got) != want {
			t.Errorf("%s is answered with %q, want %q", begin, got, want)
		}
		nc.Close()
	}
	if n := s.Stats().Panics; n != 2 {
		t.Errorf("%d panics were counted, want 2", n)
	}
}

// picky is a protocol that serves no method with a certain name.
type picky struct{ shoutProtocol }

func (picky) CheckServer(s *anser.Server) error {
	if _, bad := s.Method("Echo.Bad"); bad {
		return errors.New("Echo.Bad has no place")
	}
	return nil
}

// A protocol tells what is wrong with the methods before the server serves.
func TestProtocolChecker(t *testing.T) {
	say := func(_ context.Context, in *string) (*string, error) { return in, nil }
	for name, bad := range map[string]bool{"Echo.Good": false, "Echo.Bad": true} {
		s := anser.NewServer(anser.Protocols(picky{shoutProtocol{"HOOT"}}), anser.NoSignals())
		before := s.MethodsVersion()
		if err := anser.Handle(s, name, say); err != nil {
			t.Fatal(err)
		}
		if after := s.MethodsVersion(); after <= before {
			t.Errorf("with one more method, the version is %d after %d", after, before)
		}
		l, err := s.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if !bad {
			s.Close() // else it serves for ever
		}
		err = s.Serve(l)
		if told := err != nil && strings.Contains(err.Error(), "cannot serve: Echo.Bad has no place"); told != bad {
			t.Errorf("%s: Serve: %v", name, err)
		}
		if _, err := l.Accept(); err == nil {
			t.Errorf("%s: the listener is open", name)
		}
	}
}
