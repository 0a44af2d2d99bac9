// Package semconv writes what a call has in the form of OpenTelemetry's semantic conventions.
package semconv

import (
	"net"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/wire"
)

// Status returns the number of a code as gRPC writes it, such as DEADLINE_EXCEEDED.
func Status(code uint8) string {
	if c := wire.Code(code); c <= wire.UnauthenticatedCall {
		return c.String()
	}
	return strconv.Itoa(int(code))
}

// Method returns the full name of a method: Arith.Mul is Arith/Mul. An empty name, of a method that
// a server does not serve, is "_OTHER".
func Method(name string) string {
	if name == "" {
		return "_OTHER"
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 && !strings.Contains(name, "/") {
		return name[:i] + "/" + name[i+1:]
	}
	return name
}

// Address returns the parts of host:port, or all of s and 0 if it is something else.
func Address(s string) (address string, port int) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return s, 0
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return s, 0
	}
	return host, int(n)
}
