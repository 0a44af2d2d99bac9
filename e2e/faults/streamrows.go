package main

import (
	"cmp"
	"fmt"
	"time"
)

// streamRows are those in which streams are a burden to calls.
func streamRows() []row {
	return []row{
		{
			name: "slow-reader", fault: "a client has 100 streams open, and its network takes 1 KB/s", run: slowReader,
			bar: "server memory at most the sum of the windows + 10 %; evicted at the stall limit; p99 of the others' calls below 2 times",
		},
		{
			name: "large-streams", fault: "messages of 16 MiB on streams, with calls on the same connection", run: largeStreams,
			bar: "p99 of the calls at most 5 times the p99 without streams",
		},
	}
}

// pair starts a server without a registry, and a client that makes its calls there.
func (w *world) pair(server, client config) (*cluster, error) {
	server.Stall, client.Stall = cmp.Or(server.Stall, w.o.Stall), cmp.Or(client.Stall, w.o.Stall)
	s, err := w.alone(server)
	if err != nil {
		return nil, err
	}
	client.Target, client.Timeout = "tcp://"+s.config.Listen, w.o.Timeout
	if w.o.peer != "" {
		client.Target = s.config.Listen
	}
	c, err := w.start(w.role("client"), "client", client)
	return &cluster{world: w, servers: []*process{s}, client: c}, err
}

// slowReader has a second client read slowly. Its windows let the server send more than the system
// has buffers for, so that it is the writes that wait, and not the streams.
func slowReader(w *world) (*result, error) {
	const streams, window, speed = 100, 256 << 10, 1 << 10
	stall := 10 * time.Second // the default
	if w.o.phase() < 15*time.Second {
		stall = 2 * time.Second
	}
	c, err := w.pair(config{Stall: stall}, config{})
	if err != nil {
		return nil, err
	}
	if err := c.enlist(); err != nil {
		return nil, err
	}
	s := c.servers[0]
	if c.proxy, err = w.startProxy(); err != nil {
		return nil, err
	}
	var door string
	if err := c.proxy.ask("forward", s.config.Listen, &door); err != nil {
		return nil, err
	}
	if err := c.proxy.ask("weather", weather{Rate: [2]int{0, speed}}, nil); err != nil {
		return nil, err
	}
	slow, err := w.start("client", "slow", config{
		Target: "tcp://" + door, Conns: 1, Windows: [2]int{window, streams * window}, Timeout: bound, Stall: bound,
	})
	if err != nil {
		return nil, err
	}
	var before, now usage
	var most int64
	var opened, evicted time.Duration
	o, err := c.survive(scenario{
		fault: func(*cluster) error {
			if err := s.ask("settle", nil, &before); err != nil {
				return err
			}
			if err := slow.ask("feed", flowOptions{Streams: streams}, nil); err != nil {
				return err
			}
			look := func(what string, until func() bool) (time.Duration, error) {
				return w.until(what, func() (bool, error) {
					err := s.ask("usage", nil, &now)
					most = max(most, now.Resident)
					return until(), err
				})
			}
			if opened, err = look("streams are open", func() bool { return now.Feeds > 0 }); err != nil {
				return err
			}
			evicted, err = look("the slow client is evicted", func() bool { return now.Running == 0 })
			return err
		},
		heal:  func(*cluster) error { return slow.ask("dry", nil, nil) },
		lasts: time.Nanosecond, // as long as it takes
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	const mib = 1 << 20
	grown, sum := float64(most-before.Resident)/mib, float64(streams*window)/mib
	r.timed("the server's memory grew by", grown, "MiB", fmt.Sprintf("at most %.1f, %d windows of %d KiB + 10 %%", 1.1*sum, streams, window>>10), grown <= 1.1*sum)
	r.fact("the first stream was open after", opened.Seconds(), "s")
	r.within("evicted after", evicted, stall+time.Second, true)
	r.compareP99(o, 2)
	return r, nil
}

// compareP99 compares that of the calls before the fault with that during it.
func (r *result) compareP99(o *observation, times float64) {
	before, during := o.between(o.began, o.fault, nil), o.between(o.fault, o.heal, nil)
	got := float64(during.at(0.99)) / float64(max(1, before.at(0.99)))
	r.timed("p99 during, compared with before", got, "times", fmt.Sprintf("at most %g", times), got <= times)
}

// compareSeconds compares the median of the p99 of each second before the fault with that during
// it. One pause of the machine, which is many late calls in one second, does not decide.
func (r *result) compareSeconds(o *observation, times float64) {
	before, during := o.medianSecond(o.began, o.fault, 0.99), o.medianSecond(o.fault, o.heal, 0.99)
	r.fact("p99 of a second before, the median", millis(before), "ms")
	r.fact("p99 of a second during, the median", millis(during), "ms")
	got := float64(during) / float64(max(1, before))
	r.timed("during, compared with before", got, "times", fmt.Sprintf("at most %g", times), got <= times)
}

// largeStreams sends large messages on two streams at a time. The calls are made by the same
// process, as they share its connection.
func largeStreams(w *world) (*result, error) {
	const streams, size = 2, 16 << 20
	// At 8,000 open calls, those of 0.2 s at the usual rate, the client would make a second
	// connection.
	const open = 4_000
	c, err := w.pair(config{Message: size}, config{Message: size, Conns: 1})
	if err != nil {
		return nil, err
	}
	var with usage
	var sent flowed
	o, err := c.survive(scenario{
		open:  open,
		laden: true, // else 60 % of the capacity and the streams would be more than the machine can do
		fault: func(c *cluster) error {
			return c.client.ask("pour", flowOptions{Streams: streams, Bytes: size}, nil)
		},
		heal: func(c *cluster) error {
			if err := c.servers[0].ask("usage", nil, &with); err != nil {
				return err
			}
			return c.client.ask("dry", nil, &sent)
		},
	})
	if err != nil {
		return nil, err
	}
	if sent.Error != "" {
		return nil, fmt.Errorf("a stream failed: %s", sent.Error)
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.timed("connections", float64(with.Conns), "", "1", with.Conns == 1)
	r.fact("messages", float64(sent.Bytes/size), "")
	r.fact("moved by streams", float64(sent.Bytes)/1e6/o.heal.Sub(o.fault).Seconds(), "MB/s")
	r.compareP99(o, 5)
	return r, nil
}
