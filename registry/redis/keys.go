package redis

import (
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// key returns one of the keys of a service. The braces are the hash tag that keeps all of them on
// one node of a cluster.
func (r *Registry) key(service, what string) string { return r.prefix + ":{" + service + "}:" + what }

// keys returns the keys for the scripts.
func (r *Registry) keys(service string) []string {
	return []string{r.key(service, "instances"), r.key(service, "expiry"), r.key(service, "owners"), r.key(service, "revision")}
}

// channel returns the channel for changes of the service.
func (r *Registry) channel(service string) string { return r.key(service, "changed") }

// servicesKey holds the names of services, including some without instances.
func (r *Registry) servicesKey() string { return r.prefix + ":services" }

func (r *Registry) documentKey(name string) string { return r.prefix + ":document:" + name }

func (r *Registry) documentChannel(name string) string { return r.documentKey(name) + ":changed" }

// decode returns the instance stored under a key of the service.
func (r *Registry) decode(service, key, record string) (registry.Instance, error) {
	in, err := registry.Decode([]byte(record))
	if err != nil {
		return in, fmt.Errorf("redis hash %s, field %q: %w", r.key(service, "instances"), key, err)
	}
	// A record under a foreign key would appear in two lists, or twice in one.
	if in.Service != service || in.Key() != key {
		return in, fmt.Errorf("redis hash %s, field %q holds the record of %q of service %q: move it there, or delete it",
			r.key(service, "instances"), strings.ToValidUTF8(key, "?"), in.Key(), in.Service)
	}
	return in, nil
}
