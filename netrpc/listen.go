package netrpc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/anser-rpc/anser"
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
	for wait := time.Duration(0); ; {
		conn, err := l.Accept()
		switch {
		case err == nil:
			wait = 0
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
		case isTemporary(err):
			// Out of file descriptors, or a client that hung up in the queue: net/rpc would
			// stop serving here.
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.log().Warn("rpc: accept failed, trying again", "err", err, "wait", wait)
			time.Sleep(wait)
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

func isTemporary(err error) bool {
	for _, t := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
