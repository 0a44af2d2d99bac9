package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/wirepeer"
)

// peerNames are the other frameworks, by the beginnings of the names of their roles.
var peerNames = map[string]string{"grpc": "grpc-go", "rpcx": "rpcx"}

// peerKeepalive is after how long a silence each framework sends a keepalive, and how long it
// waits for the answer.
var peerKeepalive = map[string][2]time.Duration{"grpc": {grpcPing, grpcAnswer}, "rpcx": {rpcxPing, rpcxAnswer}}

// ofPeer reports whether a role is one of another framework.
func ofPeer(role string) bool {
	name, _, ok := strings.Cut(role, "-")
	return ok && peerNames[name] != ""
}

// crashed is the error of a process that has ended by itself.
type crashed struct {
	error
	name string // of the process
	said string // on its standard error
}

// Unwrap returns how it ended.
func (c crashed) Unwrap() error { return c.error }

// brief returns the text without the stacks, which are for developers.
func (c crashed) brief() string {
	for line := range strings.Lines(c.said) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return c.name + " crashed: " + strings.TrimSpace(line)
		}
	}
	return c.name + " crashed"
}

// failed classifies why a row could not be completed. With Anser that is a bug, in the product or
// in the row. With a peer it is the peer's failure only if its process crashed.
func (r *result) failed(err error) (state, why string) {
	if r.Peer == "" {
		return broken, err.Error()
	}
	if c, ok := errors.AsType[crashed](err); ok {
		return broken, c.brief()
	}
	return notRun, err.Error()
}

// startPeers starts servers and clients of another framework, which are given their addresses.
func (c *cluster) startPeers(o clusterOptions) (err error) {
	if o.proxied {
		if c.proxy, err = c.startProxy(); err != nil {
			return err
		}
	}
	var addresses []string
	for i := range serverCount {
		s, name := o.servers, fmt.Sprintf("server%d", i+1)
		s.Dir = c.books()
		if err := c.announce(name, &s); err != nil {
			return err
		}
		p, err := c.start(c.role("server"), name, s)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, p)
		addresses = append(addresses, cmp.Or(p.config.Announce, p.config.Listen))
	}
	o.client.Target = strings.Join(addresses, ",")
	o.client.Timeout = cmp.Or(o.client.Timeout, c.o.Timeout)
	if c.client, err = c.start(c.role("client"), "client", o.client); err != nil {
		return err
	}
	return c.enlist()
}

// answerPeer tells the parent that a server of a peer is there, and then what it asks for. The
// process ends with the parent.
func (s *server) answerPeer(p *parent) error {
	if err := p.ready(); err != nil {
		return err
	}
	go func() {
		if err := p.obey(s.do); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}()
	return nil
}

// peerALPN are the protocols that a peer speaks under TLS, if it names them.
var peerALPN = map[string][]string{"grpc": {"h2"}}

// peerTLS are the settings of TLS for both sides of another framework.
func peerTLS(peer string, n *tlsNames) (server, client *tls.Config, err error) {
	files, err := n.open()
	if err != nil {
		return nil, nil, err
	}
	defer files.Close() // the data read so far stays
	client = files.Client().Clone()
	client.ServerName, client.NextProtos = "ledger", peerALPN[peer]
	return files.Server(peerALPN[peer]...), client, nil
}

// introduce performs the beginning of a client's connection in the framework, which then stays
// idle, except for messages that must be answered until it ends.
func introduce(peer string, nc net.Conn, answering *sync.WaitGroup) error {
	switch peer {
	case "grpc":
		return introduceGRPC(nc, answering)
	case "rpcx":
		return introduceRPCX(nc)
	default:
		p := wirepeer.New(nc)
		_, err := p.Handshake()
		if err == nil {
			answering.Go(func() { answerPings(p) })
		}
		return err
	}
}
