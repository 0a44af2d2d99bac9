package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/front"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/posts"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/route"
)

// entrance is where programs without Anser call the services: one address that stays, in the
// process of the demo. It speaks all protocols, and passes calls on to the instances.
type entrance struct {
	address string
	server  *anser.Server
	clients map[string]*anser.Client // by service
	served  chan error
}

// openEntrance listens on o.Serve, or elsewhere. The text says where.
func openEntrance(url string, o Options) (e *entrance, text string, err error) {
	s := anser.NewServer(anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)), protocols.All())
	elsewhere := ""
	l, err := s.Listen(o.Serve)
	if host, _, bad := net.SplitHostPort(o.Serve); err != nil && bad == nil && o.ServeElsewhere {
		elsewhere = ", because " + o.Serve + " is taken: --serve chooses an address"
		l, err = s.Listen(net.JoinHostPort(host, "0"))
	}
	if err != nil {
		s.Close()
		return nil, "", fmt.Errorf("the demo cannot serve on %s: %w\n"+
			"choose another address with --serve, such as 127.0.0.1:0 for a free port", o.Serve, err)
	}
	e = &entrance{address: l.Addr().String(), server: s, clients: make(map[string]*anser.Client), served: make(chan error, 1)}
	go func() { e.served <- s.Serve(l) }()
	if err := e.pass(url); err != nil {
		return nil, "", errors.Join(err, e.close())
	}
	return e, "all protocols at " + e.address + elsewhere, nil
}

// pass makes the server pass the calls of all methods on.
func (e *entrance) pass(url string) error {
	for _, service := range services {
		c, err := anser.Dial(url+"/"+service.name, append(dialOptions(), route.Rules(route.From(route.Caller{Service: "demo"})))...)
		if err != nil {
			return err
		}
		e.clients[service.name] = c
	}
	return errors.Join(
		passOn(e, arith.Service, arith.Add), passOn(e, arith.Service, arith.Mul),
		passOn(e, posts.Service, posts.Query), passOn(e, front.Service, front.Page))
}

// passOn serves a method by calling it, and says which instance has answered.
func passOn[A, R any](e *entrance, service string, method anser.Method[A, R]) error {
	return method.Handle(e.server, func(ctx context.Context, in *A) (*R, error) {
		var trailer anser.Metadata
		out, err := method.Call(ctx, e.clients[service], in, anser.Trailer(&trailer))
		if id := trailer[instanceKey]; id != "" {
			if err := anser.SetTrailer(ctx, instanceKey, id); err != nil {
				return nil, err
			}
		}
		return out, err
	}, anser.Idempotent())
}

// close ends the server and its calls.
func (e *entrance) close() error {
	err := e.server.Close()
	if end := <-e.served; !errors.Is(end, anser.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	for _, c := range e.clients {
		c.Close()
	}
	return err
}
