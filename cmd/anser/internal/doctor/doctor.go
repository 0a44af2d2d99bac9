// Package doctor examines servers, and systems of services with their registry, and says what is
// wrong and what to do about it. It reads only, and calls no method but the built-in ones and
// route.ExplainMethod.
package doctor

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

// Config configures an examination.
type Config struct {
	Source target.Source      // the registry; its Access is also used for one that a target names
	TLS    *tls.Config        // of the connections to servers; nil: none, unless the scheme says so
	Dial   []anser.DialOption // of clients, among them anser.TLS with the same configuration
	// Timeout bounds every step on its own: a lookup, a connection, a handshake, a call.
	Timeout time.Duration
	// Resolver looks up hosts; nil means net.DefaultResolver.
	Resolver *net.Resolver
}

func (c *Config) resolver() *net.Resolver {
	if c.Resolver != nil {
		return c.Resolver
	}
	return net.DefaultResolver
}

// within returns a context for one step.
func (c *Config) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.Timeout)
}

// side is how many addresses are examined at a time.
const side = 32

// each calls f for the indices below n, some at a time.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, side)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			f(i)
		})
	}
	wg.Wait()
}

// Target examines the addresses of a target: "host:port", "a:1,b:2", "tls://host:port". It returns
// a group for each of them.
func (c *Config) Target(ctx context.Context, name string) ([]*Group, error) {
	list, err := endpoints(name)
	if err != nil {
		return nil, err
	}
	groups := make([]*Group, len(list))
	each(len(list), func(i int) {
		p := c.newProbe(list[i], "")
		p.run(ctx)
		p.protocols(ctx)
		groups[i] = &Group{Name: "server " + plain(list[i].address), Findings: p.list, Timings: []Timing{p.timing}}
	})
	return groups, nil
}
