package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// limitRows are those in which the system gives a server little of something.
func limitRows() []row {
	return []row{
		{
			name: "descriptors", fault: "connections of other clients exhaust the server's file descriptors, twice", run: descriptors,
			bar: "0 failed calls on open connections; the server does not spin (less than 5 % of a core); a new connection is served within 1 s after they close",
		},
		{
			name: "cgroup", fault: "a server in a cgroup of 256 MiB gets twice the load that its handler has memory for, with requests and replies of 1 MiB", needs: ownGroup, run: cgroup,
			bar: "not killed; calls beyond its capacity are refused; the ledger holds",
		},
	}
}

// confine takes away from this process what its configuration says.
func (c *config) confine() error {
	if c.Group != "" {
		if err := enterGroup(c.Group); err != nil {
			return err
		}
	}
	if c.Files == 0 {
		return nil
	}
	n := syscall.Rlimit{Cur: c.Files, Max: c.Files}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &n); err != nil {
		return fmt.Errorf("have %d file descriptors: %w", c.Files, err)
	}
	return nil
}

// descriptorsLeft reports whether this process can open a file.
func descriptorsLeft() (bool, error) {
	f, err := os.Open(os.DevNull)
	if errors.Is(err, syscall.EMFILE) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// shortage is a server without file descriptors.
type shortage struct {
	*world
	server    *process
	strangers *process
	newcomer  *process
	served    time.Duration // the longest wait of a new connection after the end of a shortage
}

// descriptors lets other clients use up all descriptors of a server: once without calls, to
// observe the server alone, and once under load.
func descriptors(w *world) (*result, error) {
	limit := 64 + 4*max(1, w.o.Clients) // room for the connections of all clients
	// The calls last long enough that some are open whenever the descriptors end.
	c, err := w.pair(config{Files: uint64(limit), Sleep: 20 * time.Millisecond}, config{})
	if err != nil {
		return nil, err
	}
	s := &shortage{world: w, server: c.servers[0]}
	others := config{Target: s.server.config.Listen}
	if s.strangers, err = w.start("stranger", "strangers", others); err != nil {
		return nil, err
	}
	if s.newcomer, err = w.start("stranger", "newcomer", others); err != nil {
		return nil, err
	}
	if err := c.enlist(); err != nil {
		return nil, err
	}
	if _, err := c.measure(callers, warming); err != nil { // so that there are connections
		return nil, err
	}
	if err := s.begin(limit); err != nil {
		return nil, err
	}
	share, err := s.idle()
	if err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	o, err := c.survive(scenario{
		fault: func(*cluster) error { return s.begin(limit) },
		heal: func(*cluster) error {
			if err := s.stillThere(); err != nil {
				return err
			}
			return s.end()
		},
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.fact("descriptors of the server", float64(limit), "")
	cpu := r.timed
	if share > 25 {
		cpu = r.promise // no machine is so slow: it spins
	}
	cpu("processor time of the server, without calls and descriptors", share, "% of a core", "less than 5", share < 5)
	r.within("a new connection is served after", s.served, time.Second, true)
	return r, nil
}

// begin uses up the descriptors. Further connections wait in the listener's queue.
func (s *shortage) begin(limit int) error {
	if err := s.strangers.ask("occupy", 2*limit, nil); err != nil {
		return err
	}
	return s.stillThere()
}

// stillThere makes sure that the shortage is there, and has not ended by itself. Where a stranger
// has left, such as one that was too slow, the next in the queue takes its place soon.
func (s *shortage) stillThere() error {
	_, err := s.until("the server has no descriptors left", func() (bool, error) {
		var left bool
		err := s.server.ask("descriptors", nil, &left)
		return !left, err
	})
	return err
}

// idle returns the share of a core that the server uses while it has no work, in percent. A server
// that spins does so as long as it has no descriptors, while remaining work and garbage
// collections end soon: so it returns the minimum of several measurements.
func (s *shortage) idle() (least float64, err error) {
	const looks = 10
	for i := range looks {
		share, err := s.idleOnce()
		if err != nil {
			return 0, err
		}
		if i == 0 || share < least {
			least = share
		}
		if least < 5 {
			break
		}
	}
	return least, nil
}

func (s *shortage) idleOnce() (float64, error) {
	var before, after time.Duration
	if err := s.server.ask("cpu", nil, &before); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.sleep(s.o.phase()); err != nil {
		return 0, err
	}
	if err := s.server.ask("cpu", nil, &after); err != nil {
		return 0, err
	}
	return 100 * float64(after-before) / float64(time.Since(began)), s.stillThere()
}

// end lets the strangers leave, and waits until the server has served a new connection.
func (s *shortage) end() error {
	if err := s.strangers.ask("leave", nil, nil); err != nil {
		return err
	}
	var took time.Duration
	if err := s.newcomer.ask("visit", nil, &took); err != nil {
		return fmt.Errorf("a new connection after the strangers have left: %w", err)
	}
	s.served = max(s.served, took)
	return nil
}

// cgroup offers a server more requests than it has memory for.
func cgroup(w *world) (*result, error) {
	const (
		limit = 256 << 20 * raceFactor
		body  = 1 << 20
		conns = 64 // a request may arrive on each

		slots = 8 // of the handler, which has room for twice the rate before the fault, and gets four times it
		times = 4
	)
	rate := 40.0
	if !w.o.Long {
		rate = 5
	}
	if w.o.Load.Rate == 0 || w.o.Load.Rate > rate {
		w.o.Load.Rate = rate
	}
	g, err := newMemoryGroup(limit)
	if err != nil {
		return nil, err
	}
	w.undo = append(w.undo, g.remove)
	room := times / 2 * w.o.Load.Rate // calls/s
	server := config{Group: g.dir, Slots: slots, Sleep: time.Duration(slots / room * float64(time.Second))}
	if raceFactor > 1 || !w.o.Long {
		server.Memory = 16 << 20 // otherwise the server finds out by itself what it may use: more than a short phase fills
	}
	c, err := w.pair(server, config{Conns: conns, Body: body})
	if err != nil {
		return nil, err
	}
	o, err := c.survive(scenario{
		callers: slots / 2, // so that none is refused before the load begins, and the rate changes soon
		lasts:   max(w.o.phase(), 3*time.Second),
		fault:   func(c *cluster) error { return c.setRate(times * w.o.Load.Rate) },
		heal:    func(c *cluster) error { return c.setRate(w.o.Load.Rate) },
	})
	if err != nil {
		return nil, err
	}
	peak, kills, err := g.used()
	if err != nil {
		return nil, err
	}
	var own usage
	if kills == 0 {
		if err := c.servers[0].ask("usage", nil, &own); err != nil {
			return nil, err
		}
	}
	r := new(result)
	r.common(o)
	r.none("kills by the system", kills)
	refused := func(c *ledger.Call) bool {
		return (c.Outcome == ledger.Refused || c.Outcome == ledger.NotSent) &&
			(c.Code == uint8(anser.ResourceExhausted) || c.Code == uint8(anser.Unavailable))
	}
	late := by(anser.DeadlineExceeded)
	n := count(o.calls, refused)
	r.timed("calls refused", float64(n), "", "more than 0", n > 0)
	r.timed("failed by deadline", float64(count(o.calls, late)), "", "0", count(o.calls, late) == 0)
	r.noFailures("failed otherwise", len(o.failed(func(c *ledger.Call) bool { return !refused(c) && !late(c) })), o)
	lasted := o.heal.Sub(o.fault).Seconds()
	goodput := float64(count(o.calls, func(c *ledger.Call) bool {
		return c.Outcome == ledger.OK && c.Ended >= o.fault.UnixNano() && c.Ended < o.heal.UnixNano()
	})) / lasted
	r.fact("calls due during", float64(o.between(o.fault, o.heal, nil).calls)/lasted, "calls/s")
	r.fact("replies during", goodput, "calls/s")
	r.fact("compared with what the handler has room for", 100*goodput/room, "%")
	if peak > 0 {
		r.fact("most memory of the cgroup, with what the system keeps of files", float64(peak)/(1<<20), "MiB")
	}
	if own.Peak > 0 {
		r.fact("most memory of the server", float64(own.Peak)/(1<<20), "MiB")
	}
	return r, nil
}
