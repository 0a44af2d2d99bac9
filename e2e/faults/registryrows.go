package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/anser-rpc/anser/internal/netns"
)

// registryRows are rows about events of the registry.
func registryRows() []row {
	const bar = "0 failed calls; servers listed again within TTL/3 + 5 s"
	return []row{
		{name: "registry-killed", fault: "registry killed, and restarted a phase later", bar: bar, run: registryRow(killRegistry, startRegistry)},
		{name: "registry-restarted", fault: "registry restarted", bar: bar, run: registryRow(restartRegistry, nil)},
		{name: "registry-emptied", fault: "registry killed, and restarted at once without its data", bar: bar, run: registryRow(emptyRegistry, nil)},
		{
			name: "registry-partitioned", fault: "all packets to and from the registry are lost, for a phase", bar: bar, needs: tables,
			run: registryRow(partition(drop), partition(pass)),
		},
		{
			name: "start-without-registry", fault: "a client starts while the registry is down", run: startedWithout,
			bar: "0 failed calls; it serves from its snapshot within 1 s",
		},
		{name: "lease-lost", fault: "the leases of all servers are revoked", run: leaseLost, bar: "0 failed calls; one record per server again within 5 s"},
	}
}

func killRegistry(c *cluster) error {
	c.registry.kill()
	return nil
}

func startRegistry(c *cluster) (err error) {
	c.registry, err = c.again(c.registry)
	return err
}

func restartRegistry(c *cluster) error { return errors.Join(killRegistry(c), startRegistry(c)) }

func emptyRegistry(c *cluster) error {
	c.registry.kill()
	if err := os.RemoveAll(c.registry.config.Dir); err != nil {
		return err
	}
	return startRegistry(c)
}

// partition changes both directions between the registry and all other hosts.
func partition(change func(w *world, from, to netns.Host) error) func(*cluster) error {
	return func(c *cluster) error {
		for _, p := range append(c.servers, c.client) {
			if err := errors.Join(change(c.world, c.registry.host, p.host), change(c.world, p.host, c.registry.host)); err != nil {
				return err
			}
		}
		return nil
	}
}

func drop(w *world, from, to netns.Host) error { return netns.Drop(w.ctx, from, to) }
func pass(w *world, from, to netns.Host) error { return netns.Pass(w.ctx, from, to) }

// registryRow makes a row of what happens to the registry, and of what takes it back; without
// that, the fault is over when it has happened.
func registryRow(fault, heal func(*cluster) error) func(*world) (*result, error) {
	return func(w *world) (*result, error) {
		var again, bound time.Duration
		over := func(f func(*cluster) error) func(*cluster) error {
			return func(c *cluster) (err error) {
				bound = c.ttl/3 + 5*time.Second
				if err := f(c); err != nil {
					return err
				}
				again, err = c.listed()
				return err
			}
		}
		s := scenario{fault: fault, heal: over(heal)}
		if heal == nil {
			s.fault, s.heal = over(fault), func(*cluster) error { return nil }
		}
		o, err := w.survive(s)
		if err != nil {
			return nil, err
		}
		r := new(result)
		r.common(o)
		r.allSucceeded(o)
		r.within("servers listed again after", again, bound, true)
		return r, nil
	}
}

// startedWithout starts a second client from the snapshot of the first one, which keeps running.
func startedWithout(w *world) (*result, error) {
	const calls = 1000
	var first time.Duration
	file := filepath.Join(w.dir, "late.calls")
	o, err := w.survive(scenario{
		files: []string{file},
		fault: func(c *cluster) error {
			c.registry.kill()
			late, err := c.newClient("late", config{})
			if err != nil {
				return err
			}
			return late.ask("first", firstOptions{calls, file}, &first)
		},
		heal: startRegistry,
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.fact("calls of the client that started", calls, "")
	r.within("its first reply after", first, time.Second, true)
	return r, nil
}

// leaseLost takes the leases of all servers away.
func leaseLost(w *world) (*result, error) {
	var again time.Duration
	o, err := w.survive(scenario{
		fault: func(c *cluster) error { return c.client.ask("revoke", nil, &again) },
		heal: func(c *cluster) error {
			_, err := c.listed()
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.within("one record of each server again after", again, 5*time.Second, true)
	return r, nil
}
