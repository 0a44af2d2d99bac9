package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/anser-rpc/anser/e2e/internal/say"
)

var sections = map[string]func(options, *report) error{
	"say": measureSay, "round": measureRound, "slow": measureSlow, "stream": measureStream, "burn": measureBurn, "idle": measureIdle, "conns": measureConns, "forward": measureForward, "gateway": measureGateway, "observe": measureObserve, "console": measureConsole, "large": measureLarge,
}

// figures of one measurement.
type figures struct {
	say.Result
	ServerCPU  float64 `json:"server_cpu_us_per_call"`
	GatewayCPU float64 `json:"gateway_cpu_us_per_call,omitempty"`
}

// load runs a client process against the server.
func load(s *process, o say.Options) (f figures, err error) { return loadKind(s, "calls", o) }

// loadKind does so with one of loads.
func loadKind(s *process, kind string, o say.Options) (f figures, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return f, err
	}
	before, err := s.ask(say.CommandStat)
	if err != nil {
		return f, err
	}
	p, err := self("process-load", kind, string(text))
	if err == nil && o.Own { // making the connections does not count
		if err := p.line(&struct{}{}); err != nil {
			p.kill()
			return f, err
		}
		if before, err = s.ask(say.CommandStat); err != nil {
			p.kill()
			return f, err
		}
	}
	if err := once(p, err, &f); err != nil {
		return f, err
	}
	after, err := s.ask(say.CommandStat)
	f.ServerCPU = (after.CPU - before.CPU) * 1e6 / float64(f.Calls)
	return f, err
}

// loadCeiling does the same with the ceiling program.
func loadCeiling(o options, s *process, addr string, callers, calls int, flags ...string) (f figures, err error) {
	args := append([]string{"-addr", addr, "-c", strconv.Itoa(callers), "-n", strconv.Itoa(calls)}, flags...)
	p, err := start(o.ceiling, args...)
	if err := once(p, err, &f); err != nil {
		return f, err
	}
	var used struct {
		CPU float64 `json:"server_cpu_s"`
	}
	err = s.line(&used)
	f.ServerCPU = used.CPU * 1e6 / float64(f.Calls)
	if f.CallsPerS > 0 {
		f.Seconds = float64(f.Calls) / f.CallsPerS
	}
	return f, err
}

func (o options) calls(n, callers int) int { return max(int(float64(n)*o.scale), callers) }

// measureSay compares calls a second with the ceiling, at several numbers of callers.
func measureSay(o options, r *report) error {
	s, addr, err := server()
	if err != nil {
		return err
	}
	defer s.stop()
	top, topAddr, err := ceiling(o.ceiling)
	if err != nil {
		return err
	}
	defer top.kill()
	for _, callers := range []int{1, 100, 1000} {
		n := o.calls(300_000, callers)
		if callers == 1 {
			n = o.calls(15_000, callers)
		}
		c := &comparison{Callers: callers, measure: callsPerS}
		for range o.rounds {
			base, err := loadCeiling(o, top, topAddr, callers, n)
			if err != nil {
				return err
			}
			own, err := load(s, say.Options{Addr: addr, Callers: callers, Calls: n})
			if err != nil {
				return err
			}
			c.add(own, base)
		}
		c.end()
		r.Say = append(r.Say, c)
	}
	return nil
}

// measureRound compares a round trip with that of bare TCP, and that of the ceiling program with
// it, too.
func measureRound(o options, r *report) error {
	s, addr, err := server()
	if err != nil {
		return err
	}
	defer s.stop()
	bare, bareAddr, err := ceiling(o.ceiling, "-pingpong")
	if err != nil {
		return err
	}
	defer bare.kill()
	top, topAddr, err := ceiling(o.ceiling)
	if err != nil {
		return err
	}
	defer top.kill()
	n := o.calls(15_000, 1)
	c, d := &comparison{Callers: 1, measure: p50}, &comparison{Callers: 1, measure: p50}
	for range o.rounds {
		base, err := loadCeiling(o, bare, bareAddr, 1, n, "-pingpong")
		if err != nil {
			return err
		}
		own, err := load(s, say.Options{Addr: addr, Callers: 1, Calls: n})
		if err != nil {
			return err
		}
		least, err := loadCeiling(o, top, topAddr, 1, n)
		if err != nil {
			return err
		}
		c.add(own, base)
		d.add(least, base)
	}
	c.end()
	d.end()
	r.Round, r.RoundCeiling = c, d
	return nil
}

