package anser

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

// route describes how a client reaches an address.
type route struct {
	network string
	address string
	tls     *tls.Config // to add to the connection, or nil
	dial    dialFunc
	conns   int

	secure       bool // dial does TLS with the server itself
	wrapper      *Transport
	streamsApart bool
}

// route returns how the client reaches an address of an instance.
func (o *dialOptions) route(address string) route {
	network, rest := splitAddress(address)
	r := route{network: network, address: rest, tls: o.tls, dial: o.dialer, conns: o.conns}
	if r.conns == 0 {
		r.conns = defaultConns
	}
	if r.dial == nil {
		r.dial = new(net.Dialer).DialContext
	}
	for i := range o.transports {
		if t := &o.transports[i]; t.Scheme == network {
			return o.through(t, r)
		}
	}
	switch network {
	case "tcp", "unix":
	case "tls":
		if r.tls == nil {
			r.tls = systemTLS
		}
		dial := r.dial
		r.dial = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }
	default:
		r.dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, fmt.Errorf("%w for %s: give Dial one, such as quic.Transport() for quic://", errNoTransport, address)
		}
	}
	return r
}

// through completes the route with a transport.
func (o *dialOptions) through(t *Transport, r route) route {
	config := (*tls.Config)(nil)
	if t.Secure {
		config, r.tls, r.secure = r.tls, nil, true
		if config == nil {
			config = systemTLS
		}
		config = tlsFor(config, r.address)
	}
	if t.NextProto != "" && r.tls != nil {
		r.tls = r.tls.Clone()
		r.tls.NextProtos = []string{t.NextProto}
	}
	if t.Wrap != nil {
		r.wrapper = t
	}
	if t.Dial != nil {
		r.dial = func(ctx context.Context, _, address string) (net.Conn, error) { return t.Dial(ctx, address, config) }
	} else {
		dial := r.dial
		r.dial = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }
	}
	if o.conns == 0 && t.Conns > 0 {
		r.conns = t.Conns
	}
	r.streamsApart = t.StreamsApart
	return r
}
