// Package httpconnect carries Anser's connections over HTTP: a CONNECT request turns an HTTP
// connection into an Anser connection. This way Anser shares a port with a net/http server, like
// net/rpc's DialHTTP, and works through proxies.
//
//	h := httpconnect.NewHandler("http://127.0.0.1:8080")
//	http.Handle(httpconnect.Path, h)
//	go server.Serve(h)
//
//	c, err := anser.Dial("http://127.0.0.1:8080", httpconnect.HTTP())
//
// If the server uses HTTPS, clients dial https:// with the option [HTTPS]. On any address except
// loopback a server requires that, or [anser.TLS], and authentication.
package httpconnect

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/connqueue"
)

// Path is the default path of a [Handler].
const Path = "/_anser_"

// greeting is the answer to CONNECT.
const greeting = "HTTP/1.1 200 Connected to Anser\r\n\r\n"

// Handler turns CONNECT requests into connections. It is an [http.Handler], and a [net.Listener]
// for [anser.Server.Serve]. Closing it, as a server does when it is closed, rejects further
// requests with 503; existing connections belong to the server. All methods are safe for
// concurrent use.
type Handler struct{ queue *connqueue.Queue }

// NewHandler returns a handler. Address is its URL for clients, such as
// "https://10.0.0.7:443/rpc"; it is only used by Addr and [anser.Announce].
func NewHandler(address string) *Handler {
	return &Handler{connqueue.New(connqueue.ParseAddr(address, "http"))}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		http.Error(w, "this path accepts only CONNECT: it is for Anser's clients", http.StatusMethodNotAllowed)
		return
	}
	select {
	case <-h.queue.Done():
		http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
		return
	default:
	}
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "CONNECT works with HTTP/1.1 only", http.StatusHTTPVersionNotSupported)
		return
	}
	// A client waits for the answer. If the buffer already held bytes of it, the connection could
	// not be handed over.
	if rw.Reader.Buffered() > 0 {
		nc.Close()
		return
	}
	nc.SetDeadline(time.Now().Add(5 * time.Second)) // the server sets its own
	if _, err := nc.Write([]byte(greeting)); err != nil || !h.queue.Put(nc) {
		nc.Close()
	}
}

// Accept implements net.Listener.
func (h *Handler) Accept() (net.Conn, error) { return h.queue.Accept() }

// Close implements net.Listener.
func (h *Handler) Close() error { return h.queue.Close() }

// Addr implements net.Listener: it returns the address passed to NewHandler.
func (h *Handler) Addr() net.Addr { return h.queue.Addr() }

// Protection reports that an address with the scheme https uses TLS, and makes the server check
// each connection: it closes a connection from another machine without TLS, for example from a
// proxy that terminates TLS elsewhere, unless the server has the option [anser.TLS] or
// [anser.InsecurePublic].
func (h *Handler) Protection() anser.Protection {
	return anser.Protection{Encrypted: h.queue.Addr().Network() == "https", EachConn: true}
}

// DialFunc opens connections, like [net.Dialer.DialContext].
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Option configures [HTTP] and [HTTPS].
type Option func(*options)

type options struct {
	dial DialFunc
	err  error
}

// Via sets the function that connects to the server, for example [Proxy]; the default is a
// net.Dialer. If dial is nil, [anser.Dial] returns an error.
func Via(dial DialFunc) Option {
	return func(o *options) {
		if o.dial = dial; dial == nil {
			o.err = errors.New("httpconnect.Via: the function is nil: leave the option out for a net.Dialer")
		}
	}
}

// HTTP supports targets of the form "http://host:port", or "http://host:port/path" for a path
// other than [Path]. It does not encrypt; the option [anser.TLS] adds TLS to the connection after
// CONNECT.
func HTTP(opts ...Option) anser.Transport {
	o := newOptions(opts)
	return anser.Transport{Scheme: "http", Err: o.err, Dial: func(ctx context.Context, address string, _ *tls.Config) (net.Conn, error) {
		host, path := split(address)
		nc, err := o.dial(ctx, "tcp", host)
		if err != nil {
			return nil, err
		}
		return connect(ctx, nc, &http.Request{Method: http.MethodConnect, URL: &url.URL{Path: path}, Host: host}, host)
	}}
}

