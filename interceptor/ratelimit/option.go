package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// Option configures a Limiter.
type Option func(*options) error

type options struct {
	all        Rate
	methods    map[string]Rate
	caller     Rate
	key        Key
	maxCallers int
	instances  int
	resolver   registry.Resolver
	service    string
	bank       Bank
	log        *slog.Logger
}

func (o *options) apply(opts []Option) error {
	o.log = slog.Default()
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("ratelimit.New: an option is nil"))
			continue
		}
		errs = append(errs, opt(o))
	}
	if o.all.Burst == 0 && len(o.methods) == 0 && o.key == nil && errors.Join(errs...) == nil {
		errs = append(errs, errors.New("ratelimit.New: there is no limit: add ratelimit.Server, ratelimit.Method or ratelimit.Caller"))
	}
	return errors.Join(errs...)
}

// Server bounds the rate of all calls of the server.
func Server(r Rate) Option {
	return func(o *options) error {
		o.all = r
		return r.check("Server")
	}
}

// Method bounds the rate of a method, by its canonical name.
func Method(name string, r Rate) Option {
	return func(o *options) error {
		if err := wire.CheckMethodName(name); err != nil {
			return fmt.Errorf("ratelimit.Method: %w", err)
		}
		if _, ok := o.methods[name]; ok {
			return fmt.Errorf("ratelimit.Method: %q is named twice", name)
		}
		o.methods[name] = r
		return r.check("Method")
	}
}

// Key identifies the caller. It is called with the context of a handler, on the goroutine that
// reads the connection, so it must be fast. Callers with the same key share a bucket, even if the
// key is empty.
type Key func(ctx context.Context) string

// Caller bounds the rate of each caller, over all methods.
func Caller(key Key, r Rate) Option {
	return func(o *options) error {
		if key == nil {
			return errors.New("ratelimit.Caller: the key is nil: use ratelimit.ByAddress, ratelimit.ByIdentity or ratelimit.ByMetadata")
		}
		o.key, o.caller = key, r
		return r.check("Caller")
	}
}

// MaxCallers sets the maximum number of callers with a bucket of their own; the default is 10,000.
// A caller whose bucket is full again, because it has not called for some time, is removed to make
// room. If there is none, further callers share one bucket, so that inventing names does not help
// an attacker.
func MaxCallers(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("ratelimit.MaxCallers(%d): want at least 1", n)
		}
		o.maxCallers = n
		return nil
	}
}

// Share makes the limits apply to a whole service: each instance takes its share of them, by the
// current number of instances in the registry that are up. The calls must be evenly distributed,
// as with the default balancer. Until the registry has answered, and if it has no instance, the
// number is that of [Instances].
func Share(r registry.Resolver, service string) Option {
	return func(o *options) error {
		if r == nil {
			return errors.New("ratelimit.Share: the registry is nil")
		}
		if service == "" {
			return errors.New("ratelimit.Share: the service has no name")
		}
		o.resolver, o.service = r, service
		return nil
	}
}

// Instances sets the number of instances that share the limits if it is not known otherwise; the
// default is 1.
func Instances(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("ratelimit.Instances(%d): want at least 1", n)
		}
		o.instances = n
		return nil
	}
}

// Through makes a bank keep the buckets for all instances, however calls are distributed. While
// the bank does not answer, each instance has its share of the limits; see [Share] and
// [Instances].
func Through(b Bank) Option {
	return func(o *options) error {
		if b == nil {
			return errors.New("ratelimit.Through: the bank is nil")
		}
		o.bank = b
		return nil
	}
}

// Logger sets the logger for failures of the registry or the bank, and for a full table of callers;
// the default is slog.Default().
func Logger(l *slog.Logger) Option {
	return func(o *options) error {
		if l == nil {
			return errors.New("ratelimit.Logger: the logger is nil: leave the option out")
		}
		o.log = l
		return nil
	}
}

// ByAddress returns the caller's IP address, without its port. All callers behind a proxy share
// one.
func ByAddress(ctx context.Context) string {
	p, ok := anser.PeerFrom(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	addr := p.Addr.String()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// ByIdentity returns the authenticated subject of the caller, on a server with anser.Authenticate,
// otherwise the name in its certificate: its first URI, DNS name, or common name. Callers without
// either have the empty key, and share a bucket.
func ByIdentity(ctx context.Context) string {
	p, ok := anser.PeerFrom(ctx)
	if ok && p.Identity != nil {
		return p.Identity.Subject
	}
	if !ok || p.TLS == nil || len(p.TLS.VerifiedChains) == 0 {
		return ""
	}
	cert := p.TLS.VerifiedChains[0][0]
	switch {
	case len(cert.URIs) > 0:
		return cert.URIs[0].String()
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	}
	return cert.Subject.CommonName
}

// ByMetadata returns a key with the value of that metadata. The caller chooses it: trust it only
// if an interceptor or a proxy has verified it.
func ByMetadata(name string) Key {
	name = strings.ToLower(name)
	return func(ctx context.Context) string { return anser.MetadataFrom(ctx)[name] }
}
