package etcd

import (
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
)

// servicePrefix returns the common prefix of the keys of a service's instances.
func (r *Registry) servicePrefix(service string) string { return r.prefix + "/" + service + "/" }

// key returns the key of an instance. Slashes in the instance's own key are escaped, so every key
// has exactly two parts after the prefix.
func (r *Registry) key(in registry.Instance) string {
	return r.servicePrefix(in.Service) + url.PathEscape(in.Key())
}

// encode returns the key and the value of an instance.
func (r *Registry) encode(in registry.Instance) (key, value string, err error) {
	if r.rpcx {
		return r.encodeRPCX(in)
	}
	record, err := registry.Encode(in)
	return r.key(in), string(record), err
}

// decode returns the instance stored under a key of the service.
func (r *Registry) decode(kv *mvccpb.KeyValue) (registry.Instance, error) {
	if r.rpcx {
		return r.decodeRPCX(kv)
	}
	in, err := registry.Decode(kv.Value)
	if err != nil {
		return in, fmt.Errorf("etcd key %s: %w", kv.Key, err)
	}
	// A record under a foreign key would appear in two lists, or twice in one.
	if want := r.key(in); want != string(kv.Key) {
		return in, fmt.Errorf("etcd key %s holds the record of %s: move it there, or delete it", kv.Key, want)
	}
	return in, nil
}

// serviceNames returns the services that the keys belong to.
func (r *Registry) serviceNames(kvs []*mvccpb.KeyValue) map[string]bool {
	names := make(map[string]bool)
	for _, kv := range kvs {
		service, rest, ok := strings.Cut(strings.TrimPrefix(string(kv.Key), r.prefix+"/"), "/")
		if ok && !strings.Contains(rest, "/") && (!r.rpcx || rpcxlayout.IsServer(rest)) && registry.CheckService(service) == nil {
			names[service] = true
		}
	}
	return names
}
