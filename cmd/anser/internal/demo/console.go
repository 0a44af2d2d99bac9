package demo

import (
	"errors"
	"net"
	"net/http"

	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/local"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/pagefiles"
	"github.com/anser-rpc/anser/registry"
)

// shown is the console of the demo, in its own process. The zero value is none.
type shown struct {
	url     string
	console *console.Console
	server  *http.Server
	served  chan error
}

// openConsole serves a console of the registry and of the demo's own page at address, or on a free
// port if that is taken.
func openConsole(reg registry.Resolver, name, own, address string) (*shown, error) {
	if address == "" {
		return new(shown), nil
	}
	l, err := local.Listen(address)
	if err != nil {
		host, _, bad := net.SplitHostPort(address)
		if bad != nil {
			return nil, err
		}
		if l, err = local.Listen(net.JoinHostPort(host, "0")); err != nil {
			return nil, err
		}
	}
	c, err := console.New(console.Options{
		Registries: []collect.Source{{Name: name, Kind: "etcd", Resolver: reg}}, Pages: []string{own}, Guard: local.Guard, Page: local.Guard(pagefiles.Handler()),
	})
	if err != nil {
		l.Close()
		return nil, err
	}
	s := &shown{url: "http://" + l.Addr().String() + "/", console: c, served: make(chan error, 1)}
	s.server = local.Server(c)
	go func() { s.served <- s.server.Serve(l) }()
	return s, nil
}

// close ends the console and its viewers.
func (s *shown) close() error {
	if s.console == nil {
		return nil
	}
	err := errors.Join(s.console.Close(), s.server.Close())
	if end := <-s.served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
