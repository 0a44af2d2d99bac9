package workload

import (
	"context"
	"time"
)

// flight is a call that was started and whose reply nobody has waited for.
type flight struct {
	began time.Duration
	wait  func() error
}

// pipeline is one caller who keeps Window calls in flight from one goroutine. It waits for the oldest,
// as one who holds a list of futures does, so a reply that overtakes another is seen, and its latency
// ends, when the other is there.
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
