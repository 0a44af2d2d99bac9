package anser

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/internal/handshakes"
	"github.com/anser-rpc/anser/internal/stranger"
	"github.com/anser-rpc/anser/wire"
)

// Protocol is a protocol other than Anser's own that a server speaks on the same port; see
// [Protocols]. Its methods are called by several goroutines at once.
type Protocol interface {
	// Name is the name for logs, such as "HTTP".
	Name() string
	// NextProtos are the names of the protocol in TLS (ALPN), such as "h2"; it may have none.
	NextProtos() []string
	// Begins reports whether begin, the first bytes of a connection, is the beginning of the
	// protocol, and whether it may become one with more bytes. begin has 1 to 32 bytes.
	Begins(begin []byte) (is, may bool)
	// Serve serves the connection until it ends, and closes it. It gives the connection to
	// [Server.OpenConn], and its calls to the [ProtocolConn]. The error is for the log; one of type
	// [*wire.Error] says that the client has broken the protocol, and is counted by its reason in
	// [ServerStats].Closed. A panic closes the connection; the protocol calls End in any case.
	Serve(s *Server, in Incoming) error
}

// A ProtocolChecker is a [Protocol] that finds mistakes in the methods of a server, such as two
// methods with the same address. [Server.Serve] calls CheckServer before it accepts connections,
// and returns its error.
type ProtocolChecker interface {
	CheckServer(s *Server) error
}

// A ProtocolFarewell is a [Protocol] that has an answer for a client from which nothing has come,
// or too little to recognize a protocol, when the server closes its connection; see
// [HandshakeTimeout] and [MaxHandshakes]. A request that is on its way at that moment does not run,
// and its client could not know that otherwise. The answer of the first such protocol is sent to
// clients of any protocol, since the server does not know theirs, but not to one that has begun
// with Anser's own. Farewell may be called by several goroutines at once.
type ProtocolFarewell interface {
	Farewell() []byte
}

// Incoming is a connection that begins with a [Protocol].
type Incoming struct {
	// Conn is the connection, after the TLS handshake if there is one. It has no deadlines, unless
	// the server shuts down: then OpenConn returns ErrServerClosed, and there is a second to tell
	// the client, if the protocol can.
	Conn net.Conn
	// Begin are bytes of the client that were read already.
	Begin []byte
	// Peer has the addresses, and the state of TLS.
	Peer Peer
}

// Protocols makes the server speak other protocols on the port of Anser's own one. The first bytes
// of a connection decide, at most 32, within [HandshakeTimeout]; if they begin several protocols,
// the first one in the list is taken. With [TLS], the protocols are offered to clients by their
// names, unless the configuration sets its own list.
//
// Calls over other protocols pass the same authentication, policies, limits, interceptors and
// observers as calls over Anser's own protocol.
func Protocols(list ...Protocol) ServerOption {
	return serverOption(func(o *serverOptions) {
		for _, p := range list {
			if o.wants(p != nil, "anser.Protocols: a protocol is nil") {
				o.protocols = append(o.protocols, p)
			}
		}
	})
}

// checkProtocols returns why one of the protocols cannot serve the methods of the server.
func (s *Server) checkProtocols() error {
	for _, p := range s.o.protocols {
		if c, ok := p.(ProtocolChecker); ok {
			if err := c.CheckServer(s); err != nil {
				return fmt.Errorf("the server cannot serve: %w", err)
			}
		}
	}
	return nil
}

// maxBegin is the number of bytes by which a protocol must be recognized.
const maxBegin = 32

// offerProtocols adds the names of the protocols to the ones that the server offers in TLS. A
// configuration that sets names is not changed.
func (s *Server) offerProtocols() {
	if s.o.tls == nil || !slices.Equal(s.o.tls.NextProtos, []string{ALPN}) {
		return
	}
	names := []string{ALPN}
	for _, p := range s.o.protocols {
		for _, name := range p.NextProtos() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	s.o.tls.NextProtos = names
	choose := s.o.tls.GetConfigForClient
	if choose == nil {
		return
	}
	// A configuration that is chosen for each connection, as package tlsfiles does.
	s.o.tls.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config, err := choose(hello)
		if err == nil && config != nil && slices.Equal(config.NextProtos, []string{ALPN}) {
			config = config.Clone()
			config.NextProtos = names
		}
		return config, err
	}
}

// recognize reads until the protocol of the connection is known. It returns nil for Anser's own.
func (s *Server) recognize(rd *reader) (Protocol, error) {
	for {
		begin := rd.buf[rd.r:rd.w]
		if n := min(len(begin), len(wire.Magic)); n > 0 && string(begin[:n]) == string(wire.Magic[:n]) {
			if n == len(wire.Magic) {
				return nil, nil
			}
		} else if n > 0 {
			p, may := s.begins(begin[:min(len(begin), maxBegin)])
			if p != nil {
				return p, nil
			}
			if !may || len(begin) >= maxBegin {
				return nil, s.unrecognized(begin[:min(len(begin), len(wire.Magic))])
			}
		}
		if err := rd.fill(); err != nil {
			return nil, err
		}
	}
}

