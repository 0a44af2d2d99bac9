package netrpc

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/link"
)

// host returns the server of package anser that runs the calls: Server.Anser, or one that belongs
// to this server, created from its fields for the first connection or listener.
func (s *Server) host() (*anser.Server, error) {
	if err := s.mistake(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	host := s.hostLocked()
	if host == nil {
		host = s.newHost()
		s.own = host
	}
	if len(s.pending) > 0 { // they were registered before there was a host
		if err := s.serveLocked(host, s.pending...); err != nil {
			return nil, err
		}
		s.pending = nil
	}
	return host, nil
}

// hostLocked returns the server of package anser that runs the calls, or nil if there is none yet.
func (s *Server) hostLocked() *anser.Server {
	if s.Anser != nil {
		return s.Anser
	}
	return s.own
}

// newHost returns a server of package anser with the fields of s as its options.
func (s *Server) newHost() *anser.Server {
	return anser.NewServer(
		anser.Logger(s.log()),
		anser.MaxMessage(or(s.MaxMessage, defaultMaxMessage)),
		anser.MaxInFlight(or(s.MaxInFlight, defaultMaxInFlight)),
		anser.MaxCalls(or(s.MaxInFlight, defaultMaxInFlight)),
		anser.MaxConns(or(s.MaxConns, defaultMaxConns)),
		anser.HandshakeTimeout(or(s.HandshakeTimeout, defaultHandshake)),
		anser.Intercept(s.Interceptors...),
		anser.InsecurePublic(), // this server checks it itself: it knows whether it has Authenticate
		anser.NoDescribe(),     // callers of unknown methods get the texts of net/rpc
	)
}

// addLocked registers methods at the server of package anser, if it exists already.
func (s *Server) addLocked(methods ...*method) error {
	host := s.hostLocked()
	if host == nil {
		s.pending = append(s.pending, methods...)
		return nil
	}
	return s.serveLocked(host, methods...)
}

func (s *Server) serveLocked(host *anser.Server, methods ...*method) error {
	list := make([]anser.DynamicMethod, len(methods))
	for i, m := range methods {
		// Names that Anser does not support are served over net/rpc only.
		list[i] = m.dynamic(s.Anser == nil || !strings.Contains(m.name, "."))
	}
	return host.HandleDynamic(list)
}

// dynamic returns the method in the form of package anser.
func (m *method) dynamic(foreign bool) anser.DynamicMethod {
	argument := m.argument
	if m.byPointer() {
		argument = argument.Elem()
	}
	return anser.DynamicMethod{Name: m.name, Request: argument, Reply: m.reply, Handle: m.call, Foreign: foreign}
}

// checkShared returns an error for a field that has no effect because Server.Anser decides.
func (s *Server) checkShared() error {
	if s.Anser == nil {
		return nil
	}
	for _, f := range []struct {
		name, option string
		set          bool
	}{
		{"MaxMessage", "MaxMessage", s.MaxMessage != 0},
		{"MaxInFlight", "MaxInFlight", s.MaxInFlight != 0},
		{"MaxConns", "MaxConns", s.MaxConns != 0},
		{"Interceptors", "Intercept", len(s.Interceptors) > 0},
		{"InsecurePublic", "InsecurePublic", s.InsecurePublic},
	} {
		if f.set {
			return fmt.Errorf("rpc: Server.%s is set together with Server.Anser, whose options apply to all calls: give that server anser.%s", f.name, f.option)
		}
	}
	return nil
}

var errTwoAuthenticators = errors.New("rpc: Server.Authenticate is set, and Server.Anser has anser.Authenticate, which applies to all calls: leave Server.Authenticate out")

// open registers the session at the server of package anser.
func (c *session) open() error {
	host, err := c.server.host()
	if err != nil {
		return err
	}
	conn, err := host.OpenConn(c.peer, anser.ProtocolHooks{
		Protocol: "net/rpc",
		Drain:    func(time.Duration) {}, // the protocol has no message for it
		Close:    func(why error) { go c.finish(why) },
	})
	if err != nil {
		if anser.CodeOf(err) == anser.ResourceExhausted {
			c.server.stats.refusedConns.Add(1)
		}
		return err
	}
	c.mu.Lock()
	c.conn = conn
	over := c.lost || c.draining
	c.mu.Unlock()
	switch {
	case over:
		return anser.ErrServerClosed
	case c.server.Authenticate != nil && host.Authenticates():
		c.server.log().Error("rpc: connection refused", "err", errTwoAuthenticators)
		return errTwoAuthenticators
	}
	if k, ok := c.codec.(link.Keeper); ok {
		k.KeepWith(conn.Hold, conn.Release)
	}
	c.server.stats.accepted.Add(1)
	return nil
}

// finish ends the connection for the server of package anser: at once, or with why == nil after a
// drain, in which the peer receives the replies before the end.
func (c *session) finish(why error) {
	if why != nil || c.link == nil {
		c.codec.Close()
		return
	}
	c.flush()
	c.link.Linger()
}

// refusal returns the caller's error for a call that the server of package anser does not run.
func (s *Server) refusal(name string, e *anser.Error) *link.Refusal {
	r := &link.Refusal{Kind: link.Busy, Text: "rpc: " + e.Message}
	switch e.Code {
	case anser.Unimplemented:
		r.Kind = link.NoMethod
		if s.Anser == nil {
			r.Text = s.missing(name)
		}
	case anser.Unavailable:
		r.Text = "rpc: the server is shutting down: call another one"
	case anser.Unauthenticated:
		return errUnknown
	case anser.PermissionDenied:
		r.Kind = link.Denied
	case anser.InvalidArgument:
		r.Kind = link.BadRequest
	}
	if s.Anser == nil {
		r.Text = strings.ReplaceAll(r.Text, "(anser.", "(Server.")
	}
	return r
}
