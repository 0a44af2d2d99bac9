// Package rpcxclient makes clients of rpcx for tests that end connections, or change the servers,
// under their calls.
package rpcxclient

import (
	"net"

	"github.com/smallnest/rpcx/client"
)

// New is client.NewXClient with the default options. The client does not learn that a write has
// failed, only that there is nothing more to read, which ends its calls too. Client.send of rpcx
// v1.9.3 would otherwise write the error of a call that Client.input has ended already, while the
// caller reads it: a data race.
func New(path string, mode client.FailMode, by client.SelectMode, d client.ServiceDiscovery) client.XClient {
	c := client.NewXClient(path, mode, by, d, client.DefaultOption)
	c.GetPlugins().Add(plugin{})
	return c
}

type plugin struct{}

// ConnCreated implements client.ConnCreatedPlugin.
func (plugin) ConnCreated(c net.Conn) (net.Conn, error) { return conn{c}, nil }

type conn struct{ net.Conn }

func (c conn) Write(b []byte) (int, error) {
	c.Conn.Write(b)
	return len(b), nil
}
