// Package site puts a console together: what it shows, what it changes, its page and its login, and
// the server for all of it. Every route is guarded by package access, and by nothing else.
package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/change"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/longhistory"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/pagefiles"
	"github.com/anser-rpc/anser/internal/accept"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
	"github.com/anser-rpc/anser/transport/tlsfiles"
)

// Options configure a [Site].
type Options struct {
	Listen           string // host:port; port 0 chooses a free one
	Certificate, Key string // PEM files; without them the console speaks HTTP
	// URL is where browsers reach the console if a proxy is in front of it; empty means at Listen.
	URL          string
	Access       Access
	Audit        string // file that records changes; nothing is changed without it
	AllowChanges bool   // other machines may change something

	Registry Registry
	Also     []Registry // whose services are shown, and not changed
	Pages    []string   // addresses of admin pages that no instance announces
	Token    string     // for admin pages
	// Prometheus is the URL of one that has what is older than an hour; empty means none.
	Prometheus, PrometheusToken string
	Dial                        func(target string, opts ...anser.DialOption) (*anser.Client, error)
	Version                     string
	Arena                       string // file with the report of the arena; empty means none
	// CPU returns the processor time that the console has used, by which it decides how often it
	// reads pages; nil means that it is not known, as in a process that does more.
	CPU func() time.Duration
	// BodyWithin is how long the body of a request may take; 0 means 30 seconds.
	BodyWithin time.Duration
}

// Access is how users log in: Users and OIDC may both be set, and Proxy alone.
type Access struct {
	Users string // file
	OIDC  *access.OIDCOptions
	Proxy *access.ProxyOptions
	// Trusted are the addresses of proxies in front that log no users in.
	Trusted []netip.Prefix
}

// Registry is a registry that the console shows.
type Registry struct {
	Name, Kind string
	Resolver   registry.Resolver // rules are changed if it is also a registry.Store
}

// Site is a console that listens. Its methods are safe for concurrent use.
type Site struct {
	console *console.Console
	access  *access.Access
	changes *change.Changes
	log     *audit.Log      // nil if nothing is changed
	files   *tlsfiles.Files // nil without TLS
	l       net.Listener
	server  *http.Server
	long    *longhistory.Source // nil without a Prometheus
	url     string
}

// UsageError means that options do not fit each other.
type UsageError struct{ error }

func (e *UsageError) Unwrap() error { return e.error }

// Open listens, and starts a console. ctx bounds questions to a provider of logins.
func Open(ctx context.Context, o Options) (_ *Site, err error) {
	s := new(Site)
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	public, err := o.check()
	if err != nil {
		return nil, &UsageError{err}
	}
	if s.access, err = access.New(ctx, o.access(public)); err != nil {
		return nil, &UsageError{err}
	}
	if o.Certificate != "" {
		if s.files, err = tlsfiles.Open(tlsfiles.Certificate(o.Certificate, o.Key), tlsfiles.TLS12()); err != nil {
			return nil, &UsageError{err}
		}
	}
	if o.Prometheus != "" {
		if s.long, err = longhistory.New(o.Prometheus, o.PrometheusToken); err != nil {
			return nil, &UsageError{fmt.Errorf("--prometheus: %w", err)}
		}
	}
	if o.Arena != "" {
		if err = checkArena(o.Arena); err != nil {
			return nil, &UsageError{err}
		}
	}
	if o.Audit != "" {
		if s.log, err = audit.Open(o.Audit); err != nil {
			return nil, err
		}
	}
	if s.l, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, &UsageError{fmt.Errorf("the console: listen on %s: %w", o.Listen, err)}
	}
	if err = s.build(o); err != nil {
		return nil, err
	}
	s.server = newServer(s.console, cmp.Or(o.BodyWithin, bodyWithin))
	s.url = "http://" + reachable(s.l.Addr()) + "/"
	if s.files != nil {
		s.server.TLSConfig = s.files.Server("h2", "http/1.1")
		s.url = "https://" + reachable(s.l.Addr()) + "/"
	}
	return s, nil
}

// release closes what is open of a site that does not serve, or does so no more.
func (s *Site) release() (err error) {
	if s.console != nil {
		err = s.console.Close()
	}
	if s.l != nil {
		s.l.Close() // fails after Serve, which has closed it
	}
	if s.long != nil {
		s.long.Close()
	}
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	if s.files != nil {
		err = errors.Join(err, s.files.Close())
	}
	return err
}

// build starts the console with all of its routes.
func (s *Site) build(o Options) (err error) {
	changed := &first{o.Registry.Resolver, o.Registry.Name, func(service string) string {
		v, _ := s.console.Service(service)
		return v.Registry
	}}
	deps := change.Deps{
		Access: s.access, Log: s.log, Registry: changed, Store: changed.store(), Dial: o.Dial,
		Note: func(kind, service, instance, text, by string) {
			s.console.Note(model.Change{Kind: kind, Service: service, Instance: instance, Text: model.Text(text), By: by})
		},
		Figures: func(service string) []change.Figures { return figures(s.console, service) },
		Sample:  func(service string) ([]route.Sample, int) { return samples(s.console, service) },
		Callers: func(service string) (addresses []string) {
			for _, in := range s.console.CallersOf(service, route.RecentMethod) {
				addresses = append(addresses, in.Address)
			}
			return addresses
		},
	}
	if s.changes, err = change.New(deps); err != nil {
		return err
	}
	routes := s.changes.Routes()
	for pattern, h := range s.access.Routes() {
		routes[pattern] = h
	}
	if o.Arena != "" {
		routes["GET /api/arena"] = serveArena(s.access, o.Arena)
	}
	var sources []collect.Source
	for _, r := range append([]Registry{o.Registry}, o.Also...) {
		sources = append(sources, collect.Source{Name: r.Name, Kind: r.Kind, Resolver: r.Resolver})
	}
	s.console, err = console.New(console.Options{
		Registries: sources,
		Pages:      o.Pages, Token: o.Token, Routes: routes, Long: s.long, CPU: o.CPU, Arena: o.Arena != "", Page: s.access.Page(pagefiles.Handler()),
		Guard: func(h http.Handler) http.Handler { return s.access.Wrap(h, access.Look) },
	})
	return err
}

