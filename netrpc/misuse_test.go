package netrpc_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// Misuse is an error and never a panic, not even on a goroutine started by the package.
func TestMisuse(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	well := netrpc.NewClient(near)
	defer well.Close()
	ctx, first := t.Context(), func(_ any, err error) error { return err }
	var none context.Context // a nil context
	var noServer *netrpc.Server
	var noDialer *netrpc.Dialer
	quiet := &netrpc.Server{Logger: slog.New(slog.DiscardHandler)}
	defer quiet.Close()
	misuses := map[string]func() error{
		"NewProtocol of nothing": func() error {
			s := anser.NewServer(anser.Protocols(netrpc.NewProtocol("", nil, nil)), anser.Logger(quiet.Logger))
			return s.ListenAndServe("127.0.0.1:0")
		},
		"Call nil context":     func() error { return well.CallContext(none, "A.B", 1, nil) },
		"Go nil context":       func() error { return (<-well.GoContext(none, "A.B", 1, nil, nil).Done).Error },
		"nil dialer":           func() error { return first(noDialer.Dial(ctx, "tcp", "127.0.0.1:1")) },
		"nil dialer, HTTP":     func() error { return first(noDialer.DialHTTP(ctx, "tcp", "127.0.0.1:1", "")) },
		"Dial nil context":     func() error { return first(netrpc.DialContext(none, "tcp", "127.0.0.1:1")) },
		"nil server, Register": func() error { return noServer.Register(new(http.Client)) },
		"nil server, Name":     func() error { return noServer.RegisterName("A", new(http.Client)) },
		"nil server, Func":     func() error { return noServer.RegisterFunc("A.B", func(*int, *int) error { return nil }) },
		"nil server, Alias":    func() error { return noServer.Alias("A.B", "A.C") },
		"nil server, Shutdown": func() error { return noServer.Shutdown(ctx) },
		"nil server, Close":    func() error { return noServer.Close() },
		"nil server, Request":  func() error { return noServer.ServeRequest(jsonrpc.NewServerCodec(far)) },
		"nil server, Serve": func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			return noServer.Serve(l, nil)
		},
		"Serve nil":            func() error { return quiet.Serve(nil, nil) },
		"ServeRequest nil":     func() error { return quiet.ServeRequest(nil) },
		"Shutdown nil":         func() error { return quiet.Shutdown(none) },
		"jsonrpc over no conn": func() error { return jsonrpc.NewClient(nil).Call("A.B", 1, nil) },
	}
	for name, c := range map[string]*netrpc.Client{
		"nil": nil, "zero": new(netrpc.Client), "no conn": netrpc.NewClient(nil), "no codec": netrpc.NewClientWithCodec(nil),
	} {
		misuses[name+" client, Call"] = func() error { return c.Call("A.B", 1, nil) }
		misuses[name+" client, Go"] = func() error { return (<-c.Go("A.B", 1, nil, nil).Done).Error }
		if name != "no conn" {
			misuses[name+" client, Close"] = func() error { return c.Close() }
		}
	}
	for name, misuse := range misuses {
		t.Run(name, func(t *testing.T) {
			if err := misuse(); err == nil {
				t.Error("no error")
			}
		})
	}
	// Functions without an error result log it.
	quiet.ServeConn(nil)
	quiet.ServeCodec(nil)
	quiet.Accept(nil)
	quiet.HandleHTTPMux(nil, "/a", "/b")
	w := httptest.NewRecorder()
	noServer.ServeHTTP(w, httptest.NewRequest(http.MethodConnect, "http://a/", nil))
	if w.Code != http.StatusServiceUnavailable || noServer.Stats().Conns != 0 {
		t.Error(w.Code)
	}
}

// A codec function that returns nil ends a connection, not the process.
func TestServeWithoutCodec(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &netrpc.Server{Logger: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l, func(io.ReadWriteCloser) netrpc.ServerCodec { return nil }) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is served")
	}
	s.Close()
	<-ended
}
