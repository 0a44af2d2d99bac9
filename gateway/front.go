package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// front finds the route of an HTTP request. It sends what is for an HTTP server there, and
// gives the other requests to next.
func (g *Gateway) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		config := g.plan.Load().config
		if len(config.Routes) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		route := config.find(askOf(r))
		if route == nil {
			next.ServeHTTP(w, r)
			return
		}
		if d := route.pick(func(d *Destination) bool { return d.URL != "" }); d != nil {
			g.proxy(w, r, route, d)
			return
		}
		routed := r.WithContext(context.WithValue(r.Context(), routedKey{}, route))
		if route.Strip {
			u := *r.URL
			u.Path, u.RawPath = route.stripped(r.URL.Path), ""
			routed.URL = &u
		}
		next.ServeHTTP(w, routed)
	})
}

// newTransport returns the connections to HTTP servers.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true, DisableCompression: true, ResponseHeaderTimeout: time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// proxyMethod is the name under which requests that are not calls are counted and limited. In
// policies it is Gateway.Proxy.
const proxyMethod = "gateway/Gateway.Proxy"

// exchanged is an HTTP request that goes on to an HTTP server.
type exchanged struct {
	w       http.ResponseWriter
	route   *Route
	to      *url.URL
	aborted bool // the answer was cut off
}

type exchangedKey struct{}

// proxy forwards a request to an HTTP server, as it is: upgrades to WebSocket and events go
// through as they come. It counts as a call of proxyMethod.
func (g *Gateway) proxy(w http.ResponseWriter, r *http.Request, route *Route, d *Destination) {
	to, err := url.Parse(d.URL)
	if err == nil {
		err = misleading(r)
	}
	if err == nil {
		x := &exchanged{w: w, route: route, to: to}
		err = protocols.RunRequest(r.WithContext(context.WithValue(r.Context(), exchangedKey{}, x)), proxyMethod)
		if x.aborted {
			panic(http.ErrAbortHandler) // net/http ends the connection, so that the client notices
		}
	}
	if err != nil {
		g.counts.refused.Add(1)
		protocols.WriteError(w, err)
	}
}

// misleading returns why a request must not go on: a server could take it for another one than the
// routes do.
func misleading(r *http.Request) error {
	if r.Method == http.MethodConnect {
		return anser.Refuse(anser.Unimplemented, "the gateway opens no tunnels: send the request itself")
	}
	for part := range strings.SplitSeq(r.URL.Path, "/") {
		if part == "." || part == ".." {
			return anser.Refuse(anser.InvalidArgument, "the path %q has %q in it: send the path that is meant", r.URL.Path, part)
		}
	}
	return nil
}

// proxyMethod returns the method that forwards requests.
func (g *Gateway) proxyMethod() anser.DynamicMethod {
	none := reflect.TypeFor[anser.None]()
	return anser.DynamicMethod{
		Name: proxyMethod, Request: none, Reply: none, Foreign: true,
		Handle: func(ctx context.Context, _ any) (any, error) {
			r := protocols.RequestFrom(ctx)
			x, ok := ctx.Value(exchangedKey{}).(*exchanged)
			if r == nil || !ok {
				return nil, anser.Refuse(anser.Unimplemented, "%s is not a method for callers", proxyMethod)
			}
			g.counts.proxied.Add(1)
			defer func() {
				if p := recover(); p == http.ErrAbortHandler {
					x.aborted = true
				} else if p != nil {
					panic(p)
				}
			}()
			g.reverse(ctx, x).ServeHTTP(x.w, r)
			return new(anser.None), nil
		},
	}
}

// reverse returns what forwards a request.
func (g *Gateway) reverse(ctx context.Context, x *exchanged) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     g.transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"]
			pr.SetXForwarded()
			// Behind another protocol than WebSocket, such as h2c, there would be requests that the
			// gateway does not see.
			if !strings.EqualFold(pr.Out.Header.Get("Upgrade"), "websocket") {
				for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
					pr.Out.Header.Del(name)
				}
			}
			pr.Out.URL.Path, pr.Out.URL.RawPath = x.route.stripped(pr.In.URL.Path), x.route.strippedRaw(pr.In.URL.RawPath)
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery // nothing here depends on it
			pr.SetURL(x.to)
			pr.Out.Host = pr.In.Host
			g.nameCaller(ctx, pr.Out.Header)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the caller has gone
			}
			g.counts.proxyFailed.Add(1)
			g.log.Warn("gateway: an HTTP server did not answer", "url", x.to.Redacted(), "error", err)
			fault := anser.Errorf(anser.Unavailable, "the server behind the gateway does not answer")
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				fault = anser.Errorf(anser.DeadlineExceeded, "the server behind the gateway does not answer in time")
			}
			fault.Outcome = anser.OutcomeUnknown
			protocols.WriteError(w, fault)
		},
	}
}

// nameCaller sets the headers that name the caller to the HTTP server. The credential was for
// the gateway.
func (g *Gateway) nameCaller(ctx context.Context, h http.Header) {
	md := make(anser.Metadata)
	addCaller(ctx, md)
	for name := range h {
		switch strings.ReplaceAll(strings.ToLower(name), "_", "-") { // CGI and its kin make them the same
		case callerKey, groupsKey:
			delete(h, name)
		}
	}
	for _, key := range []string{callerKey, groupsKey} {
		if md[key] != "" {
			h.Set(key, md[key])
		}
	}
	if g.plan.Load().config.authenticates() {
		h.Del("Authorization")
	}
}

// notFound answers the requests that are not calls, and that no route matches.
func (g *Gateway) notFound() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.counts.refused.Add(1)
		err := g.whyNot(r.URL.Path)
		switch {
		case err != nil:
			protocols.WriteError(w, err)
		case r.Method == http.MethodPost:
			protocols.NotFound(w, r)
		default:
			protocols.WriteError(w, errNoPath)
		}
	})
}

var errNoPath = anser.Refuse(anser.NotFound, "no method and no route has this path: a call has the path /service/Service.Method, or /Service.Method")

// whyNot returns why a method of a service that the gateway knows is not served, or nil.
func (g *Gateway) whyNot(path string) error {
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	g.mu.Lock()
	u := g.upstreams[service]
	g.mu.Unlock()
	if u == nil || method == "" || g.plan.Load().config.authenticates() {
		// A caller without an identity learns nothing of the services.
		return nil
	}
	u.mu.Lock()
	status := u.status
	u.mu.Unlock()
	switch {
	case status.Problem != "":
		return anser.Refuse(anser.Unimplemented, "the service %s cannot be called here: %s", service, status.Problem)
	case slices.Contains(status.Bare, method):
		return anser.Refuse(anser.Unimplemented, "the method %s of the service %s has no contract by which it could be translated: give it one with anser.Contract", method, service)
	case len(status.Methods) == 0:
		return anser.Refuse(anser.Unavailable, "no instance of the service %s has said yet what it serves", service)
	}
	return nil
}
