package gateway

import (
	"context"
	"net/http"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/introspect"
	"github.com/anser-rpc/anser/protocols"
)

// routedKey is the key of the route that the front has chosen for an HTTP request.
type routedKey struct{}

// choose returns the service for a call of an entry, and its client: by the route that matches the
// call, or else the service that has the method. The call counts for the service until its leave.
func (g *Gateway) choose(ctx context.Context, e *entry, md anser.Metadata) (*upstream, *anser.Client, error) {
	r := g.routeOf(ctx, e, md)
	if r == nil {
		if e.service == nil {
			return nil, nil, e.ambiguous()
		}
		return open(e.service, subset{})
	}
	d := r.pick(func(d *Destination) bool { return d.URL == "" && (!e.explicit() || d.Service == e.service.name) })
	if d == nil {
		if e.explicit() { // the route is for others
			return open(e.service, subset{})
		}
		return nil, nil, anser.Refuse(anser.Unavailable, "the route for method %q leads to no service", e.method.name)
	}
	for _, u := range e.among {
		if u.name == d.Service {
			return open(u, subset{d.Group, d.Version})
		}
	}
	return nil, nil, anser.Refuse(anser.Unimplemented, "the route for method %q leads to the service %s, which does not have it", e.method.name, d.Service)
}

func open(u *upstream, of subset) (*upstream, *anser.Client, error) {
	c, err := u.client(of)
	if err != nil {
		return nil, nil, anser.Refuse(anser.Unavailable, "%v", err)
	}
	if err := u.enter(); err != nil {
		return nil, nil, err
	}
	return u, c, nil
}

// explicit reports whether the name of the entry has the service in front.
func (e *entry) explicit() bool { return strings.Contains(e.name, "/") }

// routeOf returns the route that matches a call, or nil.
func (g *Gateway) routeOf(ctx context.Context, e *entry, md anser.Metadata) *Route {
	config := g.plan.Load().config
	if r := protocols.RequestFrom(ctx); r != nil {
		route, _ := r.Context().Value(routedKey{}).(*Route)
		if r.URL.Path == toolsPath && (route == nil || route.Path == "") {
			a := askOf(r)
			a.path = "/" + e.name // that of the call of a tool
			return config.find(a)
		}
		return route
	}
	if len(config.Routes) == 0 {
		return nil
	}
	service, method := introspect.SplitName(e.method.name)
	return config.find(&ask{
		host: protocols.HostFrom(ctx), path: "/" + service + "/" + method,
		header: func(name string) (string, bool) {
			value, ok := md[name]
			return value, ok
		},
	})
}

// askOf returns an HTTP request as routes see it.
func askOf(r *http.Request) *ask {
	return &ask{host: r.Host, path: r.URL.Path, header: func(name string) (string, bool) {
		values := r.Header.Values(name)
		return strings.Join(values, ", "), len(values) > 0
	}}
}
