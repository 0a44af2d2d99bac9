package gateway

import (
	"errors"
	"fmt"
)

var errEnded = errors.New("the gateway has ended")

// Apply puts another configuration in force, in one step: each request is served by the old one or
// by the new one, and the calls that run go on. If it is invalid, or changes a part that cannot
// change while the gateway runs, the old one stays, and the error says why. The refusal is counted
// and logged.
func (g *Gateway) Apply(c *Config) error {
	err := g.apply(c)
	if err != nil {
		g.refuseConfig(err)
		return err
	}
	g.counts.reloads.Add(1)
	g.log.Info("gateway: a new configuration is in force")
	return nil
}

// Refuse counts and logs a configuration that could not be read; the one in force stays.
func (g *Gateway) Refuse(err error) { g.refuseConfig(err) }

func (g *Gateway) refuseConfig(err error) {
	g.counts.reloadsRefused.Add(1)
	g.log.Error("gateway: the new configuration is refused; the one in force stays", "error", err)
}

func (g *Gateway) apply(c *Config) error {
	g.applying.Lock()
	defer g.applying.Unlock()
	if g.ended {
		return errEnded
	}
	old := g.plan.Load()
	if part := old.config.fixed(c); part != "" {
		return fmt.Errorf("%s%s cannot change while the gateway runs: start another one with this configuration, and end this one", c.at(part), part)
	}
	next, err := newPlan(c, old, &g.o, g.log)
	if err != nil {
		return err
	}
	g.plan.Store(next)
	old.close()
	return nil
}
