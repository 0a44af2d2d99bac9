package anser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/internal/redact"
	"github.com/anser-rpc/anser/registry"
)

// source is where a client's instances come from.
type source struct {
	resolver registry.Resolver
	service  string
	key      string // name of the saved list; "" for none
	closer   io.Closer
	fixed    []registry.Instance // known without a registry
}

// parseTarget parses the target of Dial.
func parseTarget(target string, schemes []registry.Scheme, transports []Transport) (source, error) {
	if target == "" {
		return source{}, fmt.Errorf("the target is empty: use host:port, or a scheme such as tcp://a:1,b:2")
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return fixedSource(target, "", target, nil)
	}
	for _, s := range schemes {
		if s.Name == scheme {
			return schemeSource(target, s)
		}
	}
	switch {
	case scheme == "tcp":
		return fixedSource(target, "", rest, transports)
	case hasTransport(scheme, transports):
		return fixedSource(target, scheme+"://", rest, transports)
	case scheme == "file":
		return schemeSource(target, registry.FileScheme())
	}
	return source{}, errUnknownScheme(target, scheme, schemes, transports)
}

func errUnknownScheme(target, scheme string, schemes []registry.Scheme, transports []Transport) error {
	known := []string{"file", "tcp", "tls", "unix"}
	for _, t := range transports {
		known = append(known, t.Scheme)
	}
	for _, s := range schemes {
		known = append(known, s.Name)
	}
	slices.Sort(known)
	return fmt.Errorf("target %q: unknown scheme %q: this client knows %s; others are options of Dial, such as etcd.Scheme() or quic.Transport()",
		target, scheme, strings.Join(known, ", "))
}

// fixedSource returns the source for a comma-separated list of addresses, each with the prefix,
// which may be repeated. Those of a list without a prefix, which is that of TCP, may be of several
// transports.
func fixedSource(target, prefix, list string, transports []Transport) (source, error) {
	if name := redact.Target(target); name != target {
		return source{}, fmt.Errorf("target %q has a user, which addresses do not have: leave it out", name)
	}
	var instances []registry.Instance
	for address := range strings.SplitSeq(list, ",") {
		address = prefix + strings.TrimPrefix(strings.TrimSpace(address), cmp.Or(prefix, "tcp://"))
		if network, host := splitAddress(address); network == "tcp" && strings.Contains(host, "@") {
			return source{}, errors.New("an address of the target has a user: leave it out") // and perhaps a password, so it is not shown
		}
		if err := registry.CheckAddress(address); err != nil {
			return source{}, fmt.Errorf("target %q: %w", target, err)
		}
		if scheme, _, ok := strings.Cut(address, "://"); ok && !hasTransport(scheme, transports) {
			return source{}, errUnknownScheme(target, scheme, nil, transports)
		}
		if slices.ContainsFunc(instances, func(in registry.Instance) bool { return in.Address == address }) {
			return source{}, fmt.Errorf("target %q: %s occurs twice", target, address)
		}
		instances = append(instances, registry.Instance{Service: "static", Address: address})
	}
	registry.Sort(instances)
	return source{fixed: instances}, nil
}

func schemeSource(target string, s registry.Scheme) (source, error) {
	u, err := url.Parse(target)
	if err != nil && strings.Contains(target, "@") { // the cause may have a part of the password
		return source{}, fmt.Errorf("target %q is no URL: escape the user and the password in it, as url.UserPassword does", redact.Target(target))
	}
	if err != nil {
		return source{}, fmt.Errorf("target %q: %w", target, err)
	}
	r, service, err := s.Open(u)
	if err != nil {
		return source{}, fmt.Errorf("target %q: %w", target, err)
	}
	closer, _ := r.(io.Closer)
	if err := registry.CheckService(service); err != nil {
		if closer != nil {
			closer.Close()
		}
		return source{}, fmt.Errorf("target %q: %w", target, err)
	}
	key := u.Redacted()
	if _, ok := r.(*registry.Memory); ok {
		key = "" // another process has other instances
	}
	return source{resolver: r, service: service, key: key, closer: closer}, nil
}

// watch feeds the cluster until ctx is done.
func (s *source) watch(ctx context.Context, update func([]registry.Instance), trouble func(error)) error {
	return s.resolver.Watch(ctx, s.service, update, trouble)
}

// refresh asks a resolver that learns of changes late to look now. It does not block.
func (s *source) refresh() {
	if r, ok := s.resolver.(registry.Refresher); ok {
		r.Refresh(s.service)
	}
}
