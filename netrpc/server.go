package netrpc

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/link"
	"github.com/anser-rpc/anser/internal/loglimit"
)

// Server serves methods to clients of net/rpc and of this package. The zero value is ready, as in
// net/rpc; its exported fields may be set before it is used, but not modified afterwards. A
// negative number or time is an error when the server starts to serve. It must not be copied.
type Server struct {
	// Logger receives details that callers must not see, such as the stack of a panicking method,
	// but no data of callers. The default is slog.Default().
	Logger *slog.Logger

	// MaxMessage is the maximum size of a request in bytes; the default is 4 MiB. A larger one is
	// rejected; if it cannot be skipped, its connection is closed. Third-party codecs have their
	// own limits, or none.
	MaxMessage int

	// MaxInFlight is the maximum number of calls that run or wait for their turn; the default is
	// 10,000. Further ones are rejected.
	MaxInFlight int

	// MaxPerConn is the maximum number of concurrent calls per connection; the default is 1,000.
	// Further ones wait for their turn.
	MaxPerConn int

	// MaxConns is the maximum number of connections; the default is 100,000. Further ones are
	// closed.
	MaxConns int

	// Stall is how long a request that has begun to arrive, or a reply that is being sent, may
	// make no progress before its connection is closed; the default is 10 s. Idle connections are
	// kept: net/rpc's protocol has no pings, and TCP keepalive detects dead connections.
	Stall time.Duration

	// ReadTimeout bounds the time from the first to the last byte of a request; 0, the default,
	// means no limit. When it is exceeded, the connection is closed. The time must be sufficient
	// for a request of MaxMessage bytes on the slowest supported link. Stall always ends requests
	// that make no progress.
	ReadTimeout time.Duration

	// HandshakeTimeout bounds the TLS handshake, and with Authenticate the time until a connection
	// has authenticated; the default is 5 s.
	HandshakeTimeout time.Duration

	// MaxHandshakes is the maximum number of connections of listeners and ServeConn that are in
	// their TLS handshake or, on a server that authenticates clients, have not authenticated yet;
	// the default is 256. As with [anser.MaxHandshakes], a further one replaces the one that has
	// kept the server waiting longest, and waits until one can be replaced. It does not apply to
	// connections of third-party codecs.
	MaxHandshakes int

	// HalfClose keeps the contexts of calls valid when a client closes its side for writing and
	// waits for replies, as "nc" does at the end of its input. By default that counts as the end
	// of the client, which looks the same and happens more often. Replies are sent in both cases.
	HalfClose bool

	// Authenticate, if it is set, authenticates every connection before its first call runs. See
	// [Credentials].
	Authenticate func(ctx context.Context, c *Credentials) (identity any, err error)

	// InsecurePublic allows the server to serve connections from other machines without TLS or
	// without Authenticate. Without both, every process that can reach its address can call every
	// method. By default, unlike in net/rpc, Serve, Accept, ServeConn and ServeHTTP reject
	// connections through interfaces other than loopback: see [Server.Serve].
	InsecurePublic bool

	// Interceptors wrap every call, the first one being the outermost. Their Invocation has no
	// codec.
	Interceptors []anser.Interceptor

	// Anser, if it is set, is the server that runs the calls, and its options apply to them as to
	// the calls of Anser's own clients: limits, authentication, policies, interceptors, observers.
	// Methods registered here are also served by it, and clients of net/rpc can call the methods
	// registered there. Names without a dot and aliases are not available over Anser's own
	// protocol. MaxMessage, MaxInFlight, MaxConns, Interceptors and InsecurePublic must then not
	// be set here. The two servers are shut down separately.
	Anser *anser.Server

	served       atomic.Pointer[names]
	inFlight     atomic.Int64
	stats        stats
	httpSeen     loglimit.Seldom // requests of HTTP
	acceptFailed loglimit.Seldom
	handshakes   lazyPlaces

	mu        sync.Mutex    // guards the fields below, and changes of served
	pending   []*method     // to be served by Anser or own, once it is known which
	own       *anser.Server // runs the calls if Anser is not set; nil until there is a connection
	closed    bool
	listeners map[*net.Listener]struct{} // by pointer, since a listener need not be comparable
	sessions  map[*session]struct{}
	empty     chan struct{} // closed when closed is set and no session is left; nil until then
}

