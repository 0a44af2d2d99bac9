package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// enlist starts client processes like the first one until there are as many as the options say.
// Rows whose fault concerns a single connection do without.
func (c *cluster) enlist() error {
	n := min(cmp.Or(c.o.Clients, 1), callers) - 1
	if n <= 0 {
		return nil
	}
	like := c.client.config
	like.Registry = "" // the first one watches the list for all
	others, err := c.startMany(c.client.role, c.client.name, like, n)
	c.others = append(c.others, others...)
	return err
}

// startMany starts n equal processes on the host of the name, a few at a time.
func (w *world) startMany(role, name string, c config, n int) ([]*process, error) {
	h, err := w.host(name)
	if err != nil {
		return nil, err
	}
	procs, errs := make([]*process, n), make([]error, n)
	slots := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for i := range n {
		c := c
		c.Name, c.Short = fmt.Sprintf("%s-%d", name, len(w.procs)+i), !w.o.Long
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if errs[i] = w.ctx.Err(); errs[i] == nil {
				procs[i], errs[i] = start(name, role, h, c)
			}
		})
	}
	wg.Wait()
	procs = slices.DeleteFunc(procs, func(p *process) bool { return p == nil })
	w.procs = append(w.procs, procs...)
	return procs, errors.Join(errs...)
}

// clients returns all processes that make the load.
func (c *cluster) clients() []*process { return append([]*process{c.client}, c.others...) }

// part is what one of the client processes contributes to the load.
type part struct {
	Callers int
	Share   float64 // of the rate
	Offset  float64 // of its first call, as a part of the time between the calls of two of its callers
}

// split distributes callers over at most n processes. Processes that would have no caller are left
// out.
func split(callers, n int) []part {
	n = max(1, min(n, callers))
	parts := make([]part, n)
	for i := range parts {
		of := callers / n
		if i < callers%n {
			of++
		}
		parts[i] = part{Callers: of, Share: float64(of) / float64(callers), Offset: float64(i) / float64(n)}
	}
	return parts
}

// ask has the first client processes do something, one for each value of in, all at once, and
// returns their answers.
func ask[In, Out any](c *cluster, do string, in []In) ([]Out, error) {
	procs := c.clients()[:len(in)]
	out, errs := make([]Out, len(in)), make([]error, len(in))
	var wg sync.WaitGroup
	for i, p := range procs {
		wg.Go(func() { errs[i] = p.ask(do, in[i], &out[i]) })
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// file returns the name of a new file for the calls that a client process makes. The ledger is
// joined with it.
func (c *cluster) file() string {
	name := filepath.Join(c.dir, fmt.Sprintf("calls%d.calls", len(c.files)))
	c.files = append(c.files, name)
	return name
}

// measure returns how many calls per second succeed when each caller makes one call after the
// other.
func (c *cluster) measure(callers int, lasts time.Duration) (float64, error) {
	parts := split(callers, len(c.clients()))
	in := make([]measureOptions, len(parts))
	for i, p := range parts {
		in[i] = measureOptions{Callers: p.Callers, Seconds: lasts.Seconds(), File: c.file()}
	}
	rates, err := ask[measureOptions, float64](c, "measure", in)
	sum := 0.0
	for _, rate := range rates {
		sum += rate
	}
	return sum, err
}

// begin begins a load of all client processes together.
func (c *cluster) begin(o loadOptions) error {
	c.parts = split(o.Callers, len(c.clients()))
	in := make([]loadOptions, len(c.parts))
	for i, p := range c.parts {
		in[i] = loadOptions{
			Callers: p.Callers, Rate: o.Rate * p.Share, Again: o.Again, Offset: p.Offset,
			Open: max(1, cmp.Or(o.Open, maxOpen)/len(c.parts)),
		}
	}
	_, err := ask[loadOptions, any](c, "load", in)
	return err
}

// setRate changes the rate of the load.
func (c *cluster) setRate(rate float64) error {
	in := make([]float64, len(c.parts))
	for i, p := range c.parts {
		in[i] = rate * p.Share
	}
	_, err := ask[float64, any](c, "rate", in)
	return err
}

// end ends the load and returns what it was, and the files of its calls.
func (c *cluster) end() (loaded, []string, error) {
	files := make([]string, len(c.parts))
	for i := range files {
		files[i] = c.file()
	}
	all, err := ask[string, loaded](c, "stop", files)
	return merge(all), files, err
}

// merge adds up what the parts of a load answered. Of errors of the same kind the first one is
// kept.
func merge(all []loaded) (out loaded) {
	kinds := make(map[string]sample)
	for _, l := range all {
		out.Calls += l.Calls
		out.Paused = max(out.Paused, l.Paused)
		for _, s := range l.Samples {
			if old, ok := kinds[s.Kind]; ok {
				count := old.Count + s.Count
				if old.At.Before(s.At) {
					s = old
				}
				s.Count = count
			}
			kinds[s.Kind] = s
		}
	}
	for _, s := range kinds {
		out.Samples = append(out.Samples, s)
	}
	slices.SortFunc(out.Samples, func(a, b sample) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Kind, b.Kind))
	})
	return out
}

// used returns what all client processes have done.
func (c *cluster) used() (sum usage, err error) {
	all, err := ask[struct{}, usage](c, "usage", make([]struct{}, len(c.clients())))
	for _, u := range all {
		sum.CPU += u.CPU
		sum.Attempts += u.Attempts
		sum.Calls += u.Calls
		sum.Succeeded += u.Succeeded
	}
	return sum, err
}

// readCalls returns the calls of all files.
func readCalls(files []string) (all []ledger.Call, err error) {
	for _, file := range files {
		calls, err := ledger.ReadCalls(file)
		if err != nil {
			return nil, err
		}
		all = append(all, calls...)
	}
	return all, nil
}
