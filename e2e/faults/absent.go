package main

import (
	"strings"
	"time"
)

// absentOptions say for which server a client waits until it gives it no calls any more.
type absentOptions struct {
	Address string
	Since   time.Time
	Within  time.Duration
}

// absence is when a client stopped giving calls to a server.
type absence struct {
	Seen  bool // false: not in time
	After time.Duration
}

// absentPoll is how often a client looks. There may be 64 of them on two processors.
const absentPoll = 20 * time.Millisecond

// absent waits until the client gives a server no calls any more.
func (s *client) absent(o absentOptions) absence {
	for {
		st := s.status()
		if after, ok := st.absent(o.Address, o.Since, time.Now()); ok {
			return absence{true, after}
		}
		if time.Since(o.Since) >= o.Within {
			return absence{}
		}
		time.Sleep(absentPoll)
	}
}

// absent returns how long after a moment the client stopped giving calls to a server; false: it
// has not.
func (s *status) absent(address string, since, now time.Time) (time.Duration, bool) {
	for _, e := range s.Events {
		if e.Address == address && strings.Contains(e.Change, "ejected") && e.At.After(since) {
			return e.At.Sub(since), true
		}
	}
	for _, in := range s.Instances {
		if in.Address == address && !in.Down && in.Ejected == "" && in.Connected {
			return 0, false
		}
	}
	return now.Sub(since), true
}

// outOfUse waits until no client gives calls to a server any more, and returns how long after a
// moment the last client stopped; false: not within most.
func (c *cluster) outOfUse(p *process, since time.Time, most time.Duration) (time.Duration, bool, error) {
	in := make([]absentOptions, len(c.clients()))
	for i := range in {
		in[i] = absentOptions{p.config.Listen, since, most}
	}
	all, err := ask[absentOptions, absence](c, "absent", in)
	after, seen := latest(all)
	return after, seen, err
}

// latest returns the longest of all; false: one of them never came.
func latest(all []absence) (after time.Duration, seen bool) {
	seen = true
	for _, a := range all {
		after, seen = max(after, a.After), seen && a.Seen
	}
	return after, seen
}