// NewServer returns a server without methods.
func NewServer() *Server { return new(Server) }

// The defaults.
const (
	defaultMaxMessage  = 4 << 20
	defaultMaxInFlight = 10_000
	defaultMaxPerConn  = 1_000
	defaultMaxConns    = 100_000
	defaultHandshakes  = 256
	defaultStall       = 10 * time.Second
	defaultHandshake   = 5 * time.Second
)

// or returns v, or the default if v is not set.
func or[T int | time.Duration](v, d T) T {
	if v > 0 {
		return v
	}
	return d
}

func (s *Server) log() *slog.Logger {
	if s != nil && s.Logger != nil {
		return s.Logger
	}
	return slog.Default()
}

func (s *Server) limits() link.Limits {
	most := or(s.MaxMessage, defaultMaxMessage)
	if s.Anser != nil {
		most = s.Anser.MaxMessageSize()
	}
	return link.Limits{MaxMessage: most, Stall: or(s.Stall, defaultStall), ReadTimeout: s.ReadTimeout}
}

// Accept serves the connections of lis over gob, until lis is closed or the server is shut down.
// It closes lis. [Server.Serve] supports other codecs, returns an error, and describes the
// listeners that it rejects.
func (s *Server) Accept(lis net.Listener) {
	if err := s.Serve(lis, nil); err != anser.ErrServerClosed {
		s.log().Error("rpc.Serve", "err", err)
	}
}

// ServeConn serves a connection over gob, and returns when it ends. The connection may be any
// io.ReadWriteCloser; if it is a *tls.Conn, its handshake is performed first. A [net.Conn] whose
// local address other machines can reach is closed with a log entry, unless it uses TLS and the
// server has Authenticate, or InsecurePublic.
func (s *Server) ServeConn(conn io.ReadWriteCloser) {
	if err := s.checkConn(conn); err != nil {
		s.log().Error("rpc.ServeConn", "err", err)
		if conn != nil {
			conn.Close()
		}
		return
	}
	s.serveLink(link.New(conn, nil), newGobServerCodec, origin{})
}

// ServeCodec serves a connection with a codec, which it finally closes, and returns when it ends.
// Methods of a third-party codec are called in the same way as by net/rpc; the protection of its
// connection is unknown and up to the caller. For the codecs of this package the rules of
// [Server.ServeConn] apply.
func (s *Server) ServeCodec(codec ServerCodec) {
	switch {
	case codec == nil:
		s.log().Error("rpc.ServeCodec", "err", errNoCodec)
		return
	case s == nil:
		s.log().Error("rpc.ServeCodec", "err", errNoServer)
		codec.Close()
		return
	}
	if linked, ok := codec.(link.Linked); ok {
		if err := s.checkConn(linked.Link().Transport()); err != nil {
			s.log().Error("rpc.ServeCodec", "err", err)
			codec.Close()
			return
		}
	}
	s.serveCodec(codec, origin{})
}

func (s *Server) serveCodec(codec ServerCodec, from origin) {
	var l *link.Conn
	if linked, ok := codec.(link.Linked); ok {
		l = linked.Link()
	}
	s.serveSession(&session{server: s, codec: codec, link: l}, from)
}

// serveLink serves a connection with a new codec.
func (s *Server) serveLink(l *link.Conn, codec func(*link.Conn) ServerCodec, from origin) {
	s.serveSession(&session{server: s, codec: codec(l), link: l}, from)
}

// ServeRequest reads one request with the codec, runs it and sends the reply before it returns. It
// does not close the codec. The error is the reason why a request was not run; errors of methods
// are only sent to the caller. For the codecs of this package the rules of [Server.ServeConn]
// about unprotected connections apply.
func (s *Server) ServeRequest(codec ServerCodec) error {
	switch {
	case s == nil:
		return errNoServer
	case codec == nil:
		return errNoCodec
	}
	c := &session{server: s, codec: codec, single: true}
	if linked, ok := codec.(link.Linked); ok {
		c.link = linked.Link()
		if err := s.checkConn(c.link.Transport()); err != nil {
			return err
		}
	}
	if err := s.enter(c); err != nil {
		c.cancel()
		return err
	}
	defer s.leave(c)
	if err := c.open(); err != nil {
		return err
	}
	return c.serveOne()
}
