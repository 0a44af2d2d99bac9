package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// crowdRows are those in which many clients want the same at once.
func crowdRows() []row {
	return []row{{
		name: "reconnect", fault: "5,000 clients lose their server, which restarts, and all reconnect at once", run: reconnect,
		bar: "all reconnect within 60 s, none is refused permanently; 0 failed calls elsewhere",
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
	r.allSucceeded(o)
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
