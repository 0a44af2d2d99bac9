package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

const (
	ejectBound   = 7 * time.Second // the timeout of waiting calls is 10 s
	restoreBound = 10 * time.Second
	answerBound  = time.Second
	ejectedHold  = time.Second // at most
)

// stepFreeze pauses the process of an instance, whose connections stay open, until the callers'
// client has ejected it, and resumes it.
func (d *demo) stepFreeze(ctx context.Context, in *instance) (string, error) {
	changes, stop := d.health.follow(in.id)
	defer stop()
	d.figures.forgetLongest()
	process, address := d.fleet.mark(in, frozen)
	if err := process.Pause(); err != nil {
		return "", err
	}
	began := time.Now()
	d.tell(Event{"frozen", in.id, fmt.Sprintf("SIGSTOP to process %d at %s", process.PID(), address)})
	out, ejectedAt := await(ctx, changes, anser.InstanceEjected, ejectBound)
	if out {
		d.fleet.mark(in, ejected)
		wait(ctx, min(d.hold(), ejectedHold))
	}
	if err := process.Resume(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return "", err
	}
	resumed := time.Now()
	d.tell(Event{"resumed", in.id, fmt.Sprintf("SIGCONT to process %d", process.PID())})
	back, restoredAt := false, time.Time{}
	if out {
		back, restoredAt = await(ctx, changes, anser.InstanceRestored, restoreBound)
	}
	d.waitAnswered(ctx, in)
	d.fleet.mark(in, up)
	var showed []string
	switch {
	case !out:
		showed = append(showed, "not ejected within "+table.Duration(ejectBound)+", as no call waited for it")
	case !back:
		showed = append(showed, "ejected after "+table.Duration(ejectedAt.Sub(began)), "not back "+table.Duration(restoreBound)+" after it was resumed")
	default:
		showed = append(showed, "ejected after "+table.Duration(ejectedAt.Sub(began)), "back "+table.Duration(restoredAt.Sub(resumed))+" after it was resumed")
	}
	showed = append(showed, "the call that waited longest took "+table.Duration(d.figures.longest()))
	return strings.Join(showed, ", "), nil
}

// waitAnswered waits until the calls that waited for the instance have ended: until there is a
// moment without any. With callers that never pause there is none, but by then their old calls
// have ended, too.
func (d *demo) waitAnswered(ctx context.Context, in *instance) {
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	client := d.traffic.clients[in.service]
	poll(ctx, func() bool {
		for _, s := range client.Status().Instances {
			if s.Key() == in.id {
				return s.Active == 0
			}
		}
		return true
	})
}

// change is a health change of an instance at the callers' client.
type change struct {
	what anser.HealthChange
	at   time.Time
}

// await waits for a change, and reports whether and when it happened.
func await(ctx context.Context, changes <-chan change, what anser.HealthChange, bound time.Duration) (bool, time.Time) {
	late := time.NewTimer(bound)
	defer late.Stop()
	for {
		select {
		case c := <-changes:
			if c.what == what {
				return true, c.at
			}
		case <-late.C:
			return false, time.Time{}
		case <-ctx.Done():
			return false, time.Time{}
		}
	}
}

// health forwards the health changes of instances at the callers' clients. Its methods are safe
// for concurrent use.
type health struct {
	tell func(Event)

	mu       sync.Mutex // guards the fields below
	id       string     // the followed instance
	followed chan change
}

// follow returns the changes of an instance from now on. There can be only one follower until stop
// is called.
func (h *health) follow(id string) (changes <-chan change, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id, h.followed = id, make(chan change, 16)
	return h.followed, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.id, h.followed = "", nil
	}
}

// heard is the callback for anser.Observer.
func (h *health) heard(e anser.HealthEvent) {
	at := time.Now()
	switch e.Change {
	case anser.InstanceEjected:
		h.tell(Event{"ejected", e.Instance.ID, "by the client: " + e.Reason})
	case anser.InstanceRestored:
		h.tell(Event{"restored", e.Instance.ID, "by the client: " + e.Reason})
	default:
		h.tell(Event{"breaker", e.Instance.ID, e.Change.String() + " for " + e.Method + ": " + e.Reason})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.id == e.Instance.ID && h.followed != nil {
		select {
		case h.followed <- change{e.Change, at}:
		default: // the follower no longer reads
		}
	}
}
