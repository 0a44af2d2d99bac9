package netrpc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/accept"
	"github.com/anser-rpc/anser/internal/link"
	"github.com/anser-rpc/anser/internal/mono"
)

// Serve serves the connections of l until [Server.Shutdown] or [Server.Close], and finally closes
// l. codec creates the codec of a connection, for example jsonrpc.NewServerCodec; nil means gob.
// Serve always returns an error; after Shutdown or Close that is anser.ErrServerClosed.
//
// A listener that other machines can reach, or whose address is unknown, must use TLS, and the
// server must have Authenticate; otherwise Serve returns an error, unless InsecurePublic is set.
// Listeners of crypto/tls are recognized, and others implement [anser.Protection].
func (s *Server) Serve(l net.Listener, codec func(io.ReadWriteCloser) ServerCodec) error {
	if l == nil {
		return errors.New("rpc.Serve: the listener is nil")
	}
	defer l.Close()
	if s == nil {
		return errNoServer
	}
	if err := s.mistake(); err != nil {
		return err
	}
	p, err := s.checkListener(l)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return anser.ErrServerClosed
	}
	if s.listeners == nil {
		s.listeners = make(map[*net.Listener]struct{})
	}
	s.listeners[&l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, &l)
		s.mu.Unlock()
	}()
	var retry accept.Retry
	for {
		conn, err := l.Accept()
		wait, passes := retry.After(err)
		switch {
		case err == nil && p.EachConn && s.checkConn(conn) != nil:
			conn.Close()
		case err == nil:
			place := s.enterHandshake(conn)
			// It ends with its connection, at the latest when Shutdown or Close closes the
			// connection and waits.
			go s.serveWith(conn, codec, origin{place: place})
		case s.isClosed():
			return anser.ErrServerClosed
		case passes: // net/rpc would stop serving here
			if n := s.acceptFailed.Note(mono.Now()); n > 0 {
				s.log().Warn("rpc: accept failed, trying again", "err", err, "wait", wait, "failures", n)
			}
			time.Sleep(wait)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// serveWith serves a connection of a listener.
func (s *Server) serveWith(conn net.Conn, codec func(io.ReadWriteCloser) ServerCodec, from origin) {
	if codec == nil {
		s.serveLink(link.New(conn, nil), newGobServerCodec, from)
		return
	}
	of := codec(conn)
	if of == nil {
		s.log().Error("rpc.Serve", "err", errNoCodec)
		from.place.leave()
		conn.Close()
		return
	}
	s.serveCodec(of, from)
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
