package main

import (
	"time"

	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// loadRows are those in which the load is the fault.
func loadRows() []row {
	return []row{{
		name: "spike", fault: "half a phase of 3 times the load, on a base of 70 %, from clients that retry immediately, three times", run: spike, peers: true,
		bar: "at least 95 % goodput within 10 s of its end; the ledger holds",
	}}
}

// spike triples the load for a while. The servers can run 8 calls of 8 ms at a time each, like a
// pool of connections, so that the servers are the bottleneck, and not the caller. They also have
// an adaptive limit, if the framework supports it.
func spike(w *world) (*result, error) {
	const share, slots, timeout = 0.7, 8, time.Second
	sleep := 8 * time.Millisecond
	if w.o.Load.Rate > 0 {
		// The same the other way round: servers for which the rate is that share.
		sleep = time.Duration(serverCount * slots * share / w.o.Load.Rate * float64(time.Second))
	}
	c, err := w.cluster(clusterOptions{
		servers: config{Slots: slots, Sleep: sleep, Adaptive: true}, client: config{Timeout: timeout},
	})
	if err != nil {
		return nil, err
	}
	var base float64
	o, err := c.survive(scenario{
		share: share, again: 3, depth: 1, // or the limit would refuse calls while the capacity is measured
		lasts: w.o.phase() / 2, quiet: max(w.o.phase(), 3*time.Second),
		began: func(o *observation) { base = o.rate },
		fault: func(c *cluster) error { return c.setRate(3 * base) },
		heal:  func(c *cluster) error { return c.setRate(base) },
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	before, during := o.between(o.began, o.fault, nil), o.between(o.fault, o.heal, nil)
	r.fact("replies before", float64(before.ok)/o.fault.Sub(o.began).Seconds(), "calls/s")
	r.fact("replies during", float64(during.ok)/o.heal.Sub(o.fault).Seconds(), "calls/s")
	// Calls that were due during the spike and succeed after it do not represent later clients.
	took, ok := o.back(o.heal, 0.95, func(c *ledger.Call) bool { return c.Due >= o.heal.UnixNano() })
	r.within("95 % of the base rate again after", took, 10*time.Second, ok)
	if from, to := o.heal.Add(took), o.end.Add(-timeout); ok && to.After(from) {
		after := o.between(from, to, nil)
		r.fact("replies from then on", float64(after.ok)/to.Sub(from).Seconds(), "calls/s")
	}
	return r, nil
}
