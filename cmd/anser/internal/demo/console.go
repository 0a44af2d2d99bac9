package demo

import (
	"context"
	"net"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
)

// shown is the console of the demo, in its own process. The zero value is none.
type shown struct {
	url  string
	stop context.CancelFunc
	done chan error
}

// openConsole serves a console of the registry and of the demo's own page at address, or on a free
// port if that is taken. It can change the demo, and records that in the file audit.
func openConsole(ctx context.Context, reg registry.Resolver, name, own, audit, address string) (*shown, error) {
	if address == "" {
		return new(shown), nil
	}
	o := site.Options{
		Listen: address, Registry: site.Registry{Name: name, Kind: "etcd", Resolver: reg}, Pages: []string{own},
		Dial: target.Caller(target.Source{URL: name}), Audit: audit,
	}
	c, err := site.Open(ctx, o)
	if err != nil {
		host, _, bad := net.SplitHostPort(address)
		if bad != nil {
			return nil, err
		}
		o.Listen = net.JoinHostPort(host, "0")
		if c, err = site.Open(ctx, o); err != nil {
			return nil, err
		}
	}
	s := &shown{url: c.URL(), done: make(chan error, 1)}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx)) // close ends it
	go func() { s.done <- c.Serve(ctx) }()
	return s, nil
}

// close ends the console and its viewers.
func (s *shown) close() error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	return <-s.done
}
