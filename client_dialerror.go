package anser

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/anser-rpc/anser/wire"
)

// obstacleOf returns what an error of host.connect means. After earlier connections to the address
// (`stood`), a server that answers differently may be shutting down, or the connection is damaged,
// unless the error is about certificates.
func obstacleOf(err error, stood bool) obstacle {
	switch {
	case err == nil:
		return passing
	case isUnauthenticated(err), errors.Is(err, errInTheClear), errors.Is(err, errNoTransport), isCertificate(err):
		return lasting
	case isAbsent(err):
		return absent
	case stood:
		return passing
	}
	if _, ok := errors.AsType[*wire.Error](err); ok { // this side does not understand the peer
		return lasting
	}
	if closed, ok := errors.AsType[*peerClosed](err); ok && closed.reason != wire.Normal {
		switch closed.reason { // or the peer does not understand this side
		case wire.BadVersion, wire.BadFrame, wire.BadChecksum:
			return lasting
		}
		return passing
	}
	if isTLS(err) {
		return lasting
	}
	return passing
}

// errNoTransport is why an address with an unknown scheme cannot be reached.
var errNoTransport = errors.New("the client has no transport")

// isAbsent reports whether err says that nothing listens at an address, or that there is no such
// address.
func isAbsent(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	// On Windows the error of a refused connection is another one with the same word.
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) && isDial(err) || strings.Contains(err.Error(), "refused it")
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// isCertificate reports whether one side does not take the certificate of the other one.
func isCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

// isTLS reports whether TLS failed for what the sides said, and not because the connection was
// lost.
func isTLS(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}

// dialCode is the code of calls that fail because no connection could be made.
func dialCode(err error) Code {
	if isUnauthenticated(err) || errors.Is(err, errInTheClear) {
		return Unauthenticated
	}
	return Unavailable
}

// dialError completes an error of dialing with what to do about it.
func dialError(address string, err error) error {
	if strings.Contains(err.Error(), "refused") {
		return fmt.Errorf("%w: no server is listening at %s: start the server or correct the address", err, address)
	}
	return err
}

// unreached is the error of an attempt for which no connection could be made, for the reason err.
func unreached(err error, stood bool) *Error {
	e := failure(dialCode(err), NotSent, PhaseDial, err, "%v", err)
	e.obstacle = obstacleOf(err, stood)
	return e
}
