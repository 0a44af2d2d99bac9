package netrpc

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/accept"
)

// Serve serves the connections of l until [Server.Shutdown] or [Server.Close], and closes l in the
// end. codec makes the codec of a connection, such as jsonrpc.NewServerCodec; nil stands for gob. Serve always
// returns an error; after Shutdown or Close that is anser.ErrServerClosed.
func (s *Server) Serve(l net.Listener, codec func(io.ReadWriteCloser) ServerCodec) error {
	defer l.Close()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return anser.ErrServerClosed
	}
	if s.listeners == nil {
		s.listeners = make(map[net.Listener]struct{})
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	var retry accept.Retry
	for {
		conn, err := l.Accept()
		wait, passes := retry.After(err)
		switch {
		case err == nil:
			// It ends with its connection, at the latest when Shutdown or Close closes that and waits.
			go func() {
				if codec == nil {
					s.ServeConn(conn)
				} else {
					s.ServeCodec(codec(conn))
				}
			}()
		case s.isClosed():
			return anser.ErrServerClosed
		case passes: // net/rpc would stop serving here
			s.log().Warn("rpc: accept failed, trying again", "err", err, "wait", wait)
			time.Sleep(wait)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
