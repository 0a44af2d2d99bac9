package etcd

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
)

// RPCX makes a Registry keep its instances as rpcx's plugin EtcdV3RegisterPlugin does, under the
// same base path: rpcx clients find the Anser servers, and clients of Anser the rpcx
// servers. It takes the place of [Prefix].
//
// The address of an rpcx server has the scheme rpcx: a client needs the option protocols.RPCX.
// That of an instance of Anser must be host:port; its server must speak rpcx too. A weight of rpcx
// counts 100 here, "inactive" is Disabled, and the first group of a server is its group.
func RPCX(basePath string) Option {
	return func(c *config) { c.prefix, c.rpcx = basePath, true }
}

// RPCXScheme lets a client find its service in etcd, in the rpcx layout. It is an option of
// anser.Dial:
//
//	c, err := anser.Dial("etcd+rpcx://127.0.0.1:2379/rpcx/Arith", etcd.RPCXScheme(), protocols.RPCX())
//
// The path of the target is the base path of rpcx, with the slash in front, and the service path.
// The options are those of Dial.
func RPCXScheme(opts ...DialOption) registry.Scheme {
	return registry.Scheme{Name: "etcd+rpcx", Open: func(u *url.URL) (registry.Resolver, string, error) {
		endpoints, base, service, err := rpcxlayout.Target(targets, u)
		if err != nil {
			return nil, "", err
		}
		r, err := Dial(endpoints, append(append([]DialOption(nil), opts...), RPCX(base))...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}

// checkRPCX checks the options of a registry in the rpcx layout.
func (c *config) checkRPCX() error {
	if err := rpcxlayout.CheckBase(c.prefix); err != nil {
		return fmt.Errorf("etcd.RPCX: %w", err)
	}
	return c.checkTTL()
}

// moveRPCX withdraws the record of an instance that has another address now.
func (r *Registry) moveRPCX(ctx context.Context, in registry.Instance, key string) error {
	before := r.names.Put(in, key)
	if before == "" {
		return nil
	}
	if err := r.announcer.ledger.Remove(ctx, before); err != nil {
		return fmt.Errorf("register %q of service %q: %w", in.Key(), in.Service, err)
	}
	return nil
}

func (r *Registry) encodeRPCX(in registry.Instance) (key, value string, err error) {
	record, err := rpcxlayout.Encode(in, nil)
	if err != nil {
		return "", "", err
	}
	name, err := rpcxlayout.Name(in)
	return r.servicePrefix(in.Service) + name, string(record), err
}

func (r *Registry) decodeRPCX(kv *mvccpb.KeyValue) (registry.Instance, error) {
	service, name, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), r.prefix+"/"), "/")
	return rpcxlayout.Decode(service, name, kv.Value)
}