const slowShare = 0.01

// measureSlow compares the fast calls with those of a load without slow ones.
func measureSlow(o options, r *report) error {
	for _, own := range []bool{false, true} {
		c := &comparison{Callers: 100, measure: p99, OwnMethod: own}
		// The server learns the cost of a method, so each kind of load uses its own.
		with, withAddr, err := server()
		if err != nil {
			return err
		}
		defer with.stop()
		without, withoutAddr, err := server()
		if err != nil {
			return err
		}
		defer without.stop()
		n := o.calls(200_000, c.Callers)
		for range o.rounds {
			base, err := load(without, say.Options{Addr: withoutAddr, Callers: c.Callers, Calls: n})
			if err != nil {
				return err
			}
			slow, err := load(with, say.Options{Addr: withAddr, Callers: c.Callers, Calls: n, Slow: slowShare, OwnSlow: own})
			if err != nil {
				return err
			}
			c.add(slow, base)
		}
		c.end()
		r.Slow = append(r.Slow, c)
	}
	return nil
}

const streamSize = 1 << 10

// measureStream compares messages per second, one way on one stream, with the same bytes on a bare
// connection; and calls next to a stream with a slow reader with calls alone.
func measureStream(o options, r *report) error {
	s, addr, err := server()
	if err != nil {
		return err
	}
	defer s.stop()
	bare, err := self("process-drain")
	if err != nil {
		return err
	}
	defer bare.stop()
	var at say.Stat
	if err := bare.line(&at); err != nil {
		return err
	}
	r.Stream = &comparison{Callers: 1, measure: callsPerS}
	r.Beside = &comparison{Callers: 100, measure: p99}
	for range o.rounds {
		l := say.Options{Addr: at.Addr, Calls: o.calls(1_000_000, 1), Size: streamSize}
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		var base figures
		p, err := self("process-load", "pour", string(text))
		if err := once(p, err, &base); err != nil {
			return err
		}
		l.Addr = addr
		own, err := loadKind(s, "stream", l)
		if err != nil {
			return err
		}
		r.Stream.add(own, base)
		calls := say.Options{Addr: addr, Callers: 100, Calls: o.calls(100_000, 100), Conns: 1}
		if base, err = load(s, calls); err != nil {
			return err
		}
		calls.Beside = true
		if own, err = load(s, calls); err != nil {
			return err
		}
		r.Beside.add(own, base)
	}
	r.Stream.end()
	r.Beside.end()
	return nil
}

// measureBurn finds how many cores a server uses for one connection, and what that is worth: a
// second server may use but one.
func measureBurn(o options, r *report) error {
	many, manyAddr, err := server()
	if err != nil {
		return err
	}
	defer many.stop()
	one, oneAddr, err := server("GOMAXPROCS=1")
	if err != nil {
		return err
	}
	defer one.stop()
	b := &burning{Conns: 1}
	b.Callers, b.measure = 64, callsPerS
	var cores []float64
	for range o.rounds {
		l := say.Options{Addr: oneAddr, Callers: b.Callers, Calls: o.calls(5000, b.Callers), Conns: b.Conns, Burn: true}
		base, err := load(one, l)
		if err != nil {
			return err
		}
		l.Addr = manyAddr
		f, err := load(many, l)
		if err != nil {
			return err
		}
		b.add(f, base)
		cores = append(cores, f.ServerCPU*float64(f.Calls)/1e6/f.Seconds)
	}
	b.end()
	b.Cores = spreadOf(cores)
	r.Burn = b
	return nil
}

