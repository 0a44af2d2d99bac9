package anser

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

// connect dials and performs the handshake. The server has answered when connect returns: a
// connection accepted only by the listener's queue would turn calls into calls with an unknown
// outcome. Only a call that may run twice is sent before; see client_early.go. If own is set, the
// connection will belong to a stream.
func (h *host) connect(own bool) (*clientConn, error) {
	until := time.Now().Add(h.connectTimeout)
	ctx, cancel := context.WithDeadline(h.ctx, until)
	defer cancel()
	c, err := h.tryConnect(ctx, until, own)
	if err != nil && !own && h.demandsChecksums(err) {
		c, err = h.tryConnect(ctx, until, own)
	}
	return c, err
}

// tryConnect makes one connection, until the deadline of ctx.
func (h *host) tryConnect(ctx context.Context, until time.Time, own bool) (*clientConn, error) {
	cred, err := h.credential(ctx) // before the server waits for it
	if err != nil {
		return nil, err
	}
	nc, err := h.dial(ctx, h.network, h.address)
	if err != nil {
		return nil, dialError(h.address, err)
	}
	socket := nc // nc changes while the other goroutine may read it
	stop := context.AfterFunc(h.ctx, func() { socket.Close() })
	defer stop()
	nc.SetDeadline(earlier(until, time.Now().Add(h.handshakeTimeout)))
	sysconn.SetUserTimeout(nc, h.keepaliveIdle+h.keepaliveAnswer)
	if h.tls != nil {
		tc := tls.Client(nc, tlsFor(h.tls, h.address))
		if err := tc.HandshakeContext(ctx); err != nil {
			nc.Close()
			if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
				return nil, fmt.Errorf("TLS handshake with %s: no answer within %v: %w", h.address, h.answerWithin(), err)
			}
			if other := (tls.RecordHeaderError{}); errors.As(err, &other) {
				return nil, fmt.Errorf("TLS handshake with %s: %w: give the server anser.TLS, or leave the option out here", h.address, err)
			}
			return nil, fmt.Errorf("TLS handshake with %s: %w", h.address, err)
		}
		nc = tc
	}
	if h.wrapper != nil {
		wrapped, err := h.wrapper.Wrap(nc, h.address)
		if err != nil {
			nc.Close()
			return nil, fmt.Errorf("connect to %s: %w", h.address, err)
		}
		nc = wrapped
	}
	c := &clientConn{callerHalf: callerHalf{own: own}}
	c.callerHalf.init(&c.link, h)
	c.dialed = c
	c.conn.init(nc, &c.wg, minPing)
	c.socket, c.elsewhere, c.behind = newTryWriter(nc), c.writeRest, c.writeBehind
	settings := wire.DefaultSettings()
	settings.MaxFrame = uint64(h.maxMessage) + frameOverhead
	settings.MaxStreams = 0
	settings.StreamWindow, settings.ConnWindow = uint64(h.streamWindow), uint64(h.connWindow)
	settings.Features = wire.FeatureParts | offerChecksums(h.checksums)
	if h.handlers != nil {
		settings.Session = h.session
		h.handlers.settle(&settings)
	}
	rd := &reader{maxFrame: settings.MaxFrame, progress: &c.progress}
	rd.init(nc, rd)
	if cred != nil {
		if err := h.protects(nc); err != nil {
			nc.Close()
			return nil, err
		}
		settings.Features |= wire.FeatureAuth
		c.renewal = newRenewal(cred)
	}
	hello, offered := h.greet(c, settings, cred)
	if c.peer, err = handshakeClient(nc, rd, hello); err != nil {
		nc.Close()
		return nil, h.handshakeError(err)
	}
	c.splits = c.peer.Features&wire.FeatureParts != 0
	checksums, err := negotiateChecksums(h.checksums, &c.peer, "client", "server")
	if checksums {
		h.waitFromNowOn()
	}
	if checksums && !offered {
		err = wire.Errorf(wire.BadChecksum, "the server demands checksums of frames, and takes a connection without them")
	}
	if err != nil {
		nc.Close()
		return nil, h.handshakeError(err)
	}
	if checksums {
		rd.expectChecksums()
		c.checksums = new(checksumWriter)
	}
	if err := h.observers.connOpened(c.info()); err != nil {
		nc.Close()
		return nil, fmt.Errorf("the connection to %s is refused by an observer: %w", h.address, err)
	}
	nc.SetDeadline(time.Time{})
	c.streams.init(&settings, &c.peer, h.windowsGrow, checksums)
	c.role.init(rd)
	return c, nil
}

