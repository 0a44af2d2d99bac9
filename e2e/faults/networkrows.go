package main

import (
	"errors"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/netns"
)

// networkRows are those in which packets are lost.
func networkRows() []row {
	const bar = "found within keepalive + 1 s; errors only by deadline; no call outlives its deadline by more than 50 ms"
	return []row{
		{name: "half-open", fault: "all packets between the client and one server are lost, for a phase", bar: bar, needs: tables, peers: true, run: halfOpen(true)},
		{name: "half-open-one-way", fault: "all packets from one server to the client are lost, for a phase", bar: bar, needs: tables, peers: true, run: halfOpen(false)},
	}
}

// halfOpen drops the packets from one server to the client, and with both also those in the other
// direction. Neither side is notified: the connections stay open.
func halfOpen(both bool) func(*world) (*result, error) {
	const timeout = time.Second
	return func(w *world) (*result, error) {
		keepalive := [2]time.Duration{30 * time.Second, 10 * time.Second} // the defaults
		if w.o.phase() < 45*time.Second {
			keepalive = [2]time.Duration{2 * time.Second, time.Second}
		}
		if w.o.peer != "" {
			keepalive = peerKeepalive[w.o.peer]
		}
		sum, lasts := keepalive[0]+keepalive[1], w.o.phase()
		if w.o.peer != "" {
			lasts = max(lasts, sum+3*time.Second) // effects that are not reported need time to show
		}
		var victim *process
		var dead time.Duration
		seen := false
		change := func(c *cluster, f func(w *world, from, to netns.Host) error) error {
			err := f(w, victim.host, c.client.host)
			if both {
				err = errors.Join(err, f(w, c.client.host, victim.host))
			}
			return err
		}
		o, err := w.survive(scenario{
			cluster: clusterOptions{client: config{Timeout: timeout, Keepalive: keepalive}, servers: config{Keepalive: keepalive}},
			lasts:   lasts,
			fault: func(c *cluster) (err error) {
				victim = c.servers[0]
				at := time.Now()
				if err := change(c, drop); err != nil || c.registry == nil {
					return err
				}
				dead, seen, err = c.outOfUse(victim, at, sum+10*time.Second)
				return err
			},
			heal: func(c *cluster) error { return change(c, pass) },
		})
		if err != nil {
			return nil, err
		}
		r := new(result)
		r.common(o)
		failed := o.failed(nil)
		r.fact("failed calls", float64(len(failed)), "")
		r.fact("failed otherwise than by deadline", float64(len(failed)-count(failed, by(anser.DeadlineExceeded))), "")
		w.foundAfter(r, o, "found after", dead, sum+time.Second, seen)
		r.outlived("a call outlived its deadline by", o, o.late(timeout))
		if again, ok := o.usedAgain(victim.config.Name, o.heal); ok {
			r.fact("used again after", again.Seconds(), "s")
		}
		return r, nil
	}
}
