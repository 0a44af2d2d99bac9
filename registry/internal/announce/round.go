package announce

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// run makes the server have what is wanted until the Announcer is closed.
func (a *Announcer) run() {
	defer close(a.done)
	a.renewAt = time.Now().Add(a.Every)
	var delay Delay
	for {
		err := a.round()
		if a.ctx.Err() != nil {
			return
		}
		a.note(err)
		if err != nil {
			// New wishes wait as well: they would fail for the same reason.
			select {
			case <-a.ctx.Done():
			case <-a.hurry:
			case <-time.After(delay.Next()):
			}
			continue
		}
		delay = Delay{}
		select {
		case <-a.ctx.Done():
		case <-a.kick:
		case <-a.hurry:
		case <-time.After(time.Until(a.renewAt)):
		}
	}
}

// round gives signs of life where they are due, and writes what differs.
func (a *Announcer) round() error {
	fresh, err := a.Store.Begin(a.ctx)
	if err != nil {
		return err
	}
	if fresh {
		a.markAll()
	}
	// Wishes that come in during a write go into the next turn, but signs of life come first.
	for {
		if !time.Now().Before(a.renewAt) {
			if err := a.renew(); err != nil {
				return err
			}
			a.renewAt = time.Now().Add(a.Every)
		}
		batch := a.nextBatch()
		if len(batch) == 0 {
			return nil
		}
		if err := each(a.ctx, batch, a.write); err != nil {
			return err
		}
	}
}

// markAll has every record written again.
func (a *Announcer) markAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.records {
		a.dirty[key] = true
	}
}

// job is one record as it is to be written or renewed.
type job struct {
	key     string
	in      *registry.Instance
	force   bool
	version int
}

// renew gives signs of life for all records that should be there, and marks those that the server does not have.
func (a *Announcer) renew() error {
	a.mu.Lock()
	var jobs []job
	for key, r := range a.records {
		if r.want != nil && !a.dirty[key] {
			jobs = append(jobs, job{key: key, in: r.want})
		}
	}
	a.mu.Unlock()
	return each(a.ctx, jobs, func(j job) error {
		ok, err := a.Store.Renew(a.ctx, j.key, j.in)
		if err != nil || ok {
			return err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.records[j.key] != nil {
			a.Log.Warn("the registry has lost an instance; registering again", "key", j.key)
			a.dirty[j.key] = true
		}
		return nil
	})
}

// batchSize bounds how long signs of life wait for writes.
const batchSize = 64

func (a *Announcer) nextBatch() []job {
	a.mu.Lock()
	defer a.mu.Unlock()
	var batch []job
	for key := range a.dirty {
		r := a.records[key]
		if r == nil {
			delete(a.dirty, key)
			continue
		}
		batch = append(batch, job{key, r.want, r.force, r.version})
		if len(batch) == batchSize {
			break
		}
	}
	return batch
}

// write writes one record and settles what came of it. A record that the server does not take is no error.
func (a *Announcer) write(j job) error {
	taken, err := a.Store.Write(a.ctx, j.key, j.in, j.force)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.settleLocked(j, taken)
		return nil
	case a.ctx.Err() != nil || !a.Hopeless(err):
		return err
	}
	r := a.records[j.key]
	if len(r.waiters) == 0 {
		a.Log.Warn("the registry refuses an instance that it had", "key", j.key, "error", err)
	}
	if r.version == j.version {
		delete(a.dirty, j.key) // the next sign of life finds it missing
	}
	a.refuseLocked(j.key, r, j.version, err)
	return nil
}

// settleLocked notes that the server has what was written.
func (a *Announcer) settleLocked(j job, taken bool) {
	r := a.records[j.key]
	r.have = j.in
	if taken {
		r.have = nil
	}
	r.finishLocked(j.version, nil)
	if r.version != j.version {
		return // something else is wanted by now
	}
	if taken && j.in != nil {
		// To write it again whenever the key is free would bring the old record back in the moment in which
		// the new owner has lost its session.
		a.Log.Info("another process has taken an instance over", "key", j.key)
		r.want = nil
	}
	r.force = false
	delete(a.dirty, j.key)
	if r.want == nil {
		delete(a.records, j.key)
	}
}

// note keeps the reason of a failure for callers that give up, and logs where an outage begins and ends: nobody
// may be waiting. What trying again cannot mend goes to those who wait.
func (a *Announcer) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.trouble
	a.trouble = err
	switch {
	case err != nil && before == nil:
		a.Log.Warn("the registry cannot be reached; instances stay announced until it drops them", "error", err)
	case err == nil && before != nil:
		a.Log.Info("the registry is back, and has all instances")
	}
	if err != nil && a.Hopeless(err) {
		for key, r := range a.records {
			a.refuseLocked(key, r, r.version, err)
		}
	}
}

// refuseLocked gives up a version that the server does not take. What callers have just asked for is forgotten;
// what had been there before stays wanted.
func (a *Announcer) refuseLocked(key string, r *record, version int, err error) {
	r.finishLocked(version, err)
	if r.version != version || !r.force {
		return
	}
	r.want, r.force = r.have, false
	if r.want == nil {
		delete(a.records, key)
		delete(a.dirty, key)
	}
}

// each calls f for all jobs, some at once, and returns the first error; jobs that had not begun by then are left.
func each(ctx context.Context, jobs []job, f func(job) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan job)
	var wg sync.WaitGroup
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			for j := range work {
				if err := f(j); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for _, j := range jobs {
		select {
		case work <- j:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}

// Delay is the pause before something is tried again: 50 ms and growing, at most 1 s, with jitter so that a
// thousand processes do not come back at once. The zero value is ready.
type Delay struct{ n int }

// Next returns the next pause.
func (d *Delay) Next() time.Duration {
	d.n++
	full := min(50*time.Millisecond<<min(d.n-1, 10), time.Second)
	return full/2 + rand.N(full/2)
}

// Sleep waits for the next pause, or until ctx is done.
func (d *Delay) Sleep(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(d.Next()):
	}
}
