package netrpc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/anser-rpc/anser/internal/link"
)

// Dialer makes clients. The zero value behaves like [Dial] and [DialHTTP]. Its fields must not be
// modified while it is used.
type Dialer struct {
	// Timeout bounds connecting, including the TLS handshake, the answer to CONNECT and the login.
	// The default is 5 s; a negative value means that only the context applies.
	Timeout time.Duration

	// TLS, if it is set, enables TLS. An empty ServerName is taken from the address, and unless it
	// sets a version, the minimum is TLS 1.3.
	TLS *tls.Config

	// Header is sent with the CONNECT request of DialHTTP, for example an Authorization.
	Header http.Header

	// Token authenticates the client: in a header "Authorization: Bearer" with DialHTTP, otherwise
	// by a call of [LoginMethod]. It is sent only over TLS, to loopback addresses and to Unix
	// sockets, unless InsecureToken is set.
	Token         string
	InsecureToken bool

	// MaxMessage is the maximum size of a reply in bytes; the default is 4 MiB. A larger one is an
	// error of its call; if it cannot be skipped, the connection is closed. A negative value is an
	// error.
	MaxMessage int

	// Stall is how long a write may make no progress before the connection is closed; the default
	// is 10 s, a negative value means no limit.
	Stall time.Duration

	// ReadTimeout bounds the time from the first to the last byte of a reply; 0, the default,
	// means no limit. When it is exceeded, the connection is closed. The time between replies is
	// not limited.
	ReadTimeout time.Duration

	// Net opens connections; the default is that of a net.Dialer.
	Net func(ctx context.Context, network, address string) (net.Conn, error)

	// Codec creates the codec of a connection, for example jsonrpc.NewClientCodec; nil means gob.
	Codec func(io.ReadWriteCloser) ClientCodec
}

// Dial connects to a server. The context bounds connecting, and has no effect on the client
// afterwards.
func (d *Dialer) Dial(ctx context.Context, network, address string) (*Client, error) {
	if err := d.usable(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := d.bound(ctx)
	defer cancel()
	conn, err := d.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return d.client(ctx, conn, nil, d.Token)
}

// DialHTTP connects to a server behind HTTP, under path; "" means [DefaultRPCPath].
func (d *Dialer) DialHTTP(ctx context.Context, network, address, path string) (*Client, error) {
	if err := d.usable(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := d.bound(ctx)
	defer cancel()
	if path == "" {
		path = DefaultRPCPath
	}
	conn, err := d.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	early, err := d.upgrade(ctx, conn, path)
	if err != nil {
		conn.Close()
		return nil, &net.OpError{Op: "dial-http", Net: network + " " + address, Err: err}
	}
	return d.client(ctx, conn, early, "")
}

func (d *Dialer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.Timeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, or(d.Timeout, 5*time.Second))
}

// connect opens the connection, with TLS if that is set.
func (d *Dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if err := d.mistake(); err != nil {
		return nil, err
	}
	dial := d.Net
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if d.Token != "" && d.TLS == nil && !d.InsecureToken && !isLocal(conn.RemoteAddr()) {
		conn.Close()
		return nil, fmt.Errorf("dial %s: the token would go over the network in the clear: set Dialer.TLS, or accept the risk with Dialer.InsecureToken", address)
	}
	if d.TLS == nil {
		return conn, nil
	}
	config := d.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = address
		if host, _, err := net.SplitHostPort(address); err == nil {
			config.ServerName = host
		}
	}
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS13
	}
	tc := tls.Client(conn, config)
	if err := tc.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("dial %s: TLS: %w", address, err)
	}
	return tc, nil
}

func isLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return a != nil && a.Network() == "pipe"
}

// upgrade requests the connection from the HTTP server, and returns data that the RPC server has
// already sent.
func (d *Dialer) upgrade(ctx context.Context, conn net.Conn, path string) (early []byte, err error) {
	if strings.ContainsAny(path, " \r\n") || !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("the path %q cannot be asked for: want one such as %s", path, DefaultRPCPath)
	}
	header := d.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	if d.Token != "" {
		header.Set("Authorization", "Bearer "+d.Token)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
	}()
	request := bytes.NewBufferString("CONNECT " + path + " HTTP/1.0\r\n")
	if err := header.Write(request); err != nil {
		return nil, err
	}
	request.WriteString("\r\n")
	if _, err := conn.Write(request.Bytes()); err != nil {
		return nil, d.because(ctx, err)
	}
	in := bufio.NewReader(io.LimitReader(conn, maxHeader))
	response, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, d.because(ctx, err)
	}
	if response.Status != connected {
		return nil, errors.New("unexpected HTTP response: " + response.Status)
	}
	early, err = in.Peek(in.Buffered())
	return early, err
}

