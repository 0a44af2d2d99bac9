package zookeeper

import (
	"context"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
)

// RPCX makes a Registry keep its instances as rpcx's plugin ZooKeeperRegisterPlugin does, under the
// same base path: rpcx clients find the Anser servers, and clients of Anser the rpcx
// servers. It takes the place of [Prefix].
//
// The address of an rpcx server has the scheme rpcx: a client needs the option protocols.RPCX.
// That of an instance of Anser must be host:port; its server must speak rpcx too. A weight of rpcx
// counts 100 here, "inactive" is Disabled, and the first group of a server is its group.
func RPCX(basePath string) Option {
	return func(c *config) { c.prefix, c.rpcx = "/"+strings.TrimLeft(basePath, "/"), true }
}

// RPCXScheme lets a client find its service in ZooKeeper, in the rpcx layout. It is an option of
// anser.Dial:
//
//	c, err := anser.Dial("zookeeper+rpcx://127.0.0.1:2181/rpcx/Arith", zookeeper.RPCXScheme(), protocols.RPCX())
//
// The path of the target is the base path of rpcx and the service path. The options are those of
// Dial.
func RPCXScheme(opts ...Option) registry.Scheme {
	return registry.Scheme{Name: "zookeeper+rpcx", Open: func(u *url.URL) (registry.Resolver, string, error) {
		endpoints, base, service, err := rpcxlayout.Target(targets, u)
		if err != nil {
			return nil, "", err
		}
		r, err := Dial(endpoints, append(append([]Option(nil), opts...), RPCX(base))...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}

// encode returns the data of the node of an instance.
func (c *config) encode(in registry.Instance) ([]byte, error) {
	if !c.rpcx {
		return registry.Encode(in)
	}
	data, err := rpcxlayout.Encode(in, nil)
	if err == nil {
		_, err = rpcxlayout.Name(in)
	}
	return data, err
}

// moveRPCX withdraws the record of an instance that has another address now. The error is that of
// an instance that rpcx has no place for.
func (r *Registry) moveRPCX(ctx context.Context, in registry.Instance) error {
	if _, err := r.encode(in); err != nil {
		return err
	}
	if before := r.names.Put(in, r.instancePath(in)); before != "" {
		return r.announcer.Deregister(ctx, before, in)
	}
	return nil
}
