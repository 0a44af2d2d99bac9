package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// Scheme adds support for targets of the form "name://…" to a client. It is an option of
// anser.Dial.
type Scheme struct {
	// Name is the scheme, in lower case: "etcd".
	Name string
	// Open returns the registry that target names and the name of the service in it. It does not
	// wait for the registry. A resolver that is an io.Closer is closed with the client.
	Open func(target *url.URL) (r Resolver, service string, err error)
}

// DialOption marks a Scheme as an option of anser.Dial.
func (Scheme) DialOption() {}

// FileScheme supports targets of the form "file:///path/registry.json/service". Every client
// supports them by default; FileScheme is for SeveralScheme.
func FileScheme() Scheme {
	return Scheme{Name: "file", Open: func(u *url.URL) (Resolver, string, error) {
		folder, service := path.Split(u.Path)
		folder = strings.TrimSuffix(folder, "/")
		if u.Host != "" || folder == "" || service == "" {
			return nil, "", errors.New("want file:///path/registry.json/service")
		}
		r, err := NewFile(filepath.FromSlash(folder))
		return r, service, err
	}}
}

// SeveralScheme combines registries that a client uses at the same time, in order of preference;
// see Several.
//
//	shop := registry.SeveralScheme("shop", []registry.Scheme{etcd.Scheme(), dns.Scheme()},
//		"etcd://10.0.0.1:2379", "dns:///{service}.shop.internal:8972")
//	c, err := anser.Dial("shop:///arith", shop)
//
// {service} in a target is replaced by the service; a target without it gets the service as its
// last path segment. In addition to the given schemes, file is supported.
func SeveralScheme(name string, schemes []Scheme, targets ...string) Scheme {
	schemes = append([]Scheme{FileScheme()}, schemes...)
	return Scheme{Name: name, Open: func(u *url.URL) (Resolver, string, error) {
		service := strings.TrimPrefix(u.Path, "/")
		if u.Host != "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, "", fmt.Errorf("the registries are options of SeveralScheme: want %s:///service", name)
		}
		if err := CheckService(service); err != nil {
			return nil, "", err
		}
		var members []Resolver
		for _, target := range targets {
			r, err := openMember(target, service, schemes)
			if err != nil {
				closeAll(members)
				return nil, "", fmt.Errorf("registry %q: %w", target, err)
			}
			members = append(members, r)
		}
		r, err := Several(members...)
		return r, service, err
	}}
}

const servicePlace = "{service}"

// openMember opens one of several registries.
func openMember(target, service string, schemes []Scheme) (Resolver, error) {
	if strings.Contains(target, servicePlace) {
		target = strings.ReplaceAll(target, servicePlace, service)
	} else {
		target = strings.TrimRight(target, "/") + "/" + service
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	for _, s := range schemes {
		if s.Name != u.Scheme {
			continue
		}
		r, name, err := s.Open(u)
		if err != nil || name == service {
			return r, err
		}
		return &renamed{r, name}, nil
	}
	return nil, fmt.Errorf("unknown scheme %q: give SeveralScheme the Scheme that understands it", u.Scheme)
}

func closeAll(members []Resolver) {
	for _, m := range members {
		if c, ok := m.(io.Closer); ok {
			c.Close()
		}
	}
}

// renamed is a resolver in which the service has another name, as in the DNS.
type renamed struct {
	Resolver
	name string
}

// Watch implements Resolver.
func (r *renamed) Watch(ctx context.Context, service string, update func([]Instance), trouble func(error)) error {
	return r.Resolver.Watch(ctx, r.name, func(list []Instance) {
		mine := make([]Instance, len(list))
		for i, in := range list {
			in.Service = service
			mine[i] = in
		}
		update(mine)
	}, trouble)
}

// Refresh implements Refresher.
func (r *renamed) Refresh(string) {
	if f, ok := r.Resolver.(Refresher); ok {
		f.Refresh(r.name)
	}
}

// Close closes the resolver, if it is an io.Closer.
func (r *renamed) Close() error {
	if c, ok := r.Resolver.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
