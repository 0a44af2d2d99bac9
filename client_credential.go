package anser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/accept"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

// Credential is what a client presents to servers with [Authenticate]. Data is never printed.
type Credential struct {
	// Scheme is the kind of Data, in 1 to 32 bytes of a-z 0-9 - _ . ; it is not secret.
	Scheme string
	// Data is at most 16 KiB. It must not be changed after it was returned.
	Data []byte `json:"-"`
	// Expires is when the credential must have been replaced; the zero time means never.
	Expires time.Time
}

// String returns the scheme and hides Data.
func (c Credential) String() string { return fmt.Sprintf("credential %q %s", c.Scheme, hidden) }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Format hides Data whatever the verb.
func (c Credential) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue hides Data.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// credentials is a source of credentials. Its address distinguishes clients.
type credentials struct {
	source func(ctx context.Context) (Credential, error)
}

var errInTheClear = errors.New("the credential would travel unprotected: give the client anser.TLS, " +
	"or accept that others read it with anser.InsecureCredentials")

// get calls the source; a panic becomes an error.
func (c *credentials) get(ctx context.Context) (cred Credential, err error) {
	defer func() {
		if p := recover(); p != nil { // the value may hold a secret
			err = fmt.Errorf("anser.Credentials: the source panicked with a %T", p)
		}
	}()
	if cred, err = c.source(ctx); err != nil {
		return cred, fmt.Errorf("anser.Credentials: %w", err)
	}
	if err := wire.CheckAuth(cred.Scheme, len(cred.Data)); err != nil || cred.Scheme == SchemeTLS {
		return cred, fmt.Errorf("anser.Credentials: a credential with a scheme of %d bytes and %d bytes of data cannot be sent: "+
			"want a scheme of 1 to %d bytes of a-z 0-9 - _ . that is not %q, and at most %d bytes", len(cred.Scheme), len(cred.Data), wire.MaxAuthScheme, SchemeTLS, wire.MaxCredential)
	}
	if !cred.Expires.IsZero() && time.Until(cred.Expires) <= 0 {
		return cred, fmt.Errorf("anser.Credentials: the source returned a credential that has expired on %s", cred.Expires.Format(time.DateTime))
	}
	return cred, nil
}

// credential returns the credential to present on a new connection, or nil without [Credentials].
func (h *host) credential(ctx context.Context) (*Credential, error) {
	if h.credentials == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.handshakeTimeout)
	defer cancel()
	cred, err := h.credentials.get(ctx)
	return &cred, err
}

// protects returns why a credential must not be sent over the connection, or nil. TLS that a dialer
// has added may end at a proxy.
func (h *host) protects(nc net.Conn) error {
	if h.tls != nil || h.secure || h.inTheClear || nc.RemoteAddr() != nil && nc.RemoteAddr().Network() == "unix" {
		return nil
	}
	// The connection's address may be that of a proxy on this machine, the dialed one may be any
	// name.
	from, ok := ipOf(nc.RemoteAddr())
	if ok && from.IsLoopback() && isLoopback(h.address) {
		return nil
	}
	return fmt.Errorf("connect to %s: %w", h.address, errInTheClear)
}

func isLoopback(address string) bool {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return accept.IsLoopback(name)
}

// renewal keeps the credential of a connection valid.
type renewal struct {
	at   mono.Atomic // time of the next call of the source; 0: never
	busy atomic.Bool

	failed int // failures in a row; owned by the goroutine that renews, of which there is at most one
}

func newRenewal(cred *Credential) *renewal {
	r := new(renewal)
	r.sent(cred)
	return r
}

// sent records the credential that is presented now.
func (r *renewal) sent(cred *Credential) {
	r.failed = 0
	if cred.Expires.IsZero() {
		r.at.Store(0)
	} else {
		r.at.Store(mono.Now().Add(renewAfter(time.Until(cred.Expires))))
	}
}

// renewAfter returns the time after which a credential with the given lifetime is renewed.
func renewAfter(life time.Duration) time.Duration {
	return max(life-max(life/4, min(3*time.Second, life/2)), 0)
}

const maxRenewBackoff = 30 * time.Second

// tendRenewal renews the credential when it is time, and returns when that is next.
func (c *clientConn) tendRenewal(now mono.Time) (due mono.Time) {
	r := c.renewal
	if r == nil {
		return upkeep.Never
	}
	at := r.at.Load()
	switch {
	case at == 0:
		return upkeep.Never
	case now < at:
		return at
	}
	if r.busy.CompareAndSwap(false, true) {
		c.host.spawn(c.renew)
	}
	return upkeep.Never // renew sets the next time
}

// renew gets another credential and sends it.
func (c *clientConn) renew() {
	r := c.renewal
	defer func() {
		r.busy.Store(false)
		if at := r.at.Load(); at != 0 {
			c.upkeep.By(at)
		}
	}()
	cred, err := c.host.credential(c.host.ctx)
	if err != nil {
		r.failed++
		wait := min(time.Second<<min(r.failed-1, 5), maxRenewBackoff)
		r.at.Store(mono.Now().Add(wait))
		level := slog.LevelDebug
		if r.failed == 1 { // the log has the begin and the end of failures in a row
			level = slog.LevelWarn
		}
		c.host.log.Log(c.host.ctx, level, "the credential could not be renewed, trying again", "address", c.host.address, "err", err, "wait", wait)
		return
	}
	if r.failed > 0 {
		c.host.log.Info("the credential is renewed again", "address", c.host.address, "failures", r.failed)
	}
	// Even the same one: for the server its lifetime may start again.
	r.sent(cred)
	c.post(wire.AppendAuth(nil, cred.Scheme, cred.Data))
}
