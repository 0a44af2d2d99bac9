package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry/etcd"
)

// door is what a process of the role gateway is: the same as "anser gateway" with a file.
type door struct{ *gateway.Gateway }

// gatewayState is what a gateway says of itself.
type gatewayState struct {
	Stats    gateway.Stats
	InFlight int64
	Refused  int64            // by its server, before anything else
	Limits   map[string]int64 // that were hit, by their options
}

// of returns what the gateway knows of a service.
func (s *gatewayState) of(service string) (known gateway.ServiceStatus) {
	for _, known := range s.Stats.Services {
		if known.Name == service {
			return known
		}
	}
	return known
}

// runGateway is the role of a gateway. It follows its file, reads it at once after SIGHUP, and
// drains after SIGTERM.
func runGateway(c config, p *parent) error {
	r, err := etcd.Dial([]string{c.Registry}, etcd.Logger(logger()))
	if err != nil {
		return err
	}
	defer r.Close()
	how, err := gateway.Load(c.File)
	if err != nil {
		return err
	}
	how.Listen = c.Listen
	o := gateway.Options{Registry: r, Logger: logger(), Server: []anser.ServerOption{anser.NoSignals(), anser.InsecurePublic()}}
	if c.Stall > 0 {
		o.Server, o.Dial = append(o.Server, anser.WriteStall(c.Stall)), append(o.Dial, anser.WriteStall(c.Stall))
	}
	if c.Many {
		o.Server = append(o.Server, anser.HandshakeTimeout(bound))
	}
	g, err := gateway.New(how, o)
	if err != nil {
		return err
	}
	l, err := g.Server().Listen(c.Listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	go g.FollowFile(ctx, c.File, again)
	go (&door{g}).answer(p)
	if err := g.Serve(ctx, l); !errors.Is(err, anser.ErrServerClosed) {
		return err
	}
	return nil
}

// answer answers the parent's commands, and ends the process with the parent.
func (d *door) answer(p *parent) {
	err := p.ready()
	if err == nil {
		err = p.obey(d.do)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	d.Server().Close()
	os.Exit(0)
}

func (d *door) do(c command) (any, error) {
	switch c.Do {
	case "gateway":
		s := d.Server().Stats()
		return gatewayState{d.Stats(), s.InFlight, s.Refused, s.LimitsHit}, nil
	case "usage", "settle":
		var heap, stacks int64
		if c.Do == "settle" {
			heap, stacks = settle()
		}
		u, err := used()
		u.Heap, u.Stacks, u.Conns = heap, stacks, d.Server().Stats().Conns
		return u, err
	}
	return nil, fmt.Errorf("a gateway cannot %s", c.Do)
}
