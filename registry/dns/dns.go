// Package dns finds instances in the DNS: the addresses of a name (A and AAAA), or its SRV records
// with priorities and weights. It announces nothing; the records belong to the operator of the
// zone.
//
// The messages are those of golang.org/x/net/dns/dnsmessage, the only dependency beyond the
// standard library: the resolver of package net returns no TTL, and does not distinguish a name
// without records from a failed lookup.
package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Defaults of the options.
const (
	DefaultMinTTL  = 5 * time.Second
	DefaultMaxTTL  = time.Minute
	DefaultTimeout = 2 * time.Second
)

// Resolver is a registry.Resolver and a registry.Refresher over the DNS. Its methods are safe for
// concurrent use. It starts no goroutine of its own; a watch runs on the goroutine of its caller.
type Resolver struct {
	pattern pattern
	client  client
	minTTL  time.Duration
	maxTTL  time.Duration
	ctx     context.Context // ends with the cause registry.ErrClosed
	cancel  context.CancelCauseFunc

	mu      sync.Mutex               // guards watches
	watches map[*watch]chan struct{} // the channel asks the watch to look up now
}

// Option configures a Resolver.
type Option func(*Resolver) error

// Servers sets the DNS servers to ask, "host:port" or an address with port 53, in order of
// preference. By default they are those of /etc/resolv.conf, which is read before each lookup.
func Servers(servers ...string) Option {
	return func(r *Resolver) error {
		if len(servers) == 0 {
			return errors.New("no DNS server is given: give one, for example 10.0.0.53:53")
		}
		for _, s := range servers {
			full, err := serverAddress(s)
			if err != nil {
				return err
			}
			r.client.servers = append(r.client.servers, full)
		}
		return nil
	}
}

func serverAddress(s string) (string, error) {
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return net.JoinHostPort(ip.String(), "53"), nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil && !strings.Contains(s, ":") {
		host, port, err = s, "53", nil
	}
	if n, e := strconv.ParseUint(port, 10, 16); err != nil || host == "" || e != nil || n == 0 {
		return "", fmt.Errorf("DNS server %q: use host:port, or an address for port 53", s)
	}
	return net.JoinHostPort(host, port), nil
}

// TTL bounds the interval between lookups, whatever the TTL of the records: DefaultMinTTL and
// DefaultMaxTTL by default.
func TTL(least, most time.Duration) Option {
	return func(r *Resolver) error {
		if least <= 0 || most < least {
			return fmt.Errorf("dns.TTL(%v, %v): the first must be positive, and the second not below it", least, most)
		}
		r.minTTL, r.maxTTL = least, most
		return nil
	}
}

// Timeout sets how long one server may take for one answer, DefaultTimeout by default. Each server
// is tried twice.
func Timeout(d time.Duration) Option {
	return func(r *Resolver) error {
		if d <= 0 {
			return fmt.Errorf("dns.Timeout(%v): it must be positive", d)
		}
		r.client.timeout = d
		return nil
	}
}

// IPv4Only ignores AAAA records, for hosts with addresses of both families, which would count
// twice.
func IPv4Only() Option { return func(r *Resolver) error { r.client.no6 = true; return nil } }

// IPv6Only ignores A records.
func IPv6Only() Option { return func(r *Resolver) error { r.client.no4 = true; return nil } }

// New returns a resolver for names of the form of name, in which {service} is replaced by the
// service that is looked up: "{service}.shop.internal:8972" for addresses with that port, or a
// name without a port for SRV records, as in "_{service}._tcp.shop.internal". A name without
// {service} is the same for every service. Names with few dots are also tried with the search list
// of /etc/resolv.conf, unless they end with a dot.
func New(name string, opts ...Option) (*Resolver, error) {
	p, err := parsePattern(name)
	if err != nil {
		return nil, err
	}
	r := &Resolver{
		pattern: p, client: client{timeout: DefaultTimeout, config: "/etc/resolv.conf"},
		minTTL: DefaultMinTTL, maxTTL: DefaultMaxTTL, watches: make(map[*watch]chan struct{}),
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("dns.New: an option is nil")
		}
		if err := opt(r); err != nil {
			return nil, err
		}
	}
	if r.client.no4 && r.client.no6 {
		return nil, errors.New("dns.IPv4Only and dns.IPv6Only leave no address: use one of them")
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r, nil
}

// Close ends all watches with registry.ErrClosed. It may be called more than once.
func (r *Resolver) Close() error {
	r.cancel(registry.ErrClosed)
	return nil
}

// Refresh implements registry.Refresher: watches of the service look up their records now, unless
// the last lookup was less than a second ago, and more often for a while. If SRV records have
// several priorities, the watch switches to the first priority with an instance that accepts
// connections, and back when a better one does again.
func (r *Resolver) Refresh(service string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w, hurry := range r.watches {
		if w.service != service {
			continue
		}
		select {
		case hurry <- struct{}{}:
		default:
		}
	}
}

// placeholder is replaced by the service in the name given to New.
const placeholder = "{service}"

// pattern is a name to look up, possibly with a placeholder.
type pattern struct {
	host string // may contain the placeholder
	port string // "" for SRV records
}

func parsePattern(name string) (pattern, error) {
	host, port, found := strings.Cut(name, ":")
	p := pattern{host: host, port: port}
	if n, err := strconv.ParseUint(port, 10, 16); found && (err != nil || n == 0) {
		return p, fmt.Errorf("DNS name %q: use host:port with a port of 1 to 65535, or a name without a port for SRV records", name)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return p, fmt.Errorf("DNS name %q is an address: use tcp://%s", name, name)
	}
	return p, checkName(strings.ReplaceAll(host, placeholder, "service"))
}

// name returns the name for a service.
func (p pattern) name(service string) string { return strings.ReplaceAll(p.host, placeholder, service) }

// checkName returns an error if the name cannot be looked up.
func checkName(name string) error {
	plain := strings.TrimSuffix(name, ".")
	if plain == "" || len(plain) > 253 {
		return fmt.Errorf("DNS name %q has %d characters: use 1 to 253", name, len(plain))
	}
	for label := range strings.SplitSeq(plain, ".") {
		if label == "" || len(label) > 63 {
			return fmt.Errorf("DNS name %q has a part of %d characters: use 1 to 63", name, len(label))
		}
	}
	if registry.CheckService(plain) != nil {
		return fmt.Errorf("DNS name %q: use letters, digits, dash and underscore with dots between them", name)
	}
	return nil
}