// URL returns where the console listens, as a URL that this machine can open.
func (s *Site) URL() string { return s.url }

// Everywhere reports whether the console listens on all addresses of the machine, of which URL
// names one.
func (s *Site) Everywhere() bool { return everywhere(s.l.Addr()) }

func everywhere(a net.Addr) bool {
	at, ok := a.(*net.TCPAddr)
	return ok && at.IP.IsUnspecified()
}

// reachable returns the address of a listener, or localhost for all addresses of the machine: no
// browser opens 0.0.0.0 or [::] everywhere.
func reachable(a net.Addr) string {
	if !everywhere(a) {
		return a.String()
	}
	_, port, _ := net.SplitHostPort(a.String())
	return net.JoinHostPort("localhost", port)
}

// ProviderTrouble returns why users cannot log in at the provider of OpenID Connect now, or nil.
func (s *Site) ProviderTrouble() error { return s.access.ProviderTrouble() }

// Patterns returns the patterns of all routes, as http.ServeMux takes them.
func (s *Site) Patterns() []string { return s.console.Patterns() }

// Login returns how users log in: one of the constants of package access.
func (s *Site) Login() string { return s.access.Login() }

// Serve serves the console until ctx ends, and closes it. It watches the canaries meanwhile, if the
// console may change something.
func (s *Site) Serve(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if s.log != nil {
		wg.Go(func() { s.changes.Run(watching) })
	}
	end := context.AfterFunc(ctx, func() {
		s.console.Close() // ends the viewers
		s.server.Close()
	})
	var err error
	if s.files != nil {
		err = s.server.ServeTLS(s.l, "", "")
	} else {
		err = s.server.Serve(s.l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	end()
	stop()
	wg.Wait()
	return errors.Join(err, s.server.Close(), s.release())
}

// Check returns an error if options do not fit each other. Open calls it.
func (o *Options) Check() error {
	_, err := o.check()
	return err
}

// check is Check, and returns whether other machines reach the console.
func (o *Options) check() (public bool, err error) {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil || port == "" {
		return false, fmt.Errorf("the console on %q: the address has no port: use host:port, such as 127.0.0.1:8980", o.Listen)
	}
	loopback := accept.IsLoopback(host)
	at, err := o.reachedAt()
	if err != nil {
		return false, err
	}
	login := o.Access.Users != "" || o.Access.OIDC != nil || o.Access.Proxy != nil
	public = !loopback || o.Access.Proxy != nil || len(o.Access.Trusted) > 0 || at != nil && !accept.IsLoopback(at.Hostname())
	switch {
	case !loopback && !login:
		return public, fmt.Errorf("the console on %q: other machines reach the address, and the console has no login: use a loopback address "+
			"and a tunnel such as ssh -L 8980:127.0.0.1:8980 HOST, or --users, --oidc-issuer or --proxy-header", o.Listen)
	case (o.Certificate == "") != (o.Key == ""):
		return public, errors.New("the console: a certificate and its key belong together: use both --tls-cert and --tls-key")
	case !loopback && o.Certificate == "" && o.Access.Proxy == nil:
		return public, fmt.Errorf("the console on %q: other machines reach the address, and passwords and sessions would not be encrypted: "+
			"use --tls-cert and --tls-key, or a loopback address and a proxy with TLS in front of it", o.Listen)
	case o.AllowChanges && o.Audit == "":
		return public, errors.New("the console: changes must be recorded: use --audit FILE together with --allow-changes")
	}
	return public, nil
}

// reachedAt returns the URL at which browsers reach the console, or nil if it is not given.
func (o *Options) reachedAt() (*url.URL, error) {
	text := o.URL
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the console: %q is no URL for browsers: use for example https://console.example.org/", text)
	}
	return u, nil
}

// access returns the options of the guard.
func (o *Options) access(public bool) access.Options {
	out := access.Options{Users: o.Access.Users, OIDC: o.Access.OIDC, Proxy: o.Access.Proxy, Trusted: o.Access.Trusted, Public: public, Version: o.Version, Secure: o.Certificate != ""}
	switch {
	case o.Audit == "":
		out.ReadOnly = "start the console with --audit FILE, which records changes"
	case public && !o.AllowChanges:
		out.ReadOnly = "other machines reach the console: start it with --allow-changes if they may change something"
	}
	if at, _ := o.reachedAt(); at != nil {
		out.Hosts, out.Secure = []string{at.Hostname()}, at.Scheme == "https"
	}
	return out
}

// newServer returns a server for a console.
func newServer(console http.Handler, forBody time.Duration) *http.Server {
	return &http.Server{
		Handler: patient(console, forBody), ReadHeaderTimeout: headerWithin, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10, ErrorLog: silent(),
	}
}