// measureIdle finds what connections cost that nothing happens on.
func measureIdle(o options, r *report) error {
	const watch = 3 * time.Second // less than the time to the first ping
	s, addr, err := server()
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := load(s, say.Options{Addr: addr, Callers: 10, Calls: 10_000}); err != nil { // a server that has worked
		return err
	}
	before, err := s.ask(say.CommandFree)
	if err != nil {
		return err
	}
	p, err := self("process-idle", addr, strconv.Itoa(o.conns))
	if err != nil {
		return err
	}
	defer p.stop()
	i := new(idling)
	if err := p.line(&i.Conns); err != nil {
		return err
	}
	now, err := s.ask(say.CommandStat)
	if err != nil {
		return err
	}
	if now.Conns != o.conns {
		return fmt.Errorf("the server has %d connections, not %d", now.Conns, o.conns)
	}
	time.Sleep(watch)
	later, err := s.ask(say.CommandStat)
	if err != nil {
		return err
	}
	freed, err := s.ask(say.CommandFree)
	if err != nil {
		return err
	}
	each := func(rss int64) int64 { return (rss - before.RSS) / int64(o.conns) }
	i.Bytes, i.BytesFreed = each(later.RSS), each(freed.RSS)
	i.CPU = (later.CPU - now.CPU) / watch.Seconds() * 100
	r.Idle = i
	return nil
}

const fewConns = 100 // that more of them are compared with

// measureConns compares what a call costs with many connections in the client, one caller on each,
// with what it costs with few. The same comparison for bare connections, in turns with it, shows
// how much of the difference the runtime and the kernel make.
func measureConns(o options, r *report) error {
	const quiet = 3 * time.Second
	s, addr, err := server()
	if err != nil {
		return err
	}
	defer s.stop()
	bare, bareAddr, err := serverOf("process-bare")
	if err != nil {
		return err
	}
	defer bare.stop()
	for _, conns := range []int{1000, 5000} {
		c := &connecting{Conns: conns}
		c.Callers, c.measure = conns, func(f figures) float64 { return f.ClientCPU + f.ServerCPU }
		for range o.rounds {
			n := o.calls(200_000, conns)
			base, err := load(s, say.Options{Addr: addr, Callers: fewConns, Calls: n, Own: true})
			if err != nil {
				return err
			}
			own, err := load(s, say.Options{Addr: addr, Callers: conns, Calls: n, Own: true, Quiet: quiet})
			if err != nil {
				return err
			}
			c.add(own, base)
			if base, err = loadKind(bare, "bounce", say.Options{Addr: bareAddr, Callers: fewConns, Calls: n, Own: true}); err != nil {
				return err
			}
			if own, err = loadKind(bare, "bounce", say.Options{Addr: bareAddr, Callers: conns, Calls: n, Own: true}); err != nil {
				return err
			}
			c.bare.add(own, base)
		}
		c.end()
		r.Conns = append(r.Conns, c)
	}
	return nil
}

// measureForward compares the CPU time that a server uses to forward a call with that of the server
// of a direct call. Both serve the same loads in turns.
func measureForward(o options, r *report) error {
	s, addr, err := server()
	if err != nil {
		return err
	}
	defer s.stop()
	between, betweenAddr, err := answering(self("process-forward", addr))
	if err != nil {
		return err
	}
	defer between.stop()
	for _, callers := range []int{100, 1000} {
		c := &comparison{Callers: callers, measure: serverCPU}
		n := o.calls(200_000, callers)
		for range o.rounds {
			base, err := load(s, say.Options{Addr: addr, Callers: callers, Calls: n})
			if err != nil {
				return err
			}
			own, err := load(between, say.Options{Addr: betweenAddr, Callers: callers, Calls: n})
			if err != nil {
				return err
			}
			c.add(own, base)
		}
		c.end()
		r.Forward = append(r.Forward, c)
	}
	return nil
}
