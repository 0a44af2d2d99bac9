package announce

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// run makes the server match the wanted records until the Announcer is closed.
func (a *Announcer) run() {
	a.renewAt = time.Now().Add(a.Every)
	var delay upkeep.Delay
	for {
		err := a.round()
		if a.ctx.Err() != nil {
			return
		}
		a.ledger.Note(err)
		if err != nil {
			// New wishes wait, too: they would fail for the same reason.
			delay.Wait(a.ctx, a.hurry)
			continue
		}
		delay = upkeep.Delay{}
		select {
		case <-a.ctx.Done():
		case <-a.ledger.Kick():
		case <-a.hurry:
		case <-time.After(time.Until(a.renewAt)):
		}
	}
}

// round sends the heartbeats that are due, and writes what differs.
func (a *Announcer) round() error {
	fresh, err := a.Store.Begin(a.ctx)
	if err != nil {
		return err
	}
	if fresh {
		a.ledger.MarkAll()
	}
	// Wishes that arrive during a write belong to the next batch, but heartbeats come first.
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

// renew sends heartbeats for all wanted records, and marks the records that the server does not
// have.
func (a *Announcer) renew() error {
	return each(a.ctx, slices.Collect(a.ledger.Kept()), func(w wish) error {
		ok, err := a.Store.Renew(a.ctx, w.Key, w.Want)
		if err != nil || ok {
			return err
		}
		a.Log.Warn("the registry has lost an instance; registering again", "key", w.Key)
		a.ledger.Mark(w.Key)
		return nil
	})
}

// batchSize bounds how long heartbeats wait for writes.
const batchSize = 64

func (a *Announcer) nextBatch() (batch []wish) {
	for w := range a.ledger.Due() {
		if batch = append(batch, w); len(batch) == batchSize {
			break
		}
	}
	return batch
}

// write writes one record and settles the result. A record that the server rejects is not an error:
// the next heartbeat finds it missing.
func (a *Announcer) write(w wish) error {
	taken, err := a.Store.Write(a.ctx, w.Key, w.Want, w.Force)
	switch {
	case err == nil:
		a.ledger.Settle(w, taken)
	case a.ctx.Err() != nil || !a.Hopeless(err):
		return err
	default:
		a.ledger.Refuse(w, err)
	}
	return nil
}

// each calls f for all wishes, some of them concurrently, and returns the first error; wishes that
// have not begun by then are skipped.
func each(ctx context.Context, wishes []wish, f func(wish) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan wish)
	var wg sync.WaitGroup
	for range min(workers, len(wishes)) {
		wg.Go(func() {
			for w := range work {
				if err := f(w); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for _, w := range wishes {
		select {
		case work <- w:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}