// enter adds a connection that connect made, or records why there is none, and returns why it is
// not used. If own is set, the connection belongs to a stream and takes no calls of others.
func (h *host) enter(c *clientConn, err error, own bool) error {
	h.mu.Lock()
	if err == nil && h.closed {
		c.nc.Close()
		err = errConnClosed
	}
	if !own {
		h.dialing = false
		h.arrivedLocked(err)
		h.endEarlyLocked(c, err)
	}
	read := false
	if err == nil {
		// Before others find the connection in ready: from then on they may read it.
		read = c.isRead()
		c.role.started = read
		c.wg.Add(1) // for run
	}
	switch {
	case err != nil:
		h.failedLocked(err)
	case own:
	default:
		h.lastErr = nil
		list := append(slices.Clone(*h.ready.Load()), &c.callerHalf)
		h.ready.Store(&list)
	}
	if err == nil {
		h.stood = true
		h.all[c] = struct{}{}
		h.pool.upkeep.Add(&c.upkeep, mono.Now().Add(upkeep.Interval), c.tend)
		if read {
			go c.run()
		}
	}
	tell := func() {}
	if err != nil || !own { // a connection of one stream does not concern others
		tell = h.changedLocked()
	}
	h.mu.Unlock()
	if err != nil {
		h.observers.connFailed(ConnInfo{Address: h.instance()}, err)
	}
	tell()
	return err
}

// answerWithin is the longest time that a server may take for its part of the handshake.
func (h *host) answerWithin() time.Duration { return min(h.connectTimeout, h.handshakeTimeout) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (h *host) handshakeError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("handshake with %s: no answer within %v, is it an Anser server? %w", h.address, h.answerWithin(), err)
	}
	if isUnauthenticated(err) {
		if h.credentials == nil {
			return fmt.Errorf("handshake with %s: %w: give the client anser.Credentials or a certificate that the server takes", h.address, err)
		}
		return fmt.Errorf("handshake with %s: %w: the server does not take the credential; its log says why", h.address, err)
	}
	return fmt.Errorf("handshake with %s: %w", h.address, err)
}

// failedLocked records that no connection could be made and sets the time of the next try.
func (h *host) failedLocked(err error) {
	h.lastErr = err
	if len(*h.ready.Load()) > 0 {
		h.growAfter = mono.Now().Add(firstBackoff)
		return // the failed connection was an additional one
	}
	h.failures++
	if !h.closed {
		h.retryLocked(max(h.backoffLocked(), firstBackoff/2))
	}
}

// backoffLocked returns how long to wait before the next try. The first loss of a connection that
// lasted is followed by a try at once.
func (h *host) backoffLocked() time.Duration {
	if h.failures <= 1 {
		return redialAtOnce
	}
	d := float64(firstBackoff)
	for range min(h.failures-2, 12) {
		d *= backoffFactor
	}
	return time.Duration(min(d, float64(maxBackoff)) * (0.8 + 0.4*rand.Float64()))
}

// retryLocked makes a connection after d, if one is still wanted then.
func (h *host) retryLocked(d time.Duration) {
	if h.retry != nil {
		h.retry.Stop()
	}
	h.retry = time.AfterFunc(d, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.retry = nil
		if h.mayConnectLocked() && h.used && len(*h.ready.Load()) == 0 {
			h.connectLocked()
		}
	})
}

// handshakeClient exchanges prefaces over a new connection; hello is what this side sends.
func handshakeClient(nc net.Conn, rd *reader, hello []byte) (wire.Settings, error) {
	_, lost := nc.Write(hello)
	peer, err := rd.readPreface() // a server that refuses the preface may have sent the reason
	if err != nil && bytes.HasPrefix(rd.buf[rd.r:rd.w], gaveUp) {
		err = errGaveUp
	}
	if err == nil {
		err = lost
	}
	return peer, err
}

// gaveUp begins the answer of HTTP with which a server that speaks it closes a connection on which
// it has waited too long for the first bytes, or needs their place; see [ProtocolFarewell]. It says
// nothing of the protocols of the server, so another attempt may succeed.
var gaveUp = []byte("HTTP/1.1 408 ")

var errGaveUp = &peerClosed{wire.Timeout, "the first bytes of the connection came too late"}
