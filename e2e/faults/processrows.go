package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// processRows are those in which something happens to a server's process.
func processRows() []row {
	return []row{
		{
			name: "kill", fault: "kill -9 one server", run: killed, peers: true,
			bar: "idempotent calls: 0 failed; others: only Unknown, at most the ones in flight; back to 99 % of the rate within 1 s",
		},
		{
			name: "stop", fault: "SIGSTOP one server, half a phase long", run: stopped, peers: true,
			bar: "idempotent calls: 0 failed; others: only by deadline; ejected within 5 s; used again within 10 s of SIGCONT",
		},
		{
			name: "restart", fault: "rolling restart of all servers, repeatedly", run: restarted, peers: true,
			bar: "0 failed calls; a server exits within the longest call + 1 s",
		},
	}
}

// killed kills a server, and starts it again.
func killed(w *world) (*result, error) {
	var at, gone time.Time
	o, err := w.survive(scenario{
		cluster: clusterOptions{servers: config{Sleep: 5 * time.Millisecond}}, // so that some calls are in flight
		fault: func(c *cluster) error {
			at = time.Now()
			c.servers[0].kill()
			gone = time.Now()
			return nil
		},
		heal: func(c *cluster) (err error) {
			c.servers[0], err = c.again(c.servers[0])
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
	most := o.open(at, gone, plain) // between the two the process ends, and calls still reach it
	r.timed("failed calls of the others", float64(len(failed)), "", fmt.Sprintf("at most %d, which were in flight", most), len(failed) <= most)
	took, ok := o.back(at, 0.99, nil)
	r.within("back to 99 % of the rate after", took, time.Second, ok)
	return r, nil
}

// stopped pauses a server, like a debugger or a machine that hangs. The pause is longer than the
// deadlines of the calls: calls that wait there when it begins fail, unless they are moved.
func stopped(w *world) (*result, error) {
	const timeout = 12 * time.Second
	var victim *process
	var at time.Time
	var out time.Duration
	seen, lasts := false, max(w.o.phase()/2, timeout+3*time.Second)
	o, err := w.survive(scenario{
		cluster: clusterOptions{client: config{Timeout: timeout}},
		lasts:   lasts, quiet: max(w.o.phase(), 3*time.Second),
		fault: func(c *cluster) (err error) {
			victim = c.servers[0]
			at = time.Now()
			if err := victim.signal(syscall.SIGSTOP); err != nil {
				return err
			}
			if c.registry != nil { // a peer does not tell
				out, seen, err = c.outOfUse(victim, at, 10*time.Second)
			}
			return err
		},
		heal: func(*cluster) error { return victim.signal(syscall.SIGCONT) },
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	failed := o.failed(nil)
	r.noFailures("failed idempotent calls", len(o.failed(idempotent)), o)
	r.fact("failed calls", float64(len(failed)), "")
	r.noFailures("failed otherwise than by deadline", len(failed)-count(failed, by(anser.DeadlineExceeded)), o)
	w.foundAfter(r, o, "out of use after", out, 5*time.Second, seen)
	again, ok := o.usedAgain(victim.config.Name, o.heal)
	r.within("used again after", again, 10*time.Second, ok)
	r.within("a call outlived its deadline by", o.late(timeout), 50*time.Millisecond, true)
	return r, nil
}

// foundAfter adds how long it took until the client gave the server no more calls. A peer's client
// does not report that: there it is when the last failing call before the server was back began,
// which the others have in addition.
func (w *world) foundAfter(r *result, o *observation, name string, took, most time.Duration, seen bool) {
	const last = "the last call that failed began after"
	if w.o.peer == "" {
		r.within(name, took, most, seen)
		r.fact(last, o.lastFailed().Seconds(), "s")
		return
	}
	r.within(last, o.lastFailed(), most, true)
}

// restarted restarts every server, one after the other, in rounds.
func restarted(w *world) (*result, error) {
	rounds := 5
	if w.o.Long {
		rounds = 100
		if w.o.peer != "" {
			rounds = 20 // there is a pause after each of them
		}
	}
	// One after the other takes a few tenths of a second each. In long phases they are spread out,
	// so that there is enough time for the calls that must survive them.
	every := w.o.phase() / 20
	var most time.Duration
	o, err := w.survive(scenario{
		fault: func(c *cluster) error {
			began := time.Now()
			for n := range rounds {
				for i, p := range c.servers {
					if err := c.sleep(time.Until(began.Add(every * time.Duration(n*len(c.servers)+i)))); err != nil {
						return err
					}
					took, err := p.drain()
					if err != nil {
						return err
					}
					most = max(most, took)
					if c.servers[i], err = c.again(p); err != nil {
						return err
					}
					if _, err := c.listed(); err != nil {
						return err
					}
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
	r.fact("restarts of each server", float64(rounds), "")
	r.allSucceeded(o)
	r.fact("longest call", o.longest().Seconds(), "s")
	r.within("longest exit of a server", most, o.longest()+time.Second, true)
	return r, nil
}
