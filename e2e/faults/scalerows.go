package main

import (
	"fmt"
	"time"
)

// scaleRows are rows with large numbers.
func scaleRows() []row {
	return []row{
		{name: "idle-tcp", fault: "10,000 idle connections", bar: "at most 6 KiB of memory each; less than 2 % of a core", run: idleRow(false, 6), peers: true},
		{name: "idle-tls", fault: "10,000 idle TLS connections", bar: "at most 40 KiB of memory each; less than 2 % of a core", run: idleRow(true, 40), peers: true},
		{
			name: "in-flight", fault: "100,000 calls in flight on 100 connections, cancelled all at once", run: inFlight, peers: true,
			bar: "at most 4 KiB each on the server, and 2 KiB on the client; all cancelled within 2 s",
		},
		{
			name: "dials", fault: "10,000 connections are opened and closed per second, for a phase", run: crowd, peers: true,
			bar: "0 failed calls; p99 of the calls on an open connection at most 3 times the p99 without the fault",
		},
	}
}

// crowd has others connect and leave again while calls are made.
func crowd(w *world) (*result, error) {
	rate := 10_000
	if !w.o.Long {
		rate = 1_000
	}
	c, err := w.pair(config{}, config{})
	if err != nil {
		return nil, err
	}
	if err := c.enlist(); err != nil {
		return nil, err
	}
	others, err := w.start("idle", "others", config{Target: c.servers[0].config.Listen})
	if err != nil {
		return nil, err
	}
	var made int
	o, err := c.survive(scenario{
		fault: func(*cluster) error {
			return others.ask("dial", dialOptions{rate, max(w.o.phase(), time.Second)}, &made)
		},
		heal: func(*cluster) error { return nil },
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.fact("connections made and left, each second", float64(made)/o.heal.Sub(o.fault).Seconds(), "")
	r.compareP99(o, 3)
	return r, nil
}

// alone starts a server without a registry.
func (w *world) alone(c config) (*process, error) {
	if _, err := w.folder("books"); err != nil {
		return nil, err
	}
	c.Dir = w.books()
	return w.start(w.role("server"), "server", c)
}

// idleRow returns a row with idle connections.
func idleRow(secure bool, maxKiB float64) func(*world) (*result, error) {
	return func(w *world) (*result, error) {
		n := 10_000
		if !w.o.Long {
			n = 500
		}
		server, client := config{Many: true}, config{}
		if secure {
			a, err := w.certify("server", "client")
			if err != nil {
				return nil, err
			}
			server.TLS, client.TLS = a.names("server"), a.names("client")
		}
		s, err := w.alone(server)
		if err != nil {
			return nil, err
		}
		client.Target, client.Peer = s.config.Listen, w.o.peer
		c, err := w.start("idle", "client", client)
		if err != nil {
			return nil, err
		}
		var before, filled, after usage
		var got opened
		// What the first connections need, all of them have.
		if err := c.ask("open", idleOptions{50}, &got); err != nil {
			return nil, err
		}
		if err := s.ask("settle", nil, &before); err != nil {
			return nil, err
		}
		if err := c.ask("open", idleOptions{n}, &got); err != nil {
			return nil, err
		}
		if _, err := w.until("the server has all connections", func() (bool, error) {
			err := s.ask("usage", nil, &filled)
			return filled.Conns >= got.Conns, err
		}); err != nil {
			return nil, err
		}
		// Buffers of the handshake go back after a while without use.
		if err := w.sleep(min(w.o.phase(), 5*time.Second)); err != nil {
			return nil, err
		}
		if err := s.ask("settle", nil, &filled); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := w.sleep(min(w.o.phase(), 30*time.Second)); err != nil {
			return nil, err
		}
		if err := s.ask("usage", nil, &after); err != nil {
			return nil, err
		}
		took := time.Since(began)
		r := new(result)
		r.timed("connections that stand", float64(after.Conns), "", fmt.Sprint(got.Conns), after.Conns == got.Conns)
		each := float64(filled.Resident-before.Resident) / float64(n) / 1024
		r.timed("memory of the server, each", each, "KiB", fmt.Sprintf("at most %g", maxKiB), each <= maxKiB)
		r.fact("of that on Go's heap", float64(filled.Heap-before.Heap)/float64(n)/1024, "KiB")
		r.fact("of that in stacks", float64(filled.Stacks-before.Stacks)/float64(n)/1024, "KiB")
		cpu := 100 * (after.CPU - filled.CPU).Seconds() / took.Seconds()
		r.timed("processor time of the server", cpu, "% of a core", "less than 2", cpu < 2)
		return r, nil
	}
}

// inFlight opens calls that stay open, and cancels them.
func inFlight(w *world) (*result, error) {
	n, conns := 100_000, 100
	if !w.o.Long {
		n, conns = 2_000, 10
	}
	pair, err := w.pair(config{Many: true}, config{Conns: conns})
	if err != nil {
		return nil, err
	}
	s, c := pair.servers[0], pair.client
	var idle, busy [2]usage
	both := func(do string, out *[2]usage) error {
		if err := s.ask(do, nil, &out[0]); err != nil {
			return err
		}
		return c.ask(do, nil, &out[1])
	}
	patience := bound
	switch { // a server of a peer may never learn that a call was cancelled
	case w.o.peer != "" && w.o.Long:
		patience = 10 * time.Second
	case w.o.peer != "":
		patience = 3 * time.Second
	}
	var cancelled, ended time.Duration
	var returned bool
	// What the first calls need, such as connections and tables, all of them have.
	round := func(n int, do string) error {
		if err := s.ask("usage", nil, &busy[0]); err != nil {
			return err
		}
		others := busy[0].Running // of the round before, which do not return
		if err := c.ask("hold", holdOptions{n}, nil); err != nil {
			return err
		}
		var there bool
		if err := s.ask("wait", waitOptions{others + int64(n), bound}, &there); err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("not within %v: %d calls run", bound, n)
		}
		if err := both(do, &busy); err != nil {
			return err
		}
		began := time.Now()
		if err := c.ask("cancel", nil, &cancelled); err != nil {
			return err
		}
		err := s.ask("wait", waitOptions{others, patience}, &returned)
		ended = time.Since(began)
		if err == nil && !returned && w.o.peer == "" {
			return fmt.Errorf("not within %v: all handlers have returned", bound)
		}
		return err
	}
	// A client makes its connections one after the other, while calls come.
	for range 10 * conns {
		if err := round(conns, "usage"); err != nil {
			return nil, err
		}
		if busy[0].Conns >= conns {
			break
		}
	}
	if err := both("settle", &idle); err != nil {
		return nil, err
	}
	if err := round(n, "settle"); err != nil {
		return nil, err
	}
	r := new(result)
	r.fact("calls in flight", float64(n), "")
	r.timed("connections", float64(busy[0].Conns), "", fmt.Sprint(conns), busy[0].Conns == conns)
	for i, side := range []struct {
		name string
		bar  float64
	}{{"server", 4}, {"client", 2}} {
		each := float64(busy[i].Resident-idle[i].Resident) / float64(n) / 1024
		r.timed("memory of the "+side.name+", each", each, "KiB", fmt.Sprintf("at most %g", side.bar), each <= side.bar)
		r.fact("of that on Go's heap, "+side.name, float64(busy[i].Heap-idle[i].Heap)/float64(n)/1024, "KiB")
		r.fact("of that in stacks, "+side.name, float64(busy[i].Stacks-idle[i].Stacks)/float64(n)/1024, "KiB")
	}
	r.within("all have ended for their callers after", cancelled, 2*time.Second, true)
	r.within("all handlers have returned after", ended, 2*time.Second, returned)
	return r, nil
}
