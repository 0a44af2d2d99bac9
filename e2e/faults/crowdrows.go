package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// crowdRows are those in which many clients want the same at once.
func crowdRows() []row {
	return []row{{
		name: "reconnect", fault: "5,000 clients lose their server, which restarts, and all reconnect at once", run: reconnect,
		bar: "all reconnect within 60 s, none is refused permanently; elsewhere only calls fail that are refused by a full server, and none from 5 s after that on",
	}}
}

// reconnect kills the server of a crowd and starts it again, while other calls are made to another
// server.
func reconnect(w *world) (*result, error) {
	const crowds = 5
	each := 1_000
	if !w.o.Long {
		each = 60
	}
	c, err := w.pair(config{}, config{})
	if err != nil {
		return nil, err
	}
	if err := c.enlist(); err != nil {
		return nil, err
	}
	theirs, err := w.start("server", "lost", config{Dir: w.books()})
	if err != nil {
		return nil, err
	}
	var before usage
	if err := theirs.ask("settle", nil, &before); err != nil {
		return nil, err
	}
	var procs []*process
	var files []string
	file := func(what string, i int) string { return filepath.Join(w.dir, fmt.Sprintf("%s%d.calls", what, i)) }
	for i := range crowds {
		p, err := w.start("crowd", fmt.Sprintf("crowd%d", i+1), config{Target: "tcp://" + theirs.config.Listen, Timeout: w.o.Timeout})
		if err != nil {
			return nil, err
		}
		procs = append(procs, p)
		files = append(files, file("gathered", i), file("returned", i))
		if err := p.ask("gather", crowdOptions{each, file("gathered", i)}, nil); err != nil {
			return nil, err
		}
	}
	var full usage
	var took time.Duration
	back := make([]returned, crowds)
	o, err := c.survive(scenario{
		files: files,
		lasts: time.Nanosecond, // as long as it takes
		fault: func(*cluster) (err error) {
			theirs.kill()
			errs := make([]error, crowds)
			var wg sync.WaitGroup
			for i, p := range procs {
				wg.Go(func() { errs[i] = p.ask("return", crowdOptions{File: file("returned", i)}, &back[i]) })
			}
			theirs, err = w.again(theirs)
			began := time.Now()
			wg.Wait()
			took = time.Since(began)
			return errors.Join(append(errs, err)...)
		},
		heal: func(*cluster) error { return theirs.ask("settle", nil, &full) },
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.onlyRefusedWhenFull(o, c.servers[0].config.Name)
	p99 := func(from, to time.Time) float64 {
		s := o.between(from, to, nil)
		return float64(max(1, s.at(0.99)))
	}
	r.fact("p99 during, compared with before", p99(o.fault, o.heal)/p99(o.began, o.fault), "times")
	var all returned
	for _, b := range back {
		all.Away += b.Away
		all.Failed += b.Failed
		if b.Away > 0 {
			r.Errors = append(r.Errors, "a client is not back: "+b.Trouble)
		}
	}
	n := crowds * each
	r.fact("clients that lost their server", float64(n), "")
	r.fact("calls of theirs that failed until then", float64(all.Failed), "")
	r.none(fmt.Sprintf("clients that were not back after %v", bound), all.Away)
	r.within("all back after", took, time.Minute, all.Away == 0)
	r.timed("connections that stand", float64(full.Conns), "", fmt.Sprint(n), full.Conns == n)
	r.fact("memory of their server, each", float64(full.Resident-before.Resident)/float64(n)/1024, "KiB")
	if full.Peak > 0 {
		r.fact("at its peak, each", float64(full.Peak-before.Resident)/float64(n)/1024, "KiB")
	}
	return r, nil
}

// roomOfServer is how many calls a server has in flight at most (anser.MaxInFlight).
const roomOfServer = 10_000

// onlyRefusedWhenFull promises that calls failed only if the server refused them as full. While a
// server gets less of the processor than its calls need, they pile up by the difference, in an open
// loop without a bound: what comes at the limit must be refused. More calls are open than are in
// flight at the server, so a call that was refused while fewer were open was refused wrongly.
func (r *result) onlyRefusedWhenFull(o *observation, server string) {
	refused := o.failed(is(ledger.Refused))
	open := o.opened()
	wrong := count(refused, func(c *ledger.Call) bool { return open.most(c.Began, c.Ended) <= roomOfServer })
	last := o.heal
	for i := range refused {
		if at := time.Unix(0, refused[i].Ended); at.After(last) {
			last = at
		}
	}
	executed := 0
	for i := range o.executions {
		if e := &o.executions[i]; e.Server == server && e.At >= o.fault.UnixNano() && e.At < o.heal.UnixNano() {
			executed++
		}
	}
	during := o.heal.Sub(o.fault).Seconds()
	r.noFailures("failed calls that were not refused", len(o.failed(nil))-len(refused), o)
	r.none(fmt.Sprintf("calls that were refused while at most %d were open", roomOfServer), wrong)
	r.noFailures("calls that were refused before the fault", count(refused, func(c *ledger.Call) bool { return c.Ended < o.fault.UnixNano() }), o)
	r.within("no call was refused any more, after all were back", last.Sub(o.heal), 5*time.Second, true)
	r.fact("calls that were refused", float64(len(refused)), "")
	r.fact("of these, idempotent", float64(count(refused, idempotent)), "")
	r.fact("calls open at a time, at most", float64(open.most(o.began.UnixNano(), o.end.UnixNano())), "")
	r.fact("calls due during", float64(o.between(o.fault, o.heal, nil).calls)/during, "calls/s")
	r.fact("calls executed during", float64(executed)/during, "calls/s")
	r.fact("that lasted", during, "s")
}
