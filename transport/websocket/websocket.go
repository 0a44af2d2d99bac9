// Package websocket carries Anser's connections over WebSocket, for servers that can be reached
// only through HTTP proxies and gateways. The bytes of a connection are sent in binary messages
// whose boundaries have no meaning; docs/protocol.md §1 has the details.
//
//	h := websocket.NewHandler("wss://rpc.example.org:443/anser")
//	http.Handle("/anser", h)
//	go server.Serve(h)
//
//	c, err := anser.Dial("wss://rpc.example.org:443/anser", websocket.WSS())
package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/asyncconn"
	"github.com/anser-rpc/anser/internal/connqueue"
)

// Subprotocol is the subprotocol of both sides in the WebSocket handshake.
const Subprotocol = "anser.1"

// MaxMessage is the maximum size of a received WebSocket message in bytes; a larger one closes the
// connection with the status 1009. It does not bound the messages of calls, which are split.
const MaxMessage = 128 << 10

// Handler turns requests into connections. It is an [http.Handler], and a [net.Listener] for
// [anser.Server.Serve]. Closing it, as a server does when it is closed, rejects further requests
// with 503; existing connections belong to the server. All methods are safe for concurrent use.
type Handler struct {
	queue   *connqueue.Queue
	origins []string
	err     error
}

// HandlerOption configures [NewHandler].
type HandlerOption func(*Handler)

// Origins allows browsers to connect from pages of other hosts than the server's own: patterns of
// hosts in the syntax of path.Match. Requests without an Origin, which do not come from browsers,
// are always allowed.
func Origins(patterns ...string) HandlerOption {
	return func(h *Handler) { h.origins = append(h.origins, patterns...) }
}

// NewHandler returns a handler. Address is its URL for clients, such as
// "wss://10.0.0.7:443/anser"; it is only used by Addr and [anser.Announce]. A nil option is an
// error of Accept, and therefore of [anser.Server.Serve].
func NewHandler(address string, opts ...HandlerOption) *Handler {
	h := &Handler{queue: connqueue.New(connqueue.ParseAddr(address, "ws"))}
	for _, opt := range opts {
		if opt == nil {
			h.err = errors.New("websocket.NewHandler: an option is nil")
			h.queue.Close() // it answers 503 from now on
			continue
		}
		opt(h)
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-h.queue.Done():
		http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
		return
	default:
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, OriginPatterns: h.origins})
	if err != nil {
		return // it has answered
	}
	if ws.Subprotocol() != Subprotocol {
		ws.Close(websocket.StatusPolicyViolation, "the subprotocol must be "+Subprotocol)
		return
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	c := newConn(ws, local, connqueue.Addr{Scheme: "tcp", Address: r.RemoteAddr})
	var nc net.Conn = c
	if r.TLS != nil {
		nc = &tlsConn{c, r.TLS}
	}
	if !h.queue.Put(nc) {
		nc.Close()
	}
}

// Accept implements net.Listener.
func (h *Handler) Accept() (net.Conn, error) {
	if h.err != nil {
		return nil, h.err
	}
	return h.queue.Accept()
}

// Close implements net.Listener.
func (h *Handler) Close() error { return h.queue.Close() }

// Addr implements net.Listener: it returns the address passed to NewHandler.
func (h *Handler) Addr() net.Addr { return h.queue.Addr() }

// Protection reports that an address with the scheme wss uses TLS, and makes the server check each
// connection: it closes a connection from another machine without TLS, for example from a proxy
// that terminates TLS elsewhere, unless the server has the option [anser.TLS] or
// [anser.InsecurePublic].
func (h *Handler) Protection() anser.Protection {
	return anser.Protection{Encrypted: h.queue.Addr().Network() == "wss", EachConn: true}
}

// Option configures [WS] and [WSS].
type Option func(*options)

type options struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	header http.Header
	err    error
}

// Via sets the function that connects to the server, for example httpconnect.Proxy; the default is
// a net.Dialer. If dial is nil, [anser.Dial] returns an error.
func Via(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(o *options) {
		if o.dial = dial; dial == nil {
			o.err = errors.New("websocket.Via: the function is nil: leave the option out for a net.Dialer")
		}
	}
}

// Header adds a header field to the request, for gateways that require a token.
func Header(name, value string) Option {
	return func(o *options) { o.header.Add(name, value) }
}

// WS supports targets of the form "ws://host:port/path". It does not encrypt; the option
// [anser.TLS] adds end-to-end TLS inside the messages.
func WS(opts ...Option) anser.Transport { return transport("ws", opts) }

// WSS supports targets of the form "wss://host:port/path". The option [anser.TLS] configures TLS;
// by default the system's roots are trusted.
func WSS(opts ...Option) anser.Transport { return transport("wss", opts) }

func transport(scheme string, opts []Option) anser.Transport {
	o := options{dial: new(net.Dialer).DialContext, header: make(http.Header)}
	for _, opt := range opts {
		if opt == nil {
			o.err = errors.New("websocket: an option is nil")
			continue
		}
		opt(&o)
	}
	return anser.Transport{Scheme: scheme, Secure: scheme == "wss", Err: o.err, Dial: func(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
		return o.connect(ctx, scheme+"://"+address, config)
	}}
}

func (o *options) connect(ctx context.Context, url string, config *tls.Config) (net.Conn, error) {
	var below net.Conn // for its addresses
	t := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := o.dial(ctx, network, address)
		below = nc
		return nc, err
	}}
	defer t.CloseIdleConnections()
	if config != nil {
		t.TLSClientConfig = config.Clone()
		t.TLSClientConfig.NextProtos = []string{"http/1.1"} // the only version whose connections can be taken over
	}
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: t}, HTTPHeader: o.header, Subprotocols: []string{Subprotocol},
	})
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("%s answers %s: is a websocket.Handler at this path? %w", url, resp.Status, err)
		}
		return nil, err
	}
	if ws.Subprotocol() != Subprotocol {
		ws.CloseNow()
		return nil, fmt.Errorf("%s does not speak the subprotocol %s: is it a websocket.Handler?", url, Subprotocol)
	}
	return newConn(ws, below.LocalAddr(), below.RemoteAddr()), nil
}

func newConn(ws *websocket.Conn, local, remote net.Addr) *asyncconn.Conn {
	ws.SetReadLimit(MaxMessage)
	return asyncconn.New(&messages{ws: ws}, local, remote)
}
