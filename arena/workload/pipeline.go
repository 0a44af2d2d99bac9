package workload

import (
	"context"
	"time"
)

// flight is a call that was started and whose reply is not awaited yet.
type flight struct {
	began time.Duration
	wait  func() error
}

// pipeline is one caller that keeps Window calls in flight from one goroutine. It waits for the
// oldest, like a caller with a list of futures, so a reply that overtakes another is noticed, and
// its latency ends, when the other one has arrived.
func (r *run) pipeline(ctx context.Context, start Start, t *tally, s *shard) {
	ring := make([]flight, r.o.Window)
	oldest, flying := 0, 0
	for now := r.now(); ; {
		for flying < len(ring) && r.goesOn(ctx, now) {
			ring[(oldest+flying)%len(ring)] = flight{now, start(context.Background())}
			flying++
			now = r.now()
		}
		if flying == 0 {
			return
		}
		f := &ring[oldest]
		err := f.wait()
		now = r.now()
		r.count(t, s, f.began, now, err)
		f.wait = nil // it may hold the reply
		oldest, flying = (oldest+1)%len(ring), flying-1
		if pause(err) {
			now = r.now()
		}
	}
}
