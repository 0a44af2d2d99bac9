package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// A Bank keeps buckets for all instances of a service; package redis has one. It is safe for
// concurrent use.
type Bank interface {
	// Withdraw first subtracts spent tokens, which have already been used, from the bucket, even
	// below zero; then it takes up to want of the remaining ones, and returns their number. If
	// there are none, it returns how long it takes until there is one. A new bucket is full.
	Withdraw(ctx context.Context, bucket string, r Rate, spent, want int) (given int, wait time.Duration, err error)
}

// bucket is one limit. Without a bank it is this instance's share of it.
//
// With a bank, calls are paid with tokens that were withdrawn before. If there are none, a
// withdrawal is made in the background, and until its answer arrives calls are paid from the local
// share. That is a debt settled by the next withdrawal, so in the long run no more calls are
// admitted than the limit allows.
type bucket struct {
	l       *Limiter
	name    string // name in the bank
	whose   string // subject of the limit, for the error
	option  string
	r       Rate
	refused *atomic.Int64

	mu       sync.Mutex // guards the fields below
	local    *rate.Limiter
	shares   int64 // the local rate is divided by this number
	stock    int
	debt     int
	chunk    int       // tokens of the next withdrawal
	denied   time.Time // until then the bank has no tokens
	asking   bool
	failures int
	retry    time.Time // the bank is not asked before
	stocked  time.Time
}

const (
	askTimeout = 500 * time.Millisecond // of a withdrawal
	firstRest  = 100 * time.Millisecond // backoff after a failure, doubling
	maxRest    = 5 * time.Second
	stockLife  = time.Second // unused tokens expire: the bank has refilled the bucket since
)

func (l *Limiter) newBucket(name, whose, option string, r Rate) *bucket {
	b := &bucket{l: l, name: name, whose: whose, option: option, r: r, refused: new(atomic.Int64), chunk: 1}
	b.divideLocked()
	return b
}

// divideLocked sets the local limiter to this instance's share.
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

// take takes a token, or returns why there is none.
func (b *bucket) take(now time.Time) *anser.Error {
	b.mu.Lock()
	wait := b.takeLocked(now)
	b.mu.Unlock()
	if wait == 0 {
		return nil
	}
	b.refused.Add(1)
	return anser.Refuse(anser.ResourceExhausted, "over the limit of %v calls per second with bursts of %d for %s (ratelimit.%s)", b.r.PerSecond, b.r.Burst, b.whose, b.option).WithRetryAfter(wait)
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

// askLocked starts a withdrawal, unless one is in progress or the bank failed a moment ago.
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
	b.l.noteBank(b.name, err) // before the lock, as calls must not wait for the log
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asking = false
	if err != nil {
		b.l.alone.Add(1)
		b.debt = 0 // an unconfirmed settlement is dropped: only the local share applies now
		b.retry = now.Add(min(firstRest<<min(b.failures, 10), maxRest))
		b.failures++
		return
	}
	b.l.banking.Add(1)
	b.failures, b.retry = 0, time.Time{}
	b.debt = max(b.debt-spent, 0)
	b.stock += given
	b.stocked = now
	if given == 0 {
		b.denied, b.chunk = now.Add(max(wait, time.Millisecond)), max(b.chunk/2, 1)
		if spent := b.debt; spent > 0 { // no withdrawal is made while the bank is empty, but it must know the debt
			b.asking = b.l.spawn(func() { b.withdraw(spent, 0) })
		}
		return
	}
	// If all tokens are used at once, the next withdrawal takes more, up to a tenth of the limit.
	if given == want {
		b.chunk = max(1, min(2*b.chunk, b.r.Burst/10))
	}
}

// noteBank logs the first failure of the bank and its return, for all buckets together: there may
// be one per caller. Of a bank that fails now and then it logs a failure and a return a minute.
func (l *Limiter) noteBank(bucket string, err error) {
	l.bank.mu.Lock()
	defer l.bank.mu.Unlock()
	switch {
	case l.ctx.Err() != nil:
	case err == nil && l.bank.gone:
		l.bank.gone = false
		l.o.log.Info("the bank of the rate limits answers again", "bucket", bucket)
	case err != nil && !l.bank.gone:
		if n := l.bank.failed.Note(mono.Now()); n > 0 {
			l.bank.gone = true
			l.o.log.Warn("the bank of the rate limits does not answer: this instance has its share of them",
				"bucket", bucket, "instances", l.instances.Load(), "failures", n, "err", err)
		}
	}
}

// found updates the number of instances of the service.
func (l *Limiter) found(list []registry.Instance) {
	n := 0
	for _, in := range list {
		if in.State == registry.Up {
			n++
		}
	}
	if n == 0 { // this instance is serving, so the registry's list is incomplete
		n = l.o.instances
	}
	l.instances.Store(int64(n))
}
