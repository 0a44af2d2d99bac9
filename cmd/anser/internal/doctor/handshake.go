package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/wire"
)

// answer is how a server reacts to the beginning of Anser's protocol.
type answer struct {
	settings wire.Settings
	closed   bool // by the server, with a reason
	reason   wire.Reason
	text     string
	begin    []byte // what came instead of Anser's protocol
	err      error  // why nothing more came
}

// greet makes the handshake of Anser's protocol, without a credential.
func (p *probe) greet(ctx context.Context) {
	var a answer
	p.timing.step("handshake", func() error {
		nc, err := p.open(ctx, anser.ALPN)
		if err != nil {
			a.err = err
			return err
		}
		defer nc.Close()
		a = hello(nc)
		return a.fault()
	})
	switch {
	case a.closed && a.reason == wire.BadFrame && strings.Contains(a.text, "speaks TLS"): // a server of Anser
		p.wantsTLS(ctx)
	case a.closed:
		p.refused(&a)
	case len(a.begin) > 0:
		p.strange(ctx, &a)
	case a.err == nil:
		p.anser = true
		p.pass("handshake", "speaks Anser, version %d (%s)", wire.Version, table.Duration(p.timing.took()))
	case wantsCertificate(a.err):
		p.anser = true
		p.needsIdentity("a certificate of the client")
	default:
		p.nothing(ctx, a.err)
	}
}

// nothing reports a port that has not answered Anser's protocol with a single byte.
func (p *probe) nothing(ctx context.Context, err error) {
	web := make(chan bool, 1)
	go func() {
		_, err := p.fetch(ctx, http1, http.MethodHead, "/", "", "")
		web <- err == nil
	}()
	isTLS := !p.tls && p.speaksTLS(ctx)
	isHTTP := <-web
	switch {
	case isTLS:
		p.wantsTLS(ctx)
	case isHTTP:
		p.speaksHTTP()
	case isTimeout(err):
		p.add("handshake", Fail, "the process hangs or is paused, a proxy has no server behind it, or the port waits for another protocol: look into the log of the server",
			"the port accepts connections, but says nothing within %v", p.config.Timeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		p.add("handshake", Fail, "the server refuses this address (anser.AllowFrom), a proxy has no server behind it, or the port speaks another protocol: look into its log",
			"the server closed the connection without an answer")
	default:
		p.add("handshake", Fail, "look into the log of the server", "the handshake failed: %v", err)
	}
}

// hello sends the preface and settings of a client, and reads the answer.
func hello(nc net.Conn) (a answer) {
	own := wire.DefaultSettings()
	own.MaxStreams, own.Features = 0, wire.FeatureCRC
	if _, err := nc.Write(wire.AppendSettings(wire.AppendPreface(nil), own)); err != nil {
		a.err = err // the answer may have arrived before
	}
	begin := make([]byte, wire.PrefaceSize+wire.HeaderSize)
	n, err := io.ReadFull(nc, begin[:len(wire.Magic)])
	if n > 0 && !bytes.HasPrefix(wire.Magic[:], begin[:n]) {
		a.begin = begin[:n:n]
		rest := make([]byte, 256)
		n, _ := nc.Read(rest) // what there is, for its meaning
		a.begin = append(a.begin, rest[:n]...)
		return a
	}
	if err == nil {
		_, err = io.ReadFull(nc, begin[len(wire.Magic):])
	}
	if err == nil {
		err = wire.ParsePreface(begin)
	}
	if err != nil {
		a.err = cmpErr(err, a.err)
		return a
	}
	a.err = a.frame(nc, begin[wire.PrefaceSize:])
	return a
}

// cmpErr returns the first of two errors, unless it is only the end of the connection.
func cmpErr(read, write error) error {
	if write != nil && (errors.Is(read, io.EOF) || errors.Is(read, io.ErrUnexpectedEOF)) {
		return write
	}
	if errors.Is(read, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return read
}

// longestFrame is the longest body of SETTINGS or CLOSE.
const longestFrame = 4 << 10

// frame reads the first frame of the server: SETTINGS, or CLOSE.
func (a *answer) frame(nc net.Conn, header []byte) error {
	h, err := wire.ParseHeader(header)
	if err != nil {
		return err
	}
	if h.Length > longestFrame {
		return fmt.Errorf("the first frame is %s with %d bytes", h.Type, h.Length)
	}
	body := make([]byte, h.Length)
	if _, err := io.ReadFull(nc, body); err != nil {
		return err
	}
	switch h.Type {
	case wire.TypeSettings:
		a.settings, err = wire.ParseSettings(body)
	case wire.TypeClose:
		a.closed = true
		a.reason, a.text, err = wire.ParseClose(body)
	default:
		err = fmt.Errorf("the first frame is %s", h.Type)
	}
	return err
}

// fault returns the answer as an error, or nil.
func (a *answer) fault() error {
	switch {
	case a.closed:
		return wire.Errorf(a.reason, "%s", a.text)
	case len(a.begin) > 0:
		return errors.New("the port speaks another protocol")
	}
	return a.err
}

// refused reports a handshake that the server ended with a reason.
func (p *probe) refused(a *answer) {
	switch a.reason {
	case wire.Unauthenticated:
		p.anser = true
		p.needsIdentity("a token or a certificate of the client")
	case wire.Overload:
		p.anser = true
		p.add("limits", Fail, "find out which clients hold the connections, add instances, or raise anser.MaxConns", "the server takes no more connections: %s", a.text)
	case wire.BadVersion:
		p.add("handshake", Fail, "use a command of the server's version, or upgrade the server", "the server speaks another version of the protocol: %s", a.text)
	default:
		p.add("handshake", Fail, "look into the log of the server", "the server refused the handshake: %s (%s)", a.text, a.reason)
	}
}

// needsIdentity reports that the server authenticates its clients. Without a credential of the
// user, nothing more can be learnt.
func (p *probe) needsIdentity(kind string) {
	p.note("authentication", "the server speaks Anser and requires %s", kind)
}

// speaksTLS reports whether the port answers a TLS handshake, even with a refusal.
func (p *probe) speaksTLS(ctx context.Context) bool {
	err := p.timing.step("TLS", func() error {
		_, err := p.shake(ctx, tls.VersionTLS13)
		return err
	})
	_, alert := errors.AsType[tls.AlertError](err)
	return err == nil || alert || strings.Contains(err.Error(), "remote error: tls")
}

// wantsTLS reports a port with TLS, and goes on with it, although the user did not ask for it. No
// credential is sent.
func (p *probe) wantsTLS(ctx context.Context) {
	p.add("tls", Fail, "use --tls, or tls:// in the address", "the port speaks TLS")
	p.tls = true
	p.checkTLS(ctx)
	p.trusted = false
}

// The beginnings of what other servers send: an alert of TLS, and an answer of HTTP.
var (
	tlsAlert = []byte{0x15, 0x03}
	httpLine = []byte("HTTP/1.")
)

func (p *probe) speaksHTTP() {
	p.add("handshake", Fail, "if calls of Anser must reach it, dial the server itself, or a proxy that forwards TCP", "the port speaks HTTP/1.1, not Anser")
}

// strange reports a port that does not speak Anser's protocol.
func (p *probe) strange(ctx context.Context, a *answer) {
	switch {
	case bytes.HasPrefix(a.begin, tlsAlert):
		p.wantsTLS(ctx)
	case bytes.HasPrefix(a.begin, httpLine):
		p.speaksHTTP()
	default:
		p.add("handshake", Fail, "correct the address", "the port speaks neither Anser nor HTTP: it begins with %q", a.begin[:min(len(a.begin), 40)])
	}
}
