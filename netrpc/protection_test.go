package netrpc_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// public is an address that other machines can reach.
var public = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234}

// A listener and connections, without and with TLS, whose local address is public.
type (
	listenerElsewhere struct{ net.Listener }
	connElsewhere     struct{ net.Conn }
	secureElsewhere   struct{ connElsewhere }
)

func (listenerElsewhere) Addr() net.Addr { return public }

func (connElsewhere) LocalAddr() net.Addr { return public }

func (secureElsewhere) ConnectionState() tls.ConnectionState { return tls.ConnectionState{} }

func acceptAll(context.Context, *netrpc.Credentials) (any, error) { return "anyone", nil }

// On public addresses connections are served only with TLS and Authenticate, by all functions of
// the server.
func TestServingInPublic(t *testing.T) {
	for name, c := range map[string]struct {
		server *netrpc.Server
		secure bool
		serves bool
	}{
		"plain":               {&netrpc.Server{}, false, false},
		"TLS":                 {&netrpc.Server{}, true, false},
		"Authenticate":        {&netrpc.Server{Authenticate: acceptAll}, false, false},
		"both":                {&netrpc.Server{Authenticate: acceptAll}, true, true},
		"with InsecurePublic": {&netrpc.Server{InsecurePublic: true}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.server
			s.Logger = slog.New(slog.DiscardHandler)
			defer s.Close()
			var l net.Listener = listenerElsewhere{listen(t)}
			var conn net.Conn
			near, far := net.Pipe()
			near.Close() // a served connection ends at once
			conn = connElsewhere{far}
			if c.secure {
				l, conn = tls.NewListener(l, nil), secureElsewhere{connElsewhere{far}}
			}
			if c.serves {
				l.Close() // Serve gets as far as Accept
			}
			if err := s.Serve(l, nil); c.serves == strings.Contains(err.Error(), "Server.InsecurePublic") {
				t.Errorf("Serve: %v", err)
			}
			before := s.Stats().Accepted
			s.ServeConn(conn)
			s.ServeCodec(jsonrpc.NewServerCodec(conn))
			if err := s.ServeRequest(jsonrpc.NewServerCodec(conn)); strings.Contains(err.Error(), "Server.InsecurePublic") == c.serves {
				t.Errorf("ServeRequest: %v", err)
			}
			if served := s.Stats().Accepted - before; served < 2 && c.serves || served != 0 && !c.serves {
				t.Errorf("%d connections are served", served)
			}
			for _, h := range []http.Handler{s, debugOf(s)} {
				r := httptest.NewRequest(http.MethodConnect, "/", nil)
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(public)))
				if c.secure {
					r.TLS = new(tls.ConnectionState)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if (w.Code == http.StatusForbidden) == c.serves {
					t.Errorf("the request is answered with %d", w.Code)
				}
			}
		})
	}
	if err := new(netrpc.Server).Serve(nil, nil); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Error(err)
	}
}

// debugOf returns the debug page of the server.
func debugOf(s *netrpc.Server) http.Handler {
	mux := http.NewServeMux()
	s.HandleHTTPMux(mux, "", "/")
	return mux
}
