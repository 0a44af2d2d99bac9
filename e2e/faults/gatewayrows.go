package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// gatewayRows are those in which something happens to gateways. Clients call them over Anser's
// protocol, in gRPC and in JSON over HTTP, in turns.
func gatewayRows() []row {
	return []row{
		{
			name: "gateway-killed", fault: "kill -9 one of two gateways", run: gatewayKilled,
			bar: "idempotent calls: 0 failed; others: only Unknown, at most the ones in flight; back to 99 % of the rate within 1 s",
		},
		{
			name: "gateway-restarted", fault: "rolling restart of two gateways, repeatedly", run: gatewayRestarted,
			bar: "0 failed calls; a gateway exits within the longest call + 3 s",
		},
		{
			name: "gateway-reloaded", fault: "the configuration of two gateways is replaced, repeatedly, at times by one with a mistake", run: gatewayReloaded,
			bar: "0 failed calls; each configuration is in force or refused, and counted",
		},
	}
}

// gatewayConfig sends calls to the service that the header or metadata names, and all others to
// the one of the rows. Calls in JSON name it in their path.
const gatewayConfig = `routes:
- {headers: {x-to: slow}, to: [{service: slow}]}
- {path: /Ledger, to: [{service: ledger}]}
`

// gated starts servers, gateways in front of them, and clients that call the gateways.
func (w *world) gated(gateways int, text string, o clusterOptions) (*cluster, error) {
	c, err := w.newCluster(o)
	if err != nil {
		return nil, err
	}
	if err := c.startServers(o); err != nil {
		return nil, err
	}
	if err := c.writeConfig(text); err != nil {
		return nil, err
	}
	var addresses []string
	for i := range gateways {
		p, err := w.start("gateway", fmt.Sprintf("gateway%d", i+1), config{
			File: c.configFile(), Registry: c.registry.config.Listen, Stall: w.o.Stall, Many: true,
		})
		if err != nil {
			return nil, err
		}
		c.gateways = append(c.gateways, p)
		addresses = append(addresses, p.config.Listen)
	}
	o.client.Target = "tcp://" + strings.Join(addresses, ",")
	if c.client, err = c.caller("client", o.client); err != nil {
		return nil, err
	}
	return c, c.enlist()
}

// caller starts a client of the gateways, in all protocols unless o says which.
func (c *cluster) caller(name string, o config) (*process, error) {
	o.Stall = c.o.Stall
	if o.Over == nil {
		o.Over = allProtocols
	}
	if o.Timeout == 0 {
		o.Timeout = c.o.Timeout
	}
	return c.start("client", name, o)
}

func (c *cluster) configFile() string { return filepath.Join(c.dir, "gateway.yaml") }

// writeConfig replaces the file of the gateways in one step.
func (c *cluster) writeConfig(text string) error {
	next := c.configFile() + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.configFile())
}

