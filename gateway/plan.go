package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/interceptor/accesslog"
	"github.com/anser-rpc/anser/interceptor/ratelimit"
	"github.com/anser-rpc/anser/transport/tlsfiles"
)

// plan is a configuration in force, with the parts that were made of it. It is never changed.
type plan struct {
	config  *Config
	version uint64

	files   *tlsfiles.Files       // nil without TLS
	ways    []anser.Authenticator // empty without authentication
	policy  *auth.Policy          // nil: every identity may call everything
	callers *ratelimit.Limiter    // nil: no limit for each caller
	limit   func(context.Context, anser.MessageInfo) error
	access  anser.Interceptor // nil: no access log
	tools   http.Handler      // nil: no methods are tools

	closers []io.Closer
}

// newPlan makes the parts of a configuration, which comes after another one unless that is nil.
func newPlan(c *Config, before *plan, o *Options, log *slog.Logger) (*plan, error) {
	if c == nil {
		return nil, errors.New("the configuration is nil: pass new(gateway.Config) to serve all services")
	}
	if err := errors.Join(c.mistakes()...); err != nil {
		return nil, err
	}
	p := &plan{config: c, version: 1}
	if before != nil {
		p.version = before.version + 1
	}
	if err := errors.Join(p.make(log), p.makeTools(before, o)); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// make makes the parts.
func (p *plan) make(log *slog.Logger) (err error) {
	c := p.config
	if err := p.secure(log); err != nil {
		return fmt.Errorf("%s%w", c.at("tls"), err)
	}
	if err := p.authenticate(log); err != nil {
		return fmt.Errorf("%s%w", c.at("auth"), err)
	}
	if r := c.Limits.Caller; r != nil {
		key := ratelimit.ByAddress
		if c.authenticates() {
			key = ratelimit.ByIdentity
		}
		burst := r.Burst
		if burst == 0 {
			burst = max(1, int(math.Ceil(min(r.PerSecond, 1e6))))
		}
		if p.callers, err = ratelimit.New(ratelimit.Caller(key, ratelimit.Rate{PerSecond: r.PerSecond, Burst: burst}), ratelimit.Logger(log)); err != nil {
			return fmt.Errorf("%s%w", c.at("limits.caller"), err)
		}
		p.limit = p.callers.Observer().Request
		p.closers = append(p.closers, p.callers)
	}
	if a := c.AccessLog; a != nil {
		var opts []accesslog.Option
		if a.Sample != nil {
			opts = append(opts, accesslog.Sample(*a.Sample))
		}
		if a.Slow > 0 {
			opts = append(opts, accesslog.Slow(a.Slow))
		}
		if p.access, err = accesslog.New(log, opts...); err != nil {
			return fmt.Errorf("%s%w", c.at("access_log"), err)
		}
	}
	return nil
}

// makeTools makes what offers methods as tools. It stays the same, with its counts, unless its part
// of the configuration changes.
func (p *plan) makeTools(before *plan, o *Options) error {
	m := p.config.MCP
	switch {
	case m == nil:
	case o.Tools == nil:
		return fmt.Errorf("%sthis program offers no tools (gateway.Options.Tools): remove mcp, or use anser gateway", p.config.at("mcp"))
	case before != nil && before.tools != nil && before.config.MCP.same(m):
		p.tools = before.tools
	default:
		p.tools = o.Tools(*m.forTools())
	}
	return nil
}

// certificatePoll is how often the files of certificates are read.
const certificatePoll = 2 * time.Second

func (p *plan) secure(log *slog.Logger) (err error) {
	t := p.config.TLS
	if t == nil {
		return nil
	}
	opts := []tlsfiles.Option{tlsfiles.Logger(log), tlsfiles.Poll(certificatePoll)}
	for _, c := range t.Certificates {
		opts = append(opts, tlsfiles.Certificate(c.Chain, c.Key))
	}
	if len(t.ClientCAs) > 0 {
		opts = append(opts, tlsfiles.Authorities(t.ClientCAs...))
	}
	if t.TLS12 {
		opts = append(opts, tlsfiles.TLS12())
	}
	if p.files, err = tlsfiles.Open(opts...); err != nil {
		return err
	}
	p.closers = append(p.closers, p.files)
	return nil
}

func (p *plan) authenticate(log *slog.Logger) error {
	if t := p.config.TLS; t != nil && len(t.ClientCAs) > 0 {
		p.ways = append(p.ways, auth.MutualTLS())
	}
	a := p.config.Auth
	if a == nil {
		return nil
	}
	if a.Tokens != "" {
		tokens, err := auth.OpenTokens(a.Tokens, auth.Logger(log))
		if err != nil {
			return err
		}
		p.ways, p.closers = append(p.ways, tokens), append(p.closers, tokens)
	}
	if a.JWT != nil {
		verifier, err := a.JWT.verifier()
		if err != nil {
			return err
		}
		p.ways = append(p.ways, verifier)
	}
	if a.Policy != "" {
		policy, err := auth.OpenPolicy(a.Policy, auth.Logger(log))
		if err != nil {
			return err
		}
		p.policy, p.closers = policy, append(p.closers, policy)
	}
	return nil
}

// authenticates reports whether callers must show their identities.
func (c *Config) authenticates() bool {
	return c.Auth != nil || c.TLS != nil && len(c.TLS.ClientCAs) > 0
}

func (p *plan) close() {
	for _, c := range p.closers {
		c.Close()
	}
}

// allowsOrigin reports whether pages of an origin may call.
func (p *plan) allowsOrigin(origin string) bool {
	return slices.Contains(p.config.CORS.Origins, "*") || slices.Contains(p.config.CORS.Origins, origin)
}

// fixed returns which part of the configuration differs that cannot change while the gateway runs,
// or "".
func (c *Config) fixed(next *Config) string {
	differs := func(a, b *Retries) bool { return (a == nil) != (b == nil) || a != nil && *a != *b }
	switch {
	case c.Listen != next.Listen:
		return "listen"
	case (c.AccessLog == nil) != (next.AccessLog == nil):
		return "access_log"
	case (c.TLS == nil) != (next.TLS == nil):
		return "tls"
	case c.authenticates() != next.authenticates():
		return "auth"
	case c.Limits.Conns != next.Limits.Conns, c.Limits.Calls != next.Limits.Calls, c.Limits.Message != next.Limits.Message:
		return "limits"
	case differs(c.Retries, next.Retries):
		return "retries"
	case !reflect.DeepEqual(c.Record, next.Record):
		return "record"
	}
	return ""
}
