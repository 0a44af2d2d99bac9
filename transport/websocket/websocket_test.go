package websocket_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/transport/websocket"
	"github.com/anser-rpc/anser/wire"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// site is an HTTP server that includes a handler of Anser.
type site struct {
	*websocket.Handler
	server *http.Server
	addr   net.Addr
	served chan struct{}
}

func (s *site) Close() error {
	s.Handler.Close()
	s.server.Close() // it does not track the connections that were taken over
	<-s.served
	return nil
}

func (s *site) Addr() net.Addr { return s.addr }

func listen(address, scheme string, config *tls.Config) (*site, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &site{addr: l.Addr(), served: make(chan struct{})}
	s.Handler = websocket.NewHandler(scheme + "://" + l.Addr().String() + "/anser")
	mux := http.NewServeMux()
	mux.Handle("/anser", s.Handler)
	s.server = &http.Server{Handler: mux, TLSConfig: config.Clone(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() {
		defer close(s.served)
		if config != nil {
			s.server.ServeTLS(l, "", "")
		} else {
			s.server.Serve(l)
		}
	}()
	return s, nil
}

func TestWS(t *testing.T) {
	transporttest.Run(t, transporttest.Transport{
		Client: []anser.DialOption{websocket.WS()},
		Listen: func(address string) (net.Listener, string, error) {
			s, err := listen(address, "ws", nil)
			if err != nil {
				return nil, "", err
			}
			return s, "ws://" + s.addr.String() + "/anser", nil
		},
	})
}

func TestWSS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	config := a.Server(t, true)
	transporttest.Run(t, transporttest.Transport{
		TLS: true, ClientCertificate: true,
		Client: []anser.DialOption{websocket.WSS(), anser.TLS(a.Client(t))},
		Listen: func(address string) (net.Listener, string, error) {
			s, err := listen(address, "wss", config)
			if err != nil {
				return nil, "", err
			}
			return s, "wss://" + s.addr.String() + "/anser", nil
		},
	})
}

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// serve runs a server behind a site until the test ends.
func serve(t *testing.T) (*anser.Server, *site) {
	t.Helper()
	s, err := listen("", "ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	server := anser.NewServer(silent)
	anser.Handle(server, "Test.Echo", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
	})
	return server, s
}

func TestHandshakeMistakes(t *testing.T) {
	_, s := serve(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for target, want := range map[string]string{
		"ws://" + plain.Listener.Addr().String() + "/anser": "is a websocket.Handler at this path?",
		"ws://" + s.addr.String() + "/other":                "is a websocket.Handler at this path?",
	} {
		c, err := anser.Dial(target, websocket.WS(), silent, anser.Timeout(time.Minute), anser.HandshakeTimeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		err = c.Call(t.Context(), "Test.Echo", new([]byte), new([]byte), anser.WithFailMode(anser.Failfast))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", target, err)
		}
		c.Close()
	}
	// A page of another host cannot connect, and neither can a client without the subprotocol.
	url := "ws://" + s.addr.String() + "/anser"
	_, resp, err := ws.Dial(t.Context(), url, &ws.DialOptions{Subprotocols: []string{websocket.Subprotocol}, HTTPHeader: http.Header{"Origin": {"http://evil.example"}}})
	if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("another origin: %v", err)
	}
	c, _, err := ws.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if _, _, err := c.Read(t.Context()); ws.CloseStatus(err) != ws.StatusPolicyViolation {
		t.Errorf("no subprotocol: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Row 100 of the bad inputs, and similar ones: the connection ends, a counter records why, and
// nothing runs.
func TestBadMessages(t *testing.T) {
	server, s := serve(t)
	request := func(size int) []byte {
		b := wirepeer.Hello(wire.DefaultSettings())
		b = wire.AppendMethod(b, 1, "Test.Echo")
		return append(b, wirepeer.Request(1, 1, make([]byte, size))...)
	}
	failed := func(st anser.ServerStats) int64 { return st.HandshakeFailed }
	tooLarge := func(st anser.ServerStats) int64 { return st.Closed["FRAME_TOO_LARGE"] }
	for name, row := range map[string]struct {
		kind    ws.MessageType
		message []byte
		want    ws.StatusCode
		counter func(anser.ServerStats) int64
	}{
		"row100 oversized": {ws.MessageBinary, request(websocket.MaxMessage), ws.StatusMessageTooBig, tooLarge},
		"row100b huge":     {ws.MessageBinary, request(3 << 20), ws.StatusMessageTooBig, tooLarge},
		"text":             {ws.MessageText, request(10), ws.StatusUnsupportedData, failed},
	} {
		t.Run(name, func(t *testing.T) {
			before := row.counter(server.Stats())
			c, _, err := ws.Dial(t.Context(), "ws://"+s.addr.String()+"/anser", &ws.DialOptions{Subprotocols: []string{websocket.Subprotocol}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			c.Write(t.Context(), row.kind, row.message) // the peer may close before it has read everything
			for err == nil {
				_, _, err = c.Read(t.Context())
			}
			// A peer with unread input resets the connection, and its last data may be lost.
			if s := ws.CloseStatus(err); s != row.want && s != -1 {
				t.Errorf("%v: want the status %d", err, row.want)
			}
			for end := time.Now().Add(time.Minute); row.counter(server.Stats()) == before; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the end is not counted: %+v", server.Stats())
				}
			}
			if n := server.Stats().Methods["Test.Echo"].Calls; n != 0 {
				t.Errorf("the handler ran %d times", n)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// pair returns both ends of a connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	s, err := listen("", "ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	client, err = websocket.WS().Dial(t.Context(), s.addr.String()+"/anser", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if server, err = s.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

func TestConn(t *testing.T) {
	client, server := pair(t)
	if client.LocalAddr().String() != server.RemoteAddr().String() || client.RemoteAddr().String() != server.LocalAddr().String() {
		t.Error(client.LocalAddr(), server.RemoteAddr(), client.RemoteAddr(), server.LocalAddr())
	}
	b := make([]byte, 4)
	// A deadline of Read has no effect on the connection.
	client.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := client.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	client.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := client.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	client.SetReadDeadline(time.Time{})
	if _, err := server.Write(make([]byte, 3*websocket.MaxMessage)); err != nil {
		t.Error(err)
	}
	server.Write([]byte("last"))
	server.(interface{ CloseWrite() error }).CloseWrite()
	all, err := io.ReadAll(client)
	if len(all) != 3*websocket.MaxMessage+4 || err != nil {
		t.Error(len(all), err)
	}
	// The other direction stays open.
	client.Write([]byte("well"))
	if _, err := io.ReadFull(server, b); string(b) != "well" || err != nil {
		t.Error(string(b), err)
	}
	client.Close()
	if _, err := client.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := server.Read(b); err == nil {
		t.Error("the other side does not see the end")
	}
}

// A blocked write ends at its deadline.
func TestWriteDeadline(t *testing.T) {
	client, _ := pair(t)
	done := make(chan error, 1)
	go func() {
		for {
			if _, err := client.Write(make([]byte, 64<<10)); err != nil {
				done <- err
				return
			}
		}
	}()
	client.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if err := <-done; err == nil {
		t.Error("the write went on")
	}
}

// A handler counts as a listener reachable from other machines, whatever its address is.
func TestInPublic(t *testing.T) {
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	for address, want := range map[string]string{"ws://192.0.2.1:80/": "no TLS: ", "wss://192.0.2.1:443/": "", "ws://127.0.0.1:80/": ""} {
		s, h := anser.NewServer(silent), websocket.NewHandler(address)
		if want == "" {
			h.Close() // Serve gets as far as Accept
		}
		err := s.Serve(h)
		s.Close()
		if strings.Contains(err.Error(), "anser.InsecurePublic") != (want != "") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
