package main

import (
	"fmt"
	"time"

	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// proxyRows are rows in which all connections of the client go through a faulty proxy.
func proxyRows() []row {
	return []row{
		{
			name: "delay", fault: "all data is delayed by 100 ms ± 50 ms in both directions, at 1 MB/s", run: delay, peers: true,
			bar: "the median rises by the injected delay ± 5 %; at most 1.2 attempts per call",
		},
		{name: "reset", fault: "connections are reset in the middle of messages, repeatedly", run: resets, peers: true, bar: "no silent errors: the ledger holds"},
		{name: "single-bytes", fault: "every byte arrives separately", run: singleBytes, peers: true, bar: "0 failed calls"},
		{name: "flips-tls", fault: "bits are flipped, under TLS", run: flips(underTLS), peers: true, bar: "0 wrong replies; the ledger holds"},
		{
			name: "flips-checksums", fault: "bits are flipped, without TLS, with checksums of frames", run: flips(withChecksums),
			bar: "0 wrong replies; the ledger holds; 0 idempotent calls fail, which have 5 attempts",
		},
		{
			name: "flips-plain", fault: "bits are flipped, without TLS and without checksums", run: flips(unprotected), peers: true,
			bar: "0 wrong replies, which is not promised: nothing checks them, since TCP checksums end at the proxy",
		},
	}
}

// weatherTimeout is the deadline of calls where connections break.
const weatherTimeout = 5 * time.Second

// through plays a scenario in which the proxy has the weather for a phase, until enough has
// happened.
func (w *world) through(s scenario, bad weather, enough func(passed) bool) (o *observation, p passed, err error) {
	s.cluster.proxied = true
	if s.fault == nil {
		s.fault = func(*cluster) error { return nil }
	}
	then := s.fault
	s.fault = func(c *cluster) error {
		if err := c.proxy.ask("weather", bad, nil); err != nil {
			return err
		}
		return then(c)
	}
	also := s.heal
	s.heal = func(c *cluster) error {
		_, err := w.until("the proxy has done its work", func() (bool, error) {
			err := c.proxy.ask("passed", nil, &p)
			return enough(p), err
		})
		if err != nil {
			return err
		}
		if also != nil {
			if err := also(c); err != nil {
				return err
			}
		}
		return c.proxy.ask("weather", weather{}, nil)
	}
	o, err = w.survive(s)
	return o, p, err
}

// delay delays the data.
func delay(w *world) (*result, error) {
	const rate = 1_000_000
	var from, to usage
	usageNow := func(u *usage) func(*cluster) error {
		return func(c *cluster) (err error) {
			*u, err = c.used()
			return err
		}
	}
	o, p, err := w.through(scenario{fault: usageNow(&from), heal: usageNow(&to)},
		weather{Delay: 50 * time.Millisecond, Jitter: 25 * time.Millisecond, Rate: [2]int{rate, rate}},
		func(p passed) bool { return p.Delays[0] > 0 && p.Delays[1] > 0 })
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	injected := p.Delays[0] + p.Delays[1]
	before, during := o.between(o.began, o.fault, nil), o.between(o.fault, o.heal, nil)
	rise := during.at(0.5) - before.at(0.5)
	r.fact("injected, the sum of the medians of both ways", millis(injected), "ms")
	r.timed("p50 rose by", millis(rise), "ms", fmt.Sprintf("%.1f ± 5 %%", millis(injected)), (rise-injected).Abs() <= injected/20)
	attempts := float64(to.Attempts-from.Attempts) / float64(max(1, to.Calls-from.Calls))
	r.timed("attempts for each call", attempts, "", "at most 1.2", attempts <= 1.2)
	return r, nil
}

// resets cuts connections between any two bytes.
func resets(w *world) (*result, error) {
	o, p, err := w.through(scenario{cluster: clusterOptions{client: config{Timeout: weatherTimeout}}},
		weather{Cut: 8 << 10}, func(p passed) bool { return p.Cuts > 0 })
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.noWrongReplies(o)
	r.fact("connections that were reset", float64(p.Cuts), "")
	r.whatFailed(o)
	return r, nil
}

// whatFailed adds which calls failed.
func (r *result) whatFailed(o *observation) {
	r.fact("failed idempotent calls", float64(len(o.failed(idempotent))), "")
	r.plainFailed(o)
}

// plainFailed adds which calls failed that are not idempotent.
func (r *result) plainFailed(o *observation) {
	failed := o.failed(plain)
	r.fact("failed calls of the others", float64(len(failed)), "")
	r.fact("of them not unknown", float64(len(failed)-count(failed, is(ledger.Unknown))), "")
}

// singleBytes sends every byte separately, which is expensive for both sides: the load is small.
func singleBytes(w *world) (*result, error) {
	o, p, err := w.through(scenario{most: 100}, weather{Single: true}, func(p passed) bool { return p.Bytes > 0 })
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.noWrongReplies(o)
	r.fact("bytes that were sent by themselves", float64(p.Bytes), "")
	return r, nil
}

// What keeps flipped bits from arriving.
type protection int

const (
	unprotected protection = iota
	withChecksums
	underTLS
)

// flips changes bits. TLS detects each of them, and so do checksums; without both, a change in the
// payload of a request or a reply arrives undetected.
func flips(by protection) func(*world) (*result, error) {
	return func(w *world) (*result, error) {
		cluster, mean := clusterOptions{client: config{Timeout: weatherTimeout}}, 2<<10
		switch by {
		case withChecksums:
			mean = 4 << 10 // each one costs a connection
			// One flip for about 40 calls: three attempts of 30,000 calls would all be hit now and
			// then.
			cluster.client.Attempts, cluster.client.Timeout = 5, 0
		case underTLS:
			mean = 16 << 10 // some handshakes must succeed
		}
		cluster.servers.Checksums, cluster.client.Checksums = by == withChecksums, by == withChecksums
		if by == underTLS {
			a, err := w.certify("server", "client")
			if err != nil {
				return nil, err
			}
			cluster.servers.TLS, cluster.client.TLS = a.names("server"), a.names("client")
		}
		most := 0.0
		if by == withChecksums {
			most = 1000 // flips a second grow with the load, and with them the share of calls that are hit
		}
		o, p, err := w.through(scenario{cluster: cluster, most: most}, weather{Flip: mean}, func(p passed) bool { return p.Flips > 0 })
		if err != nil {
			return nil, err
		}
		r := new(result)
		if by != unprotected {
			r.common(o)
			r.noWrongReplies(o)
		} else {
			r.offered(o)
			wrong := count(o.calls, func(c *ledger.Call) bool { return c.Mixed })
			r.timed("wrong replies", float64(wrong), "", "0", wrong == 0)
			r.timed("what the ledger has against it", float64(o.verdict.Broken), "", "0", o.verdict.Broken == 0)
			for _, v := range o.verdict.Violations[:min(3, len(o.verdict.Violations))] {
				r.Errors = append(r.Errors, "the ledger: "+v)
			}
		}
		r.fact("bits that were flipped", float64(p.Flips), "")
		if by == withChecksums {
			r.noFailures("failed idempotent calls", len(o.failed(idempotent)), o)
			r.plainFailed(o)
		} else {
			r.whatFailed(o)
		}
		return r, nil
	}
}
