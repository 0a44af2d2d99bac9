package main

import (
	"errors"
	"fmt"

	"github.com/anser-rpc/anser/internal/netns"
)

// lossRows are those in which some packets are lost, by chance.
func lossRows() []row {
	var all []row
	for _, l := range []struct {
		name, percent, of, bar string
		share, succeed         float64
		servers                int
	}{
		{"loss-1-one", "1 %", "one server", "100 %", 0.01, 1, 1},
		{"loss-1", "1 %", "all servers", "100 %", 0.01, 1, serverCount},
		{"loss-5-one", "5 %", "one server", "at least 99.9 %", 0.05, 0.999, 1},
		{"loss-5", "5 %", "all servers", "at least 99.9 %", 0.05, 0.999, serverCount},
	} {
		all = append(all, row{
			name: l.name, fault: l.percent + " of the packets are lost, both ways, between the client and " + l.of + ", for a phase",
			bar: "0 wrong replies; " + l.bar + " of the idempotent calls succeed", needs: tables, peers: true, run: lossy(l.share, l.servers, l.succeed),
		})
	}
	return all
}

// lossy loses a share of the packets between the client and some servers. TCP sends them again,
// the longer a packet is lost again and again the later.
func lossy(share float64, servers int, succeed float64) func(*world) (*result, error) {
	return func(w *world) (*result, error) {
		change := func(c *cluster, f func(from, to netns.Host) error) error {
			var failed []error
			for _, p := range c.servers[:servers] {
				failed = append(failed, f(p.host, c.client.host), f(c.client.host, p.host))
			}
			return errors.Join(failed...)
		}
		o, err := w.survive(scenario{
			fault: func(c *cluster) error {
				return change(c, func(from, to netns.Host) error { return netns.Lose(w.ctx, from, to, share) })
			},
			heal: func(c *cluster) error {
				return change(c, func(from, to netns.Host) error { return netns.Keep(w.ctx, from, to, share) })
			},
		})
		if err != nil {
			return nil, err
		}
		r := new(result)
		r.common(o)
		r.noWrongReplies(o)
		during := o.between(o.fault, o.heal, idempotent)
		got := 1.0
		if during.calls > 0 {
			got = float64(during.ok) / float64(during.calls)
		}
		r.timed("idempotent calls that succeeded during", 100*got, "%", fmt.Sprintf("at least %g", 100*succeed), got >= succeed)
		r.fact("failed calls of the others", float64(len(o.failed(plain))), "")
		r.fact("attempts for each call", float64(o.attempts)/float64(len(o.calls)), "")
		return r, nil
	}
}
