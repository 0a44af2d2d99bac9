package anser

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/anser-rpc/anser/internal/handshakes"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/stranger"
	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

// handshake exchanges prefaces and settings, and adds the connection to the live ones.
func (s *Server) handshake(nc net.Conn, g *handshakes.Pending, full, check bool) (*serverConn, *reading, error) {
	c := newServerConn(s)
	c.conn.init(nc, &s.conns, s.o.minPing)
	if _, done := nc.(secured); s.o.tls != nil && !done {
		tc := tls.Server(nc, s.o.tls)
		if err := g.HandshakeTLS(tc); err != nil {
			if !g.Heard() {
				return nil, nil, s.turnedOut(nil)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.stats.hit(limitHandshakeTime)
			}
			var other tls.RecordHeaderError
			if errors.As(err, &other) && bytes.HasPrefix(other.RecordHeader[:], wire.Magic[:]) {
				err = s.refuse(nc, wire.Errorf(wire.BadFrame, "this port speaks TLS: give the client anser.TLS"))
			}
			if is, _ := stranger.BeginsHTTP(other.RecordHeader[:len(wire.Magic)]); is {
				s.stats.close(wire.BadFrame)
				s.answerHTTP(nc, tlsPort)
				halfClose(nc)
			}
			return nil, nil, fmt.Errorf("TLS: %w", err)
		}
		c.nc = tc
	}
	st := &reading{generation: 1}
	st.reader = reader{maxFrame: maxHello, progress: &c.progress, memory: &s.memory}
	st.init(c.nc, st)
	c.state = st
	c.token.Store(uint64(makeReadToken(1, 0)))
	var err error
	if len(s.o.protocols) > 0 { // also if the server is full: a client learns that in its protocol
		if st.protocol, err = s.recognize(&st.reader); err != nil || st.protocol != nil {
			kept := g.Heard()
			switch {
			case err == nil: // even if its place was taken a moment ago: it needs none any more
				return c, st, nil
			case errors.Is(err, os.ErrDeadlineExceeded):
				s.bidFarewell(c.nc, st.buf[st.r:st.w])
			}
			if !kept {
				return nil, nil, s.turnedOut(nil)
			}
			return c, st, s.strange(c.nc, err)
		}
	}
	if full {
		s.stats.hit(limitConns)
		g.Heard()
		return nil, nil, s.refuse(c.nc, wire.Errorf(wire.Overload, "the server is at its limit of %d connections (anser.MaxConns)", s.o.maxConns))
	}
	if err == nil {
		c.peer, err = st.readPreface()
	}
	if err == nil && check {
		err = s.checkConn(nc)
	}
	c.splits = c.peer.Features&wire.FeatureParts != 0
	checksums := false
	if err == nil {
		checksums, err = negotiateChecksums(s.o.checksums, &c.peer, "server", "client")
	}
	// Without checksums an AUTH that is not required may come at any time. With them it must be
	// read before the frames that have a checksum.
	owes := err == nil && c.peer.Features&wire.FeatureAuth != 0 && (len(s.o.authenticators) > 0 || checksums)
	if !owes && !g.Heard() {
		return nil, nil, s.turnedOut(c.nc)
	}
	if err != nil {
		return nil, nil, s.refuse(c.nc, err)
	}
	if sc, ok := c.nc.(secured); ok { // its TLS handshake is complete
		c.tls = new(sc.ConnectionState())
	}
	c.streams.init(&s.settings, &c.peer, s.o.windowsGrow, checksums)
	if len(s.o.authenticators) > 0 {
		if err := s.identify(c, st, g); err == errTurnedOut {
			return nil, nil, s.turnedOut(c.nc)
		} else if err != nil {
			return nil, nil, s.refuse(c.nc, err)
		}
	} else if owes {
		ignored := new(AuthRequest)
		err := st.readAuth(ignored)
		clear(ignored.Data)
		if !g.Heard() {
			return nil, nil, s.turnedOut(c.nc)
		}
		if err != nil {
			return nil, nil, s.refuse(c.nc, err)
		}
	}
	if checksums {
		c.checksums = new(checksumWriter)
	}
	if err := s.o.observers.connOpened(c.info()); err != nil {
		return nil, nil, s.refuse(c.nc, wire.Errorf(wire.Unauthenticated, "%v", err))
	}
	sysconn.SetUserTimeout(nc, s.o.keepaliveIdle+s.o.keepaliveAnswer) // not earlier: many get no further, and it is a system call
	st.maxFrame, st.now = s.settings.MaxFrame, mono.Now()
	if checksums {
		st.expectChecksums()
	}
	st.arrived = st.now
	if s.queues.Load() {
		st.sockDelay = newSockDelay(c.nc)
	}
	hello := wire.AppendSettings(wire.AppendPreface(make([]byte, 0, helloSize)), s.settings)
	if st.r < st.w && !checksums { // calls have come with the client's preface
		st.greets = true
		c.hold(hello)
	} else if _, err := c.nc.Write(hello); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	delete(s.raw, g)
	nc.SetDeadline(time.Time{}) // under the lock: stop sets one for those in raw
	s.live[c] = struct{}{}
	s.upkeep.Add(&c.upkeep, mono.Now().Add(upkeep.Interval), c.tend)
	closed, by := s.closed, s.closesBy
	s.mu.Unlock()
	if c.peer.Session != 0 {
		s.join(c) // also during a drain: calls that are on their way may need the session
	}
	if closed {
		c.startDrain(s.graceUntil(by))
	}
	return c, st, nil
}

// refuse ends a handshake that failed with err, which it returns, and sends the reason to the
// client. CLOSE takes the place of SETTINGS, so that no client takes the handshake for complete
// and calls.
func (s *Server) refuse(nc net.Conn, err error) error {
	var broken *wire.Error
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.stats.hit(limitHandshakeTime)
		broken = wire.Errorf(wire.Timeout, "no handshake within %v (anser.HandshakeTimeout)", s.o.handshakeTimeout)
	} else if !errors.As(err, &broken) {
		return err
	}
	if broken.Reason == wire.FrameTooLarge {
		s.stats.hit(limitHello)
	}
	s.stats.close(broken.Reason)
	if broken == errHTTP {
		s.answerHTTP(nc, anserPort)
	} else {
		nc.SetDeadline(time.Now().Add(byeBound))
		nc.Write(wire.AppendClose(wire.AppendPreface(nil), broken.Reason, broken.Text))
	}
	halfClose(nc)
	return err
}

// halfClose lets the peer read the bytes written so far, although it may still be sending.
func halfClose(nc net.Conn) {
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok {
		return
	}
	half.CloseWrite()
	nc.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	var sink [4 << 10]byte
	for range 64 {
		if _, err := nc.Read(sink[:]); err != nil {
			return
		}
	}
}

// turnedOut tells a client that another one got its place, unless nc is nil, and returns that as
// an error. No bytes are unread, so closing the connection destroys nothing, and the client needs
// no time to read it.
func (s *Server) turnedOut(nc net.Conn) error {
	err := wire.Errorf(wire.Overload, "the server is at its limit of %d connections in their handshake, and this one kept it waiting (anser.MaxHandshakes)", s.o.maxHandshakes)
	s.stats.close(err.Reason)
	if nc != nil {
		nc.SetDeadline(time.Now().Add(byeBound))
		nc.Write(wire.AppendClose(wire.AppendPreface(nil), err.Reason, err.Text))
	}
	return err
}

// errTurnedOut says that turnedOut is due.
var errTurnedOut = errors.New("the connection has lost its place")
