package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// maxHandshakes is how many connections may be open on which nothing has come yet. Clients of HTTP
// keep such connections: net/http makes one for each request that waits, and the request may go
// over another in the end. Beyond the limit a new one waits until an earlier one has had its time,
// so with the 256 of a server, thousands of clients that call at once kept others from connecting.
const maxHandshakes = 4096

// serverOptions returns the options of the server. What a new configuration may change is looked up
// in the plan that is in force.
func (g *Gateway) serverOptions(c *Config) []anser.ServerOption {
	opts := []anser.ServerOption{
		protocols.All(
			protocols.Before(g.front), protocols.Handler(g.other()),
			protocols.AllowOriginsIf(func(origin string) bool { return g.plan.Load().allowsOrigin(origin) }),
			protocols.AllowHostsIf(func(host string) bool { return g.plan.Load().config.hasHost(host) }),
		),
		anser.Logger(g.log),
		anser.MaxHandshakes(maxHandshakes),
		anser.Forward(g.forward),
		anser.Observe(anser.Observer{Request: func(ctx context.Context, m anser.MessageInfo) error {
			if limit := g.plan.Load().limit; limit != nil {
				return limit(ctx, m)
			}
			return nil
		}}),
	}
	if c.AccessLog != nil { // an interceptor costs each call over Anser's protocol a goroutine
		opts = append(opts, anser.Intercept(g.logged))
	}
	if g.recorder != nil {
		opts = append(opts, g.recorder.Option())
	}
	if c.TLS != nil {
		opts = append(opts, anser.TLS(g.tlsConfig()))
	}
	if c.authenticates() {
		opts = append(opts, anser.Authenticate(anser.AuthenticatorFunc(g.authenticate)), anser.Authorize(policies{g}))
	}
	of := func(key string, o anser.ServerOption) {
		opts = append(opts, anser.ServerOptionsOf("the gateway's configuration, "+key, o))
	}
	if n := c.Limits.Conns; n > 0 {
		of("limits.conns", anser.MaxConns(n))
	}
	if n := c.Limits.Calls; n > 0 {
		of("limits.calls", anser.MaxInFlight(n))
	}
	if n := c.Limits.Message; n > 0 {
		of("limits.message", anser.MaxMessage(n))
	}
	return opts
}

// tlsConfig returns a configuration that has the certificates of the plan in force.
func (g *Gateway) tlsConfig() *tls.Config {
	config := g.plan.Load().files.Server()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return g.plan.Load().files.Server().GetConfigForClient(hello)
	}
	return config
}

// authenticate returns the identity of a caller by the ways of the plan in force.
func (g *Gateway) authenticate(ctx context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
	err := anser.ErrOtherScheme
	for _, way := range g.plan.Load().ways {
		id, wrong := way.Authenticate(ctx, l)
		if wrong == nil {
			return id, nil
		}
		if !errors.Is(wrong, anser.ErrOtherScheme) {
			err = wrong
		}
	}
	return nil, err
}

// policies is the policy of the plan in force.
type policies struct{ gateway *Gateway }

// Allows decides by the name of the method, whatever service it is called of: a rule for Arith.* is
// one for arith/Arith.* too.
func (p policies) Allows(id *anser.Identity, method string) bool {
	policy := p.gateway.plan.Load().policy
	return policy == nil || policy.Allows(id, method[strings.IndexByte(method, '/')+1:])
}

// Version changes with the plan and with the file of its policy.
func (p policies) Version() uint64 {
	plan := p.gateway.plan.Load()
	if plan.policy == nil {
		return plan.version << 32
	}
	return plan.version<<32 + plan.policy.Version()
}

// logged writes the access log.
func (g *Gateway) logged(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		if access := g.plan.Load().access; access != nil {
			return access(next)(ctx, inv)
		}
		return next(ctx, inv)
	}
}
