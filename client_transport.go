package anser

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Transport is a way to reach servers other than TCP, TLS and unix sockets, which are built in. It
// is an option of [Dial]. The client then understands addresses such as "quic://10.0.0.7:443", both
// in a target and in the records of a registry:
//
//	c, err := anser.Dial("quic://a:443,b:443", quic.Transport(), anser.TLS(config))
//
// A client with a transport shares its connections with no other client. On the server a transport
// is a [net.Listener] for [Server.Serve]; the network of its Addr should be the scheme, so that
// [Announce] can fill in the address.
type Transport struct {
	// Scheme is the part before "://" of an address, in lower case. It replaces a built-in scheme
	// of that name.
	Scheme string
	// Dial connects to the address, which is the part after "://". It is called concurrently, and
	// bounded by ctx, which ends after the option [ConnectTimeout]. With Secure, config is the
	// client's TLS configuration, or one that trusts the system's authorities, completed with the
	// name of the server; it must not be changed. Without Secure it is nil.
	//
	// The connection's Close must end blocked reads and writes. With a method CloseWrite() error it
	// can close one direction; without it, replies that are in flight when a server stops may be
	// lost.
	Dial func(ctx context.Context, address string, config *tls.Config) (net.Conn, error)
	// Secure means that Dial does TLS itself. If it is false, the option [TLS] adds TLS to the
	// connections, as for TCP.
	Secure bool
	// Wrap returns the connection that carries Anser's frames, given one to the address that is
	// dialed and, with TLS, secured. It is for protocols that translate: the frames that the client
	// writes and reads need not be those of the wire. It must not take longer than the deadline of
	// nc, which it must leave in place. If the result has a method TryWrite(p []byte) (n int, err
	// error), which takes what it can without blocking, callers write with it themselves. An error
	// closes nc. With Wrap, Dial may be nil, which means TCP. Nil means no wrapping.
	Wrap func(nc net.Conn, address string) (net.Conn, error)
	// NextProto is the name of the protocol for ALPN in place of [ALPN]. With it, the connection
	// must be refused by Wrap if TLS has negotiated another one.
	NextProto string
	// Conns is the number of connections to an address for a client without the option [Conns]; 0
	// means 2.
	Conns int
	// StreamsApart means that each stream ([Open]) has its own connection, which ends with it. It
	// is for transports whose connections need no handshake, and where a lost packet delays only
	// one of them.
	StreamsApart bool
	// Err is why the transport cannot be used, or nil. [Dial] returns it. It is for functions that
	// make a Transport from options and have no error to return.
	Err error
}

// DialOption makes a Transport an option of [Dial].
func (Transport) DialOption() {}

// Transports is several transports as one option of [Dial].
type Transports []Transport

// DialOption makes Transports an option of [Dial].
func (Transports) DialOption() {}

// check returns what is wrong with the transport, or nil.
func (t *Transport) check() error {
	if t.Err != nil {
		return t.Err
	}
	if t.Dial == nil && t.Wrap == nil {
		return fmt.Errorf("the transport %q has no function Dial", t.Scheme)
	}
	if t.Conns < 0 {
		return fmt.Errorf("the transport %q has %d Conns: want at least 0", t.Scheme, t.Conns)
	}
	if err := registry.CheckAddress(t.Scheme + "://host:1"); t.Scheme == "" || err != nil {
		return fmt.Errorf("the transport %q needs a scheme of lower-case letters and digits", t.Scheme)
	}
	return nil
}

// systemTLS is the configuration of clients that dial tls:// without the option TLS.
var systemTLS = &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{ALPN}}

// hasTransport reports whether the scheme is that of addresses, not of a registry.
func hasTransport(scheme string, transports []Transport) bool {
	for i := range transports {
		if transports[i].Scheme == scheme {
			return true
		}
	}
	return scheme == "tls" || scheme == "unix"
}

// tlsFor returns the configuration with the name by which to verify the server.
func tlsFor(config *tls.Config, address string) *tls.Config {
	if config.ServerName != "" {
		return config
	}
	address, _, _ = strings.Cut(address, "/")
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		name = address
	}
	config = config.Clone()
	config.ServerName = name
	if verify := config.VerifyConnection; verify != nil {
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if state.ServerName == "" { // an IP address is not sent, but must be verified like a name
				state.ServerName = name
			}
			return verify(state)
		}
	}
	return config
}
