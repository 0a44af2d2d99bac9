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
	"github.com/anser-rpc/anser/netrpc/internal/link"
)

// Server serves methods to clients of net/rpc and of this package. The zero value is ready, as in net/rpc;
// its exported fields may be set before it is used, and not afterwards. A number or a time below zero is refused
// when the server is to serve. It must not be copied.
type Server struct {
	// Logger gets what callers are not told, such as the stack of a method that panicked, and nothing
	// of what they send. The default is slog.Default().
	Logger *slog.Logger

	// MaxMessage is the largest request that is accepted, in bytes; the default is 4 MiB. A larger one
	// is refused; where it cannot be left out, its connection is closed. Codecs of other packages
	// have limits of their own, or none.
	MaxMessage int

	// MaxInFlight is how many calls run or wait for their turn; the default is 10,000. One more is
	// refused.
	MaxInFlight int

	// MaxPerConn is how many calls of one connection run at once; the default is 1,000. Further ones
	// wait for their turn.
	MaxPerConn int

	// MaxConns is how many connections the server holds; the default is 100,000. One more is closed.
	MaxConns int

	// Stall is how long a request that has begun to arrive, or a reply that is being sent, may make no
	// progress before its connection is closed; the default is 10 s. Idle connections are kept: there
	// are no pings on net/rpc's wire, and TCP's own keepalive finds those that are dead.
	Stall time.Duration

	// ReadTimeout bounds the time from the first byte of a request to its last one; 0, the default, sets no
	// bound. Its connection is closed then. The time must suffice for a request of MaxMessage bytes on the slowest
	// link that is served. Stall ends requests that make no progress in any case.
	ReadTimeout time.Duration

	// HandshakeTimeout bounds the TLS handshake, and with Authenticate the time until a connection
	// has authenticated itself; the default is 5 s.
	HandshakeTimeout time.Duration

	// HalfClose keeps the contexts of calls when a client closes its side for writing and waits
	// for replies, as "nc" does at the end of its input. Without it that is taken for the end of
	// the client, which looks the same and happens more often. Replies are sent either way.
	HalfClose bool

	// Authenticate, if it is set, decides about every connection before any call of it runs. See
	// [Credentials].
	Authenticate func(ctx context.Context, c *Credentials) (identity any, err error)

	// InsecurePublic lets the server serve connections from other machines without TLS or without Authenticate.
	// Without either, everybody who reaches its address can call every method. Unlike net/rpc, Serve, Accept,
	// ServeConn and ServeHTTP otherwise refuse what is reached through another interface than loopback: see
	// [Server.Serve].
	InsecurePublic bool

	// Interceptors wrap every call, the first being the outermost. Their Invocation has no codec.
	Interceptors []anser.Interceptor

	// Anser, if it is set, is the server that runs the calls, and its options hold for them as for the calls of
	// Anser's own clients: limits, authentication, policies, interceptors, observers. What is registered here is
	// served by it too, and clients of net/rpc call the methods that were added there. Left out over Anser's own
	// protocol are names without a dot and aliases. MaxMessage, MaxInFlight, MaxConns, Interceptors and InsecurePublic
	// must not be set here then. The two servers are shut down separately.
	Anser *anser.Server

	served   atomic.Pointer[names]
	inFlight atomic.Int64
	stats    stats

	mu        sync.Mutex    // guards what follows, and changes of served
	own       *anser.Server // runs the calls if Anser is not set; nil until there is a connection
	closed    bool
	listeners map[*net.Listener]struct{} // by a pointer, as a listener need not be comparable
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

// Accept serves the connections of lis over gob, until lis is closed or the server is shut down. It
// closes lis. See [Server.Serve] for other codecs, for an error to look at, and for the listeners that it refuses.
func (s *Server) Accept(lis net.Listener) {
	if err := s.Serve(lis, nil); err != anser.ErrServerClosed {
		s.log().Error("rpc.Serve", "err", err)
	}
}

// ServeConn serves a connection over gob, and returns when it is over. The connection may be anything
// that reads, writes and closes; if it is a *tls.Conn, its handshake is done first. A [net.Conn] whose local
// address is one that other machines reach is logged and closed, unless it is TLS and the server has Authenticate,
// or InsecurePublic.
func (s *Server) ServeConn(conn io.ReadWriteCloser) {
	if err := s.checkConn(conn); err != nil {
		s.log().Error("rpc.ServeConn", "err", err)
		if conn != nil {
			conn.Close()
		}
		return
	}
	s.serveConn(conn)
}

func (s *Server) serveConn(conn io.ReadWriteCloser) {
	s.serveLink(link.New(conn, nil), newGobServerCodec, origin{})
}

// ServeCodec serves a connection with a codec, which it closes in the end, and returns when it is
// over. Methods of a codec of another package are called as net/rpc does; what protects its connection is
// not known and up to the caller. For the codecs of this package what [Server.ServeConn] says holds.
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
	s.serveCodec(codec)
}

func (s *Server) serveCodec(codec ServerCodec) {
	var l *link.Conn
	if linked, ok := codec.(link.Linked); ok {
		l = linked.Link()
	}
	s.serveSession(&session{server: s, codec: codec, link: l}, origin{})
}

// serveLink serves a connection with a codec that is made for it.
func (s *Server) serveLink(l *link.Conn, codec func(*link.Conn) ServerCodec, from origin) {
	s.serveSession(&session{server: s, codec: codec(l), link: l}, from)
}

// ServeRequest reads one request with the codec, runs it and sends the reply before it returns. It
// does not close the codec. The error tells why a request was not run; errors of methods go to the
// caller alone. For the codecs of this package what [Server.ServeConn] says of unprotected connections holds.
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
