package collect

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

// Processes take turns, so that the services pay for pagesPerSecond pages in a second while a
// viewer looks, and for no more than their budget; and each is read at least every [Slowest]. Those
// of a service that a viewer sees in detail take turns for the budget alone, and those of a service
// that has changed, or whose canary runs, take none.
const (
	pagesPerSecond = 200
	// Slowest is the longest time between two readings of a page while a viewer looks.
	Slowest = 5 * time.Second

	maxDetailed = 64 // services
	maxAttended = 8
	// calmFor is how long the end of a connection to a host says nothing, after one with which the
	// process had not ended: some servers end the connection with each answer.
	calmFor = time.Minute
)

// turns returns the number of turns for n processes, of which each has its page read in one, if
// there is one in each period.
func turns(n int, period time.Duration) int {
	each := int(pagesPerSecond * period / time.Second)
	return min(max((n+each-1)/each, 1), int(Slowest/period))
}

// detailed has the services that viewers see in detail, with the end of their interest. Its
// methods are safe for concurrent use. The zero value is ready.
type detailed struct {
	mu    sync.Mutex // guards the field below
	until map[string]time.Time
}

// add notes the interest in a service, unless there are too many.
func (d *detailed) add(service string, until time.Time, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil {
		d.until = make(map[string]time.Time)
	}
	if old, ok := d.until[service]; ok && old.After(until) || !ok && len(d.until) >= most {
		return
	}
	d.until[service] = until
}

// now returns the services that are seen now.
func (d *detailed) now(now time.Time) map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]bool, len(d.until))
	for service, until := range d.until {
		if until.Before(now) {
			delete(d.until, service)
			continue
		}
		out[service] = true
	}
	return out
}

// due returns the processes whose pages are read in this round, those first that were not asked
// for the longest time. In a round that is not a regular one only those are read that may have
// changed.
func (c *Collector) due(list []*process, now time.Time, regular bool) []*process {
	lost, seen, always := c.lost.take(), c.detailed.now(now), c.attended.now(now)
	in := func(p *process, services map[string]bool) bool {
		return slices.ContainsFunc(p.found, func(at Place) bool { return services[at.Service] })
	}
	for _, p := range list {
		p.view.Found, p.lost, p.detailed = p.found, lost[p.host], in(p, seen)
	}
	if regular {
		c.turn++
		if c.plan.others == 0 || c.Looking() != c.budget.watched {
			c.decide(list, now)
		}
		for _, s := range c.stores {
			if c.plan.sparing() && c.turn%2 == 0 {
				signal(s.asked) // with the readings, as it takes less than to wake for each
			}
		}
	}
	takesTurn := func(p *process) bool {
		every := c.plan.others
		if p.detailed {
			every = c.plan.detailed
		}
		return regular && (every == 1 || c.turn%every == p.slot%every || now.Sub(p.asked) > time.Duration(every)*c.plan.period+Watched/2)
	}
	c.soon = false
	due := make([]*process, 0, len(list))
	for _, p := range list {
		// A page that is read for the first time is read again at once, for its first figures.
		soon := p.view.Window == 0 && p.view.Error == "" || in(p, always)
		c.soon = c.soon || soon
		switch {
		case now.Before(p.after): // it does not answer
		case soon, p.lost, p.view.Error != "", takesTurn(p):
			due = append(due, p)
		}
	}
	slices.SortStableFunc(due, func(a, b *process) int { return a.asked.Compare(b.asked) })
	return due
}

// decide decides how often processes are read from now on.
func (c *Collector) decide(list []*process, now time.Time) {
	detailed := 0
	for _, p := range list {
		if p.detailed {
			detailed++
		}
	}
	c.budget.look(now, c.Reads(), c.Looking())
	c.plan = c.budget.plan(now, len(list), detailed, processors(list))
	if c.sparing.Swap(c.plan.sparing()) != c.plan.sparing() {
		for _, s := range c.stores {
			signal(s.wake)
		}
	}
}

// pause returns the time between two regular rounds.
func (c *Collector) pause() time.Duration {
	if !c.Looking() {
		return Unwatched
	}
	if c.soon || !c.budget.watched {
		return Watched
	}
	return c.plan.period
}

// lostHosts are the hosts, with their ports, that have closed a connection: their processes may
// have ended, so that their pages are read within a second. Its methods are safe for concurrent
// use. The zero value is ready.
type lostHosts struct {
	told func() // is called after each one; nil: nothing is

	mu    sync.Mutex // guards the fields below
	hosts map[string]bool
	calm  map[string]time.Time // until when a host is not noted
}

func (l *lostHosts) add(host string) {
	if l.note(host, time.Now()) && l.told != nil {
		l.told()
	}
}

func (l *lostHosts) note(host string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until, ok := l.calm[host]; ok && now.Before(until) {
		return false
	}
	delete(l.calm, host)
	if l.hosts == nil {
		l.hosts = make(map[string]bool)
	}
	l.hosts[host] = true
	return true
}

// answered notes that the process of a host that was noted has not ended.
func (l *lostHosts) answered(host string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.calm, func(_ string, until time.Time) bool { return until.Before(now) })
	if l.calm == nil {
		l.calm = make(map[string]time.Time)
	}
	l.calm[host] = now.Add(calmFor)
}

func (l *lostHosts) take() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.hosts
	l.hosts = nil
	return out
}

// dial returns a connection that notes its host if the host closes it. It is read all the time:
// http.Transport waits for the end of connections that it keeps.
func (l *lostHosts) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &watchedConn{c, l, address}, nil
}

type watchedConn struct {
	net.Conn
	lost *lostHosts
	host string
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.lost.add(c.host)
	}
	return n, err
}

// hostOf returns the host of a page with its port, as it is dialed.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}
