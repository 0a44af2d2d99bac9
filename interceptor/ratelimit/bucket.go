package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// A Bank keeps buckets for all instances of a service together; package redis has one. It is safe for
// concurrent use.
type Bank interface {
	// Withdraw takes spent tokens from the bucket, which were used already, even if they are not there; then it
	// takes up to want of those that are left, and returns how many. If there are none, it returns how long
	// it takes until there is one. A new bucket is full.
	Withdraw(ctx context.Context, bucket string, r Rate, spent, want int) (given int, wait time.Duration, err error)
}

// bucket is one limit. Without a bank it is this instance's share of it.
//
// With a bank, calls are paid with tokens that were withdrawn before. Where there are none, a withdrawal is made
// in the background, and until its answer comes calls are paid from the local share. That is a debt which the
// next withdrawal settles, so that over time no more calls run than the limit allows.
type bucket struct {
	l       *Limiter
	name    string // in the bank
	whose   string // for the error
	option  string
	r       Rate
	refused *atomic.Int64

	mu       sync.Mutex // guards what follows
	local    *rate.Limiter
	shares   int64 // by which the local rate is divided
	stock    int
	debt     int
	chunk    int       // tokens of the next withdrawal
	denied   time.Time // until then the bank has none
	asking   bool
	failures int
	retry    time.Time // the bank is left alone until then
	stocked  time.Time
}

const (
	askTimeout = 500 * time.Millisecond // of a withdrawal
	firstRest  = 100 * time.Millisecond // after a failure, doubling
	maxRest    = 5 * time.Second
	stockLife  = time.Second // tokens that were not used are void: the bank has refilled the bucket since
)

func (l *Limiter) newBucket(name, whose, option string, r Rate) *bucket {
	b := &bucket{l: l, name: name, whose: whose, option: option, r: r, refused: new(atomic.Int64), chunk: 1}
	b.divideLocked()
	return b
}

// divideLocked makes the local limiter that of this instance's share.
func (b *bucket) divideLocked() {
	n := b.l.instances.Load()
	if n == b.shares {
		return
	}
	b.shares = n
	perSecond, burst := rate.Limit(b.r.PerSecond/float64(n)), max(1, b.r.Burst/int(n))
	if b.local == nil {
		b.local = rate.NewLimiter(perSecond, burst) // full
		return
	}
	b.local.SetLimit(perSecond)
	b.local.SetBurst(burst)
}

// take takes a token, or says why there is none.
func (b *bucket) take(now time.Time) *anser.Error {
	b.mu.Lock()
	wait := b.takeLocked(now)
	b.mu.Unlock()
	if wait == 0 {
		return nil
	}
	b.refused.Add(1)
	return anser.Refuse(anser.ResourceExhausted, "over the limit of %v calls a second with bursts of %d for %s (ratelimit.%s)", b.r.PerSecond, b.r.Burst, b.whose, b.option).WithRetryAfter(wait)
}

// takeLocked returns 0, or how long it takes until there is a token.
func (b *bucket) takeLocked(now time.Time) time.Duration {
	b.divideLocked()
	if b.l.o.bank == nil {
		return b.shareLocked(now)
	}
	if b.stock > 0 && now.Sub(b.stocked) > stockLife {
		b.stock, b.chunk = 0, 1
	}
	if b.stock > 0 {
		b.stock--
		if b.stock < b.chunk/2 {
			b.askLocked(now)
		}
		return 0
	}
	if wait := b.denied.Sub(now); wait > 0 {
		return wait
	}
	b.askLocked(now)
	wait := b.shareLocked(now)
	if wait == 0 && b.failures == 0 {
		b.debt++
	}
	return wait
}

func (b *bucket) shareLocked(now time.Time) time.Duration {
	r := b.local.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// askLocked starts a withdrawal, unless there is one, or the bank failed a moment ago.
func (b *bucket) askLocked(now time.Time) {
	if b.asking || now.Before(b.retry) {
		return
	}
	spent, want := b.debt, b.chunk
	b.asking = b.l.spawn(func() { b.withdraw(spent, want) })
}

func (b *bucket) withdraw(spent, want int) {
	ctx, cancel := context.WithTimeout(b.l.ctx, askTimeout)
	defer cancel()
	given, wait, err := b.l.o.bank.Withdraw(ctx, b.name, b.r, spent, want)
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asking = false
	if err != nil {
		b.l.alone.Add(1)
		b.debt = 0 // what is not known to be settled is forgotten: the share holds alone now
		if b.failures == 0 && b.l.ctx.Err() == nil {
			b.l.o.log.Warn("the bank of the rate limits does not answer: this instance has its share of them", "bucket", b.name, "instances", b.shares, "err", err)
		}
		b.retry = now.Add(min(firstRest<<min(b.failures, 10), maxRest))
		b.failures++
		return
	}
	b.l.banking.Add(1)
	if b.failures > 0 {
		b.l.o.log.Info("the bank of the rate limits answers again", "bucket", b.name)
	}
	b.failures, b.retry = 0, time.Time{}
	b.debt = max(b.debt-spent, 0)
	b.stock += given
	b.stocked = now
	if given == 0 {
		b.denied, b.chunk = now.Add(max(wait, time.Millisecond)), max(b.chunk/2, 1)
		if spent := b.debt; spent > 0 { // nobody asks while the bank has none, and it has to know
			b.asking = b.l.spawn(func() { b.withdraw(spent, 0) })
		}
		return
	}
	// Those who use what they get at once get more the next time, up to a tenth of what there is.
	if given == want {
		b.chunk = max(1, min(2*b.chunk, b.r.Burst/10))
	}
}

// found notes the instances of the service.
func (l *Limiter) found(list []registry.Instance) {
	n := 0
	for _, in := range list {
		if in.State == registry.Up {
			n++
		}
	}
	if n == 0 { // this one serves, so it is the registry that does not know
		n = l.o.instances
	}
	l.instances.Store(int64(n))
}