// HTTPS supports targets of the form "https://host:port", or "https://host:port/path" for a path
// other than [Path]. The option [anser.TLS] configures TLS; by default the system's roots are
// trusted.
func HTTPS(opts ...Option) anser.Transport {
	o := newOptions(opts)
	return anser.Transport{Scheme: "https", Secure: true, Err: o.err, Dial: func(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
		host, path := split(address)
		nc, err := o.dial(ctx, "tcp", host)
		if err != nil {
			return nil, err
		}
		if nc, err = secure(ctx, nc, config, host); err != nil {
			return nil, err
		}
		return connect(ctx, nc, &http.Request{Method: http.MethodConnect, URL: &url.URL{Path: path}, Host: host}, host)
	}}
}

func newOptions(opts []Option) options {
	o := options{dial: new(net.Dialer).DialContext}
	for _, opt := range opts {
		if opt == nil {
			o.err = errors.New("httpconnect: an option is nil")
			continue
		}
		opt(&o)
	}
	return o
}

func split(address string) (host, path string) {
	host, path, ok := strings.Cut(address, "/")
	if !ok {
		return host, Path
	}
	return host, "/" + path
}

// secure starts TLS on nc with HTTP/1.1, the only version whose connections can be taken over.
func secure(ctx context.Context, nc net.Conn, config *tls.Config, host string) (net.Conn, error) {
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	tc := tls.Client(nc, config)
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", host, err)
	}
	return tc, nil
}

// Proxy returns a dial function that connects through an HTTP proxy by CONNECT, for the option
// [anser.Dialer] or for [Via]. The URL is "http://proxy:3128", with "user:password@" if the proxy
// requires it, or "https://…" for a proxy with TLS, which config configures; nil means the
// system's roots.
func Proxy(proxyURL string, config *tls.Config) (DialFunc, error) {
	u, err := url.Parse(proxyURL)
	if err != nil {
		return nil, fmt.Errorf("the URL of the proxy cannot be parsed: use http://host:port") // err may hold a password
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Port() == "" || u.Hostname() == "" {
		return nil, fmt.Errorf("the proxy %q: use http://host:port or https://host:port", u.Redacted())
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName = u.Hostname()
	}
	header := http.Header{}
	if u.User != nil {
		password, _ := u.User.Password()
		header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if network != "tcp" {
			return nil, fmt.Errorf("a proxy connects to TCP addresses, not to %s", network)
		}
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return nil, fmt.Errorf("the proxy: %w", err)
		}
		if u.Scheme == "https" {
			if nc, err = secure(ctx, nc, config, u.Host); err != nil {
				return nil, fmt.Errorf("the proxy: %w", err)
			}
		}
		return connect(ctx, nc, &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: header}, "the proxy "+u.Host)
	}, nil
}

// connect sends the request over nc and returns the resulting connection.
func connect(ctx context.Context, nc net.Conn, r *http.Request, who string) (net.Conn, error) {
	if d, ok := ctx.Deadline(); ok {
		nc.SetDeadline(d)
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	err := exchange(nc, r, who)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	nc.SetDeadline(time.Time{})
	return nc, nil
}

// maxAnswer is the maximum length of the answer to CONNECT in bytes: net/http has no limit for
// headers.
const maxAnswer = 64 << 10

func exchange(nc net.Conn, r *http.Request, who string) error {
	if err := r.Write(nc); err != nil {
		return fmt.Errorf("CONNECT to %s: %w", who, err)
	}
	br := bufio.NewReader(io.LimitReader(nc, maxAnswer))
	resp, err := http.ReadResponse(br, r)
	if err != nil {
		return fmt.Errorf("CONNECT to %s: %w: is it an HTTP server?", who, err)
	}
	// The body is not closed: that would wait for all of it, and a successful answer has none,
	// whatever the header says.
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		return fmt.Errorf("%s answers %s: give its URL the right user:password@", who, resp.Status)
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("%s answers CONNECT with %s: is an httpconnect.Handler at this path?", who, resp.Status)
	case br.Buffered() > 0:
		return fmt.Errorf("%s sends data after its answer to CONNECT: it is no Anser server", who)
	}
	return nil
}