// because returns the cause of the context's end, if it has ended, otherwise err.
func (d *Dialer) because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// client creates the client of a connection, and logs in if there is a token.
func (d *Dialer) client(ctx context.Context, conn net.Conn, early []byte, token string) (*Client, error) {
	var rwc io.ReadWriteCloser = conn
	var codec ClientCodec
	if d.Codec == nil {
		codec = &gobClientCodec{gobStream: newGobStream(link.New(conn, early))}
	} else {
		if len(early) > 0 {
			rwc = &prefixed{Conn: conn, early: early}
		}
		codec = d.Codec(rwc)
	}
	if linked, ok := codec.(link.Linked); ok {
		stall := d.Stall
		if stall == 0 {
			stall = defaultStall
		}
		linked.Link().SetLimits(link.Limits{MaxMessage: or(d.MaxMessage, defaultMaxMessage), Stall: max(stall, 0), ReadTimeout: d.ReadTimeout})
	}
	c := newClient(codec)
	if token == "" {
		return c, nil
	}
	var ok bool
	if err := c.CallContext(ctx, LoginMethod, token, &ok); err != nil {
		c.Close()
		return nil, fmt.Errorf("log in at %s: %w", conn.RemoteAddr(), err)
	}
	return c, nil
}

// prefixed is a connection with data that was already read from it.
type prefixed struct {
	net.Conn
	early []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.early) > 0 {
		n := copy(b, p.early)
		p.early = p.early[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// Dial connects to a server at a network address, as in net.Dial. Like all functions without a
// timeout parameter it gives up after 5 s.
func Dial(network, address string) (*Client, error) {
	return DialContext(context.Background(), network, address)
}

// DialContext is Dial with a context, which bounds connecting only.
func DialContext(ctx context.Context, network, address string) (*Client, error) {
	return new(Dialer).Dial(ctx, network, address)
}

// DialTimeout is Dial with a timeout; 0 means 5 s.
func DialTimeout(network, address string, timeout time.Duration) (*Client, error) {
	return (&Dialer{Timeout: timeout}).Dial(context.Background(), network, address)
}

// DialTLS is Dial over TLS; with a nil config it trusts the system's roots. See [Dialer.TLS].
func DialTLS(network, address string, config *tls.Config) (*Client, error) {
	return (&Dialer{TLS: orEmpty(config)}).Dial(context.Background(), network, address)
}

func orEmpty(config *tls.Config) *tls.Config {
	if config == nil {
		return new(tls.Config)
	}
	return config
}

// DialHTTP connects to a server behind HTTP, under [DefaultRPCPath].
func DialHTTP(network, address string) (*Client, error) {
	return DialHTTPPath(network, address, DefaultRPCPath)
}

// DialHTTPPath is DialHTTP under another path.
func DialHTTPPath(network, address, path string) (*Client, error) {
	return DialHTTPPathContext(context.Background(), network, address, path)
}

// DialHTTPContext is DialHTTP with a context, which bounds connecting only.
func DialHTTPContext(ctx context.Context, network, address string) (*Client, error) {
	return DialHTTPPathContext(ctx, network, address, DefaultRPCPath)
}

// DialHTTPPathContext is DialHTTPPath with a context, which bounds connecting only.
func DialHTTPPathContext(ctx context.Context, network, address, path string) (*Client, error) {
	return new(Dialer).DialHTTP(ctx, network, address, path)
}

// DialHTTPTimeout is DialHTTP with a timeout; 0 means 5 s.
func DialHTTPTimeout(network, address string, timeout time.Duration) (*Client, error) {
	return DialHTTPPathTimeout(network, address, DefaultRPCPath, timeout)
}

// DialHTTPPathTimeout is DialHTTPPath with a timeout; 0 means 5 s.
func DialHTTPPathTimeout(network, address, path string, timeout time.Duration) (*Client, error) {
	return (&Dialer{Timeout: timeout}).DialHTTP(context.Background(), network, address, path)
}

// DialHTTPTLS is DialHTTP over HTTPS. See [DialTLS].
func DialHTTPTLS(network, address string, config *tls.Config) (*Client, error) {
	return DialHTTPPathTLS(network, address, DefaultRPCPath, config)
}

// DialHTTPPathTLS is DialHTTPPath over HTTPS. See [DialTLS].
func DialHTTPPathTLS(network, address, path string, config *tls.Config) (*Client, error) {
	return (&Dialer{TLS: orEmpty(config)}).DialHTTP(context.Background(), network, address, path)
}
