package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// gatewayLoadRows are those in which upstreams or callers of a gateway are a burden to the others.
func gatewayLoadRows() []row {
	return []row{
		{
			name: "gateway-slow-upstream", fault: "a service behind a gateway takes three times as long as its callers wait", run: gatewaySlow,
			bar: "0 failed calls of the other service, p99 at most 2 times; the gateway keeps no call that its caller has given up",
		},
		{
			name: "gateway-lying-upstream", fault: "a server behind a gateway lies about the lengths of its frames", run: gatewayLying,
			bar: "no wrong reply; 0 failed calls that the other servers ran; the gateway's memory is not what the lies claim",
		},
		{
			name: "gateway-clients", fault: "10,000 clients of a gateway call at once", run: gatewayClients,
			bar: "0 failed calls; all connections stand; the servers have the connections of one client",
		},
		{
			name: "gateway-full", fault: "calls that do not end take all places of a gateway (limits.calls)", run: gatewayFull,
			bar: "all others are refused within 100 ms, and none reaches a server; 0 failed calls after it",
		},
	}
}

// gatewaySlow has a second client call a slow service through the gateway of the first one.
func gatewaySlow(w *world) (*result, error) {
	const timeout, rate = time.Second, 100
	c, err := w.gated(1, gatewayConfig, clusterOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := c.newServer("slow", config{Service: "slow", Sleep: 3 * timeout}, false); err != nil {
		return nil, err
	}
	second, err := c.caller("second", config{Target: c.client.config.Target, Service: "slow", Timeout: timeout})
	if err != nil {
		return nil, err
	}
	if _, err := c.until("the gateway serves the slow service", func() (bool, error) {
		all, err := c.states()
		if err != nil {
			return false, err
		}
		for _, s := range all[0].Stats.Services {
			if s.Name == "slow" && len(s.Methods) > 0 {
				return true, nil
			}
		}
		return false, nil
	}); err != nil {
		return nil, err
	}
	file := filepath.Join(w.dir, "second.calls")
	var most int64
	o, err := c.survive(scenario{
		files: []string{file},
		lasts: max(w.o.phase(), 4*timeout), // so that some calls are given up before the end
		fault: func(*cluster) error { return second.ask("load", loadOptions{Callers: 8, Rate: rate}, nil) },
		heal: func(c *cluster) error {
			all, err := c.states()
			if err == nil {
				most = all[0].InFlight
				err = second.ask("stop", file, nil)
			}
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	// The load has ended, and all of its calls: nothing waits for what the gateway has now.
	var left int64
	gone, err := c.until("the gateway has given up all calls", func() (bool, error) {
		all, err := c.states()
		if err == nil {
			left = all[0].InFlight
		}
		return left == 0, err
	})
	if err != nil {
		return nil, err
	}
	its, err := ledger.ReadCalls(file)
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.compareP99(o, 2)
	late, refused := count(its, by(anser.DeadlineExceeded)), count(its, is(ledger.Refused))
	r.fact("calls of the slow service", float64(len(its)), "")
	r.fact("failed by deadline", float64(late), "")
	r.none("of them ended otherwise, and not refused", len(its)-late-refused)
	slow := observation{calls: its}
	r.outlived("one of them outlived its deadline by", o, slow.late(timeout))
	r.timed("calls in flight at the gateway", float64(most), "", fmt.Sprintf("at most %d, of which %v long calls came", 2*rate, timeout), most <= 2*rate)
	r.within("the gateway had no call left after", gone, time.Second, true)
	return r, nil
}

// gatewayLying lets a proxy change the lengths in the frames that one of three servers sends.
func gatewayLying(w *world) (*result, error) {
	const most = 512 // MiB: the lies claim up to 4 GiB
	enough := int64(5)
	if w.o.Long {
		enough = 50 // there are few: the gateway soon avoids the server
	}
	c, err := w.gated(1, gatewayConfig, clusterOptions{lastProxied: true, client: config{Timeout: weatherTimeout}})
	if err != nil {
		return nil, err
	}
	liar := c.servers[len(c.servers)-1].config.Name
	var p passed
	o, err := c.survive(scenario{
		fault: func(c *cluster) error { return c.proxy.ask("weather", weather{Lie: 10}, nil) },
		heal: func(c *cluster) error {
			if _, err := c.until("the server has lied", func() (bool, error) {
				err := c.proxy.ask("passed", nil, &p)
				return p.Lies >= enough, err
			}); err != nil {
				return err
			}
			return c.proxy.ask("weather", weather{}, nil)
		},
	})
	if err != nil {
		return nil, err
	}
	var own usage
	if err := c.gateways[0].ask("usage", nil, &own); err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.noWrongReplies(o)
	r.fact("lies", float64(p.Lies), "")
	r.whatFailed(o)
	honest, never := o.elsewhere(liar)
	r.noFailures("failed calls that another server ran", honest, o)
	r.noFailures("failed calls that were not sent or refused", never, o)
	if own.Peak > 0 {
		r.promise("most memory of the gateway", float64(own.Peak)/(1<<20), "MiB", fmt.Sprintf("at most %d", most), own.Peak <= most<<20)
	}
	return r, nil
}

// elsewhere returns how many failed calls ran, and only at other servers than the one with the
// name, and how many were not sent or refused.
func (o *observation) elsewhere(name string) (ran, never int) {
	at := make(map[ledger.ID][2]bool) // it, and another one
	for _, e := range o.executions {
		seen := at[e.ID]
		if e.Server == name {
			seen[0] = true
		} else {
			seen[1] = true
		}
		at[e.ID] = seen
	}
	for _, c := range o.failed(nil) {
		if at[c.ID] == [2]bool{false, true} {
			ran++
		}
		if c.Outcome == ledger.NotSent || c.Outcome == ledger.Refused {
			never++
		}
	}
	return ran, never
}

// gatewayClients has a crowd of clients, in all protocols, call a gateway at once, while others
// call it as ever.
func gatewayClients(w *world) (*result, error) {
	each := 3_334
	if !w.o.Long {
		each = 60
	}
	c, err := w.gated(1, gatewayConfig, clusterOptions{})
	if err != nil {
		return nil, err
	}
	var before, full usage
	door := c.gateways[0]
	if err := door.ask("settle", nil, &before); err != nil {
		return nil, err
	}
	n := each * len(allProtocols)
	file := func(what, over string) string { return filepath.Join(w.dir, what+"-"+over+".calls") }
	var files []string
	var crowd []*process
	for _, over := range allProtocols {
		p, err := w.start("crowd", "crowd-"+over, config{Target: c.client.config.Target, Timeout: w.o.Timeout, Over: []string{over}})
		if err != nil {
			return nil, err
		}
		crowd, files = append(crowd, p), append(files, file("gathered", over), file("returned", over))
		if err := p.ask("gather", crowdOptions{each, file("gathered", over)}, nil); err != nil {
			return nil, err
		}
	}
	var took time.Duration
	back := make([]returned, len(crowd))
	o, err := c.survive(scenario{
		files: files,
		lasts: time.Nanosecond, // as long as it takes
		fault: func(*cluster) error {
			began := time.Now()
			errs := make([]error, len(crowd))
			var wg sync.WaitGroup
			for i, p := range crowd {
				wg.Go(func() { errs[i] = p.ask("return", crowdOptions{File: file("returned", allProtocols[i])}, &back[i]) })
			}
			wg.Wait()
			took = time.Since(began)
			return errors.Join(errs...)
		},
		heal: func(*cluster) error { return door.ask("settle", nil, &full) },
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	failed := 0
	for i, b := range back {
		if failed += b.Failed; b.Trouble != "" {
			r.Errors = append(r.Errors, allProtocols[i]+": "+b.Trouble)
		}
	}
	r.fact("clients", float64(n), "")
	r.noFailures("failed calls of theirs", failed, o)
	r.within("all had a reply after", took, 10*time.Second, true)
	stand := full.Conns - before.Conns
	r.timed("connections that stand", float64(stand), "", fmt.Sprintf("at least %d", n), stand >= n)
	r.fact("memory of the gateway, each", float64(full.Resident-before.Resident)/float64(n)/1024, "KiB")
	conns := 0
	for _, p := range c.servers {
		var u usage
		if err := p.ask("usage", nil, &u); err != nil {
			return nil, err
		}
		conns = max(conns, u.Conns)
	}
	r.promise("most connections of a server", float64(conns), "", fmt.Sprintf("at most %d", gatewayConns), conns <= gatewayConns)
	return r, nil
}

// gatewayConns is the most connections of a gateway to one server.
const gatewayConns = 16

// gatewayFull has a second client fill the gateway with calls that do not end.
func gatewayFull(w *world) (*result, error) {
	const places, nonsense = 200, 20
	c, err := w.gated(1, gatewayConfig+fmt.Sprintf("limits: {calls: %d}\n", places), clusterOptions{client: config{Attempts: 1}})
	if err != nil {
		return nil, err
	}
	second, err := c.caller("second", config{Target: c.client.config.Target})
	if err != nil {
		return nil, err
	}
	var full, end time.Time
	var at, after []gatewayState
	var known int
	o, err := c.survive(scenario{
		fault: func(c *cluster) (err error) {
			if err := second.ask("fill", holdOptions{places}, nil); err != nil {
				return err
			}
			if _, err := c.until("the gateway is full", func() (bool, error) {
				held := int64(0)
				for _, p := range c.servers {
					var u usage
					if err := p.ask("usage", nil, &u); err != nil {
						return false, err
					}
					held += u.Running
				}
				return held == places, nil
			}); err != nil {
				return err
			}
			full = time.Now()
			if at, err = c.states(); err != nil {
				return err
			}
			return second.ask("unknown", nonsense, &known)
		},
		heal: func(c *cluster) (err error) {
			if after, err = c.states(); err != nil {
				return err
			}
			end = time.Now()
			return second.ask("cancel", nil, nil)
		},
	})
	if err != nil {
		return nil, err
	}
	ran := make(map[ledger.ID]bool)
	for _, e := range o.executions {
		ran[e.ID] = true
	}
	inside := func(c *ledger.Call) bool { return c.Began > full.UnixNano() && c.Ended < end.UnixNano() }
	refused := func(c *ledger.Call) bool { return inside(c) && by(anser.ResourceExhausted)(c) && !ran[c.ID] }
	all := o.between(o.began, o.end, inside).calls
	n := count(o.calls, refused)
	r := new(result)
	r.common(o)
	r.fact("calls while it was full", float64(all), "")
	r.promise("of them refused", float64(n), "", "all, and some", n == all && n > 0)
	r.noFailures("calls that the gateway forwarded meanwhile", int(after[0].Stats.Calls-at[0].Stats.Calls), o)
	hit := after[0].Limits["MaxInFlight"] - at[0].Limits["MaxInFlight"]
	r.promise("refusals that the gateway has counted", float64(hit), "", fmt.Sprintf("at least %d", n), hit >= int64(n))
	r.none(fmt.Sprintf("of %d calls of methods that no service has, not refused", nonsense*len(allProtocols)), known)
	var longest time.Duration
	for i := range o.calls {
		if c := &o.calls[i]; refused(c) {
			longest = max(longest, time.Duration(c.Ended-c.Began))
		}
	}
	r.within("the longest refusal", longest, 100*time.Millisecond, true)
	late := len(o.failed(func(c *ledger.Call) bool { return c.Due > end.Add(time.Second).UnixNano() }))
	r.noFailures("failed calls from one second after it", late, o)
	return r, nil
}
