package doctor

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/internal/accept"
	"github.com/anser-rpc/anser/registry"
)

// endpoint is the address of a server, split up.
type endpoint struct {
	address string // as it was given
	scheme  string
	host    string // or the path of a Unix socket
	port    string
}

// parseEndpoint splits the address of an instance.
func parseEndpoint(address string) (endpoint, error) {
	if err := registry.CheckAddress(address); err != nil {
		return endpoint{}, err
	}
	e := endpoint{address: address, scheme: "tcp"}
	rest := address
	if scheme, after, ok := strings.Cut(address, "://"); ok {
		e.scheme, rest = scheme, after
	}
	if e.scheme == "unix" {
		e.host = rest
		return e, nil
	}
	rest, _, _ = strings.Cut(rest, "/")
	var err error
	e.host, e.port, err = net.SplitHostPort(rest)
	return e, err
}

// endpoints splits a target that lists addresses: "a:1,b:2", "tls://a:1,b:2".
func endpoints(target string) (list []endpoint, err error) {
	prefix, rest := "", target
	if scheme, after, ok := strings.Cut(target, "://"); ok {
		prefix, rest = scheme+"://", after
	}
	if prefix == "unix://" {
		e, err := parseEndpoint(target)
		return []endpoint{e}, err
	}
	for address := range strings.SplitSeq(rest, ",") {
		e, err := parseEndpoint(prefix + strings.TrimSpace(address))
		if err != nil {
			return nil, fmt.Errorf("target %q: %w", target, err)
		}
		list = append(list, e)
	}
	return list, nil
}

// known reports whether clients of this command have a transport for the scheme.
func (e endpoint) known() bool {
	return slices.Contains([]string{"tcp", "tls", "unix", "http", "https", "ws", "wss", "quic"}, e.scheme)
}

// secure reports whether the scheme means TLS.
func (e endpoint) secure() bool { return slices.Contains([]string{"tls", "https", "wss"}, e.scheme) }

// direct reports whether the bytes of the connection are those of Anser's protocol, with or
// without TLS.
func (e endpoint) direct() bool { return slices.Contains([]string{"tcp", "tls", "unix"}, e.scheme) }

// local reports whether the host is this machine.
func (e endpoint) local() bool {
	return e.scheme == "unix" || accept.IsLoopback(e.host)
}
