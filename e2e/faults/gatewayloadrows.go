package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
			bar: "0 failed calls of the other service, p99 of a second at most 2 times; the gateway keeps no call that its caller has given up",
		},
		{
			name: "gateway-lying-upstream", fault: "a server behind a gateway lies about the lengths of its frames", run: gatewayLying,
			bar: "no wrong reply; 0 failed calls that the other servers ran; the gateway's memory is not what the lies claim",
		},
		{
			name: "gateway-clients", fault: "10,000 clients of a gateway call at once", run: gatewayClients,
			bar: "0 failed calls, of a gateway with room for them (limits.calls); all connections stand; the servers have the connections of one client",
		},
		{
			name: "gateway-full", fault: "calls that do not end take all places of a gateway (limits.calls)", run: gatewayFull,
			bar: "all others are refused, 99 % within 100 ms, and none reaches a server; 0 failed calls before and after it",
		},
	}
}

// gatewaySlow has a second client call another service through the gateway of the first one, all
// the time. That service becomes slow.
func gatewaySlow(w *world) (*result, error) {
	const timeout, rate = time.Second, 100
	c, err := w.gated(1, gatewayConfig, clusterOptions{})
	if err != nil {
		return nil, err
	}
	slow, err := c.newServer("slow", config{Service: "slow"}, false)
	if err != nil {
		return nil, err
	}
	second, err := c.caller("second", config{Target: c.client.config.Target, Service: "slow", Timeout: timeout})
	if err != nil {
		return nil, err
	}
	if _, err := c.until("the gateway serves the second service", func() (bool, error) {
		all, err := c.states()
		return err == nil && len(all[0].of("slow").Methods) > 0, err
	}); err != nil {
		return nil, err
	}
	if err := second.ask("load", loadOptions{Callers: 8, Rate: rate}, nil); err != nil {
		return nil, err
	}
	file := filepath.Join(w.dir, "second.calls")
	var during, after []gatewayState
	var its loaded
	o, err := c.survive(scenario{
		files: []string{file},
		lasts: max(w.o.phase(), 4*timeout), // so that some calls are given up before the end
		fault: func(*cluster) error { return slow.ask("sleep", 3*timeout, nil) },
		heal: func(c *cluster) (err error) {
			if during, err = c.states(); err != nil {
				return err
			}
			if err := second.ask("stop", file, &its); err != nil { // which waits for its calls
				return err
			}
			after, err = c.states()
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	calls, err := ledger.ReadCalls(file)
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.compareSeconds(o, 2)
	slowed := (&observation{calls: calls}).failed(nil)
	late := count(slowed, by(anser.DeadlineExceeded))
	refused := count(slowed, func(c *ledger.Call) bool { return is(ledger.Refused)(c) && !by(anser.DeadlineExceeded)(c) })
	early := count(slowed, func(c *ledger.Call) bool { return c.Ended < o.fault.UnixNano() })
	r.fact("calls of the service that becomes slow", float64(len(calls)), "")
	r.noFailures("of them, failed before", early, o)
	r.fact("failed by deadline", float64(late), "")
	r.fact("refused", float64(refused), "")
	r.none("failed otherwise", len(slowed)-late-refused)
	r.errors(o, its.Samples)
	r.outlived("one of them outlived its deadline by", o, (&observation{calls: calls}).late(timeout))
	r.fact("calls in flight at the gateway", float64(during[0].InFlight), "")
	kept := during[0].of("slow").Calls
	r.timed("of them, calls of the slow service", float64(kept), "", fmt.Sprintf("at most %d, of which %v long calls came", 2*rate, timeout), kept <= 2*rate)
	left := after[0].of("slow").Calls
	r.timed("calls of it that the gateway has when the last caller has given up", float64(left), "", fmt.Sprintf("at most %d", rate/10), left <= rate/10)
	r.lostPlaces(&during[0])
	return r, nil
}

// lostPlaces adds how many connections of a gateway ended before anything had come over them,
// because others needed their places: clients of HTTP make some for requests that go over another
// connection in the end.
func (r *result) lostPlaces(s *gatewayState) {
	r.fact("connections that lost their places before their first request", float64(s.Limits["MaxHandshakes"]), "")
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
	// A gateway that expects these clients has room for a call of each, besides the load.
	calls := maxOpen + each*len(allProtocols)
	c, err := w.gated(1, gatewayConfig+fmt.Sprintf("limits: {calls: %d}\n", calls), clusterOptions{})
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
	var state []gatewayState
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
		heal: func(c *cluster) (err error) {
			if state, err = c.states(); err != nil {
				return err
			}
			return door.ask("settle", nil, &full)
		},
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	failed := 0
	for i, b := range back {
		failed += b.Failed
		for j := range b.Samples {
			b.Samples[j].Kind = allProtocols[i] + ", " + b.Samples[j].Kind
		}
		r.errors(o, b.Samples)
	}
	r.fact("clients", float64(n), "")
	r.noFailures("failed calls of theirs", failed, o)
	r.within("all had a reply after", took, 10*time.Second, true)
	r.lostPlaces(&state[0])
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
	const nonsense = 20
	places := 4_000 // more than the load has open, also when the machine pauses
	if !w.o.Long {
		places = 200
	}
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
				return held == int64(places), nil
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
	var took []time.Duration
	for i := range o.calls {
		if c := &o.calls[i]; refused(c) {
			took = append(took, time.Duration(c.Ended-c.Began))
		}
	}
	slices.Sort(took)
	r.within("p99 of the refusals", quantile(took, 0.99), 100*time.Millisecond, true)
	r.fact("the longest refusal", quantile(took, 1).Seconds(), "s")
	early := len(o.failed(func(c *ledger.Call) bool { return c.Ended < o.fault.UnixNano() }))
	r.noFailures("failed calls before it", early, o)
	late := len(o.failed(func(c *ledger.Call) bool { return c.Due > end.Add(time.Second).UnixNano() }))
	r.noFailures("failed calls from one second after it", late, o)
	return r, nil
}