// begins returns the protocol that begins with these bytes, or whether there may be one.
func (s *Server) begins(begin []byte) (p Protocol, may bool) {
	for _, p := range s.o.protocols {
		is, maybe := s.beginsWith(p, begin)
		if is {
			return p, true
		}
		may = may || maybe
	}
	return nil, may
}

// beginsWith asks one protocol. To a protocol that panics no connection belongs.
func (s *Server) beginsWith(p Protocol, begin []byte) (is, may bool) {
	defer func() {
		if fault := recover(); fault != nil {
			s.protocolPanicked(p, fault)
			is, may = false, false
		}
	}()
	return p.Begins(begin)
}

// protocolPanicked notes a panic of a protocol, which must not end the server.
func (s *Server) protocolPanicked(p Protocol, fault any) {
	s.stats.panics.Add(1)
	s.log.Error("a protocol panicked", "protocol", p.Name(), "panic", fmt.Sprint(fault), "stack", string(debug.Stack()))
}

// errTLS is the error of a client that begins TLS at a port without it.
var errTLS = wire.Errorf(wire.BadFrame, "this port does not speak TLS: give the server anser.TLS, or leave the option out at the client")

// beginsTLS reports whether the bytes are the beginning of a TLS handshake (RFC 8446, 5.1).
func beginsTLS(begin []byte) bool {
	return len(begin) >= 2 && begin[0] == 0x16 && begin[1] == 0x03
}

// strange ends a connection whose protocol was not recognized, and returns err. The client gets no
// answer in Anser's protocol, which it may not speak; but one that wants TLS gets it, since
// libraries of TLS then report that the server does not speak TLS, and not that the connection was
// closed.
func (s *Server) strange(nc net.Conn, err error) error {
	switch {
	case err == errHTTP, err == errTLS:
		return s.refuse(nc, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.stats.hit(limitHandshakeTime)
	}
	return err
}

// bidFarewell answers a client that has begun no protocol, before its connection is closed.
func (s *Server) bidFarewell(nc net.Conn, begin []byte) {
	if len(begin) > 0 && begin[0] == wire.Magic[0] {
		return
	}
	for _, p := range s.o.protocols {
		f, ok := p.(ProtocolFarewell)
		if !ok {
			continue
		}
		defer func() {
			if fault := recover(); fault != nil {
				s.protocolPanicked(p, fault)
			}
		}()
		nc.SetDeadline(time.Now().Add(byeBound))
		nc.Write(f.Farewell())
		halfClose(nc)
		return
	}
}

// unrecognized returns the error of a connection that begins no protocol of the server.
func (s *Server) unrecognized(begin []byte) error {
	if is, _ := stranger.BeginsHTTP(begin); is {
		return errHTTP
	}
	if beginsTLS(begin) {
		return errTLS
	}
	var names []string
	for _, p := range s.o.protocols {
		names = append(names, p.Name())
	}
	return fmt.Errorf("it begins with % X, which is none of the protocols of this port: Anser, %s", begin, strings.Join(names, ", "))
}

// lastWord is the time in which a protocol can tell a client that it came too late.
const lastWord = time.Second

// serveProtocol serves a connection of another protocol.
func (s *Server) serveProtocol(p Protocol, nc net.Conn, st *reading, c *serverConn, g *handshakes.Pending) {
	leave := func() { // OpenConn counts it
		delete(s.raw, g)
		s.checkEmptyLocked()
	}
	s.mu.Lock()
	if s.closed {
		nc.SetDeadline(time.Now().Add(lastWord))
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			leave()
		}()
	} else {
		nc.SetDeadline(time.Time{}) // under the lock: stop sets one for connections in raw
		leave()
	}
	s.mu.Unlock()
	in := Incoming{Conn: c.nc, Begin: bytes.Clone(st.buf[st.r:st.w]), Peer: Peer{Addr: nc.RemoteAddr(), Local: nc.LocalAddr(), accepted: true}}
	if sc, ok := c.nc.(secured); ok {
		in.Peer.TLS = new(sc.ConnectionState())
	}
	st.release()
	defer func() {
		if fault := recover(); fault != nil {
			s.protocolPanicked(p, fault)
			nc.Close()
		}
	}()
	if err := p.Serve(s, in); err != nil && !errors.Is(err, ErrServerClosed) {
		if fault, ok := errors.AsType[*wire.Error](err); ok {
			s.stats.close(fault.Reason)
		}
		s.log.Debug(fmt.Sprintf("a connection of %s has ended", p.Name()), "peer", nc.RemoteAddr(), "err", err)
	}
	nc.Close()
}