// states returns what the gateways say of themselves.
func (c *cluster) states() ([]gatewayState, error) {
	all := make([]gatewayState, len(c.gateways))
	for i, p := range c.gateways {
		if err := p.ask("gateway", nil, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// calledAgain waits until calls come to a gateway that has started, and returns how long that took.
func (c *cluster) calledAgain(i int) (time.Duration, error) {
	return c.until(fmt.Sprintf("calls come to %s again", c.gateways[i].name), func() (bool, error) {
		var now gatewayState
		err := c.gateways[i].ask("gateway", nil, &now)
		return now.Stats.Calls > 0, err
	})
}

// gatewayKilled kills a gateway, and starts it again.
func gatewayKilled(w *world) (*result, error) {
	c, err := w.gated(2, gatewayConfig, clusterOptions{servers: config{Sleep: 5 * time.Millisecond}}) // so that some calls are in flight
	if err != nil {
		return nil, err
	}
	var at, gone time.Time
	var again time.Duration
	o, err := c.survive(scenario{
		fault: func(c *cluster) error {
			at = time.Now()
			c.gateways[0].kill()
			gone = time.Now()
			return nil
		},
		heal: func(c *cluster) (err error) {
			if c.gateways[0], err = c.again(c.gateways[0]); err != nil {
				return err
			}
			again, err = c.calledAgain(0)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.noFailures("failed idempotent calls", len(o.failed(idempotent)), o)
	failed := o.failed(plain)
	r.noFailures("failed calls with another outcome than unknown", len(failed)-count(failed, is(ledger.Unknown)), o)
	most := o.open(at, gone, plain)
	r.timed("failed calls of the others", float64(len(failed)), "", fmt.Sprintf("at most %d, which were in flight", most), len(failed) <= most)
	took, ok := o.back(at, 0.99, nil)
	r.within("back to 99 % of the rate after", took, time.Second, ok)
	r.within("the gateway is used again after", again, 10*time.Second, true)
	return r, nil
}

// gatewayRestarted restarts the gateways one after the other, in rounds. Each of them gets calls
// again before the next one ends.
func gatewayRestarted(w *world) (*result, error) {
	rounds := 2
	if w.o.Long {
		rounds = 20
	}
	c, err := w.gated(2, gatewayConfig, clusterOptions{})
	if err != nil {
		return nil, err
	}
	var exit, again time.Duration
	o, err := c.survive(scenario{
		fault: func(c *cluster) error {
			for range rounds {
				for i, p := range c.gateways {
					took, err := p.drain()
					if err != nil {
						return err
					}
					exit = max(exit, took)
					if c.gateways[i], err = c.again(p); err != nil {
						return err
					}
					if took, err = c.calledAgain(i); err != nil {
						return err
					}
					again = max(again, took)
				}
			}
			return nil
		},
		heal: func(*cluster) error { return nil },
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.fact("restarts of each gateway", float64(rounds), "")
	r.allSucceeded(o)
	r.fact("longest call", o.longest().Seconds(), "s")
	r.within("longest exit of a gateway", exit, o.longest()+3*time.Second, true)
	r.within("a gateway is used again within", again, 10*time.Second, true)
	return r, nil
}

// gatewayReloaded replaces the configuration, and waits each time until both gateways have it.
func gatewayReloaded(w *world) (*result, error) {
	rounds := 20
	if w.o.Long {
		rounds = 200
	}
	texts := []string{
		gatewayConfig + "limits: {caller: {per_second: 1e6}}\ntimeout: 20s\n",
		"routes: [{path: /Ledger/Set, to: [{service: ledger}]}, {headers: {x-none: \"*\"}, to: [{service: none}]}, {path: /Ledger, to: [{service: ledger, weight: 0}, {service: ledger, weight: 3}]}]\n",
		"routes: [{path: /Ledger, to: [{service: ledger}]}, {path: /Ledger/Set, to: [{service: ledger}]}]\n", // has no effect, which is a mistake
		gatewayConfig,
	}
	const mistake = 2
	c, err := w.gated(2, gatewayConfig, clusterOptions{})
	if err != nil {
		return nil, err
	}
	good, bad := 0, 0
	var late time.Duration
	o, err := c.survive(scenario{
		fault: func(c *cluster) error {
			began := time.Now()
			for n := range rounds {
				if err := c.sleep(time.Until(began.Add(w.o.phase() / time.Duration(rounds) * time.Duration(n)))); err != nil {
					return err
				}
				wrong := n%len(texts) == mistake
				if wrong {
					bad++
				} else {
					good++
				}
				took, err := c.reload(texts[n%len(texts)], wrong)
				if err != nil {
					return err
				}
				late = max(late, took)
			}
			return nil
		},
		heal: func(*cluster) error { return nil },
	})
	if err != nil {
		return nil, err
	}
	all, err := c.states()
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.fact("configurations", float64(good), "")
	r.fact("configurations with a mistake", float64(bad), "")
	missing := 0
	for _, s := range all {
		missing += max(0, good-int(s.Stats.Reloads)) + max(0, bad-int(s.Stats.ReloadsRefused))
	}
	r.none("configurations that the gateways have not counted", missing)
	r.within("in force, or refused, within", late, time.Second, true)
	return r, nil
}

// reload replaces the configuration, and waits until each gateway has counted one more, as one that
// is in force or as a wrong one.
func (c *cluster) reload(text string, wrong bool) (time.Duration, error) {
	counted := func(s *gatewayState) int64 {
		if wrong {
			return s.Stats.ReloadsRefused
		}
		return s.Stats.Reloads
	}
	before, err := c.states()
	if err != nil {
		return 0, err
	}
	if err := c.writeConfig(text); err != nil {
		return 0, err
	}
	for _, p := range c.gateways {
		if err := p.signal(syscall.SIGHUP); err != nil {
			return 0, err
		}
	}
	return c.until("the gateways have the configuration", func() (bool, error) {
		now, err := c.states()
		for i := range now {
			if counted(&now[i]) <= counted(&before[i]) {
				return false, err
			}
		}
		return true, err
	})
}
