package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anser-rpc/anser"
)

// The delay before a transfer retries, which doubles while no byte is transferred.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// persistence decides whether a transfer is retried.
type persistence struct {
	patience time.Duration
	begun    bool // the server has answered
	breaks   int
	pause    time.Duration
	since    time.Time // time of the last progress
}

// moved is called when bytes were transferred.
func (p *persistence) moved() { p.pause, p.since = 0, time.Time{} }

// again waits before another attempt after err, or returns the error of the transfer.
func (p *persistence) again(ctx context.Context, err error) error {
	e, ok := errors.AsType[*anser.Error](err)
	if !ok || !p.retries(e) || ctx.Err() != nil {
		return err
	}
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	if p.patience > 0 && now.Sub(p.since) >= p.patience {
		return err
	}
	p.pause = min(max(2*p.pause, firstPause), lastPause)
	timer := time.NewTimer(max(p.pause/2+rand.N(p.pause/2), e.RetryAfter))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w; before that: %w", context.Cause(ctx), err)
	case <-timer.C:
	}
	p.breaks++
	return nil
}

// retries reports whether an attempt with this error should be retried: the connection broke, or
// the server asks for it.
func (p *persistence) retries(e *anser.Error) bool {
	if e.RetryAfter != 0 {
		return e.RetryAfter > 0
	}
	if !p.begun {
		return false
	}
	// While the context lives, an expired deadline is that of opening the stream.
	return e.Code == anser.Unavailable || e.Code == anser.DeadlineExceeded && !e.Remote
}
