package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// entrance is where programs without Anser call the services: one address that stays, in the
// process of the demo. It is a gateway, as "anser gateway" runs one.
type entrance struct {
	address string
	gateway *gateway.Gateway
	stop    func()
	served  chan error
}

// openEntrance listens on o.Serve, or elsewhere. The text says where.
func openEntrance(r registry.Resolver, calls anser.Option, o Options) (e *entrance, text string, err error) {
	quiet := slog.New(slog.DiscardHandler)
	config := &gateway.Config{MCP: &gateway.MCP{Allow: []string{"*", "!" + string(Slow), "!File.*"}}}
	g, err := gateway.New(config, gateway.Options{
		Registry: r, Logger: quiet, Look: entranceLook, Tools: o.Tools, Server: []anser.ServerOption{anser.NoSignals(), calls},
		Dial: []anser.DialOption{calls},
	})
	if err != nil {
		return nil, "", err
	}
	elsewhere := ""
	l, err := g.Server().Listen(o.Serve)
	if host, _, bad := net.SplitHostPort(o.Serve); err != nil && bad == nil && o.ServeElsewhere {
		elsewhere = ", because " + o.Serve + " is taken: --serve chooses an address"
		l, err = g.Server().Listen(net.JoinHostPort(host, "0"))
	}
	if err != nil {
		g.Server().Close()
		return nil, "", fmt.Errorf("the demo cannot serve on %s: %w\n"+
			"choose another address with --serve, such as 127.0.0.1:0 for a free port", o.Serve, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	e = &entrance{address: l.Addr().String(), gateway: g, stop: stop, served: make(chan error, 1)}
	go func() { e.served <- g.Serve(ctx, l) }()
	return e, "all protocols except net/rpc's gob at " + e.address + " by a gateway" + elsewhere, nil
}

const entranceLook = 100 * time.Millisecond

// await waits until the gateway knows what the services serve, or ctx is done.
func (e *entrance) await(ctx context.Context) error {
	deadline := time.Now().Add(startBound)
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		known := 0
		for _, s := range e.gateway.Stats().Services {
			if len(s.Methods) > 0 {
				known++
			}
		}
		if known >= len(services) {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("the gateway of the demo does not learn what the services serve")
		}
	}
	return nil // also without the services, if the demo ends before
}

// close ends the gateway and its calls.
func (e *entrance) close() error {
	err := e.gateway.Server().Close()
	e.stop()
	if end := <-e.served; end != nil && !errors.Is(end, anser.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
