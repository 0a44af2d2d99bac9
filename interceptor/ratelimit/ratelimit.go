// Package ratelimit bounds the calls per second of a server: in total, per method, and per caller;
// on one instance, or on all instances of a service together.
//
// A call over a limit is refused with ResourceExhausted before it is decoded; the error contains
// the time until the next call is allowed. No call ever waits, neither for a token nor for a
// registry or a bank.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/loglimit"
)

// Rate is a token bucket: PerSecond calls per second on average, and up to Burst at once.
type Rate struct {
	PerSecond float64
	Burst     int
}

func (r Rate) check(name string) error {
	if !(r.PerSecond > 0) || math.IsInf(r.PerSecond, 0) || r.Burst < 1 {
		return fmt.Errorf("ratelimit.%s: %v calls per second with bursts of %d: want a rate above 0 and bursts of at least 1", name, r.PerSecond, r.Burst)
	}
	return nil
}

// Limiter holds the limits of a server. Create one with [New]. It is safe for concurrent use, and
// may be passed to several servers, which then share its limits.
type Limiter struct {
	o         options
	all       *bucket // nil means none
	methods   map[string]*bucket
	callers   *callers // nil means none
	instances atomic.Int64
	banking   atomic.Int64 // successful withdrawals
	alone     atomic.Int64 // failed withdrawals
	bank      bankLog
	stop      context.CancelFunc
	ctx       context.Context // of work in the background, until Close

	mu     sync.Mutex // guards closed, and orders background work before Close
	closed bool
	work   sync.WaitGroup
}

// bankLog is what the log says about the bank.
type bankLog struct {
	mu     sync.Mutex // guards gone, and orders the lines
	gone   bool       // a line says that it does not answer
	failed loglimit.Seldom
}

// New returns a limiter with the limits of the options. It fails for invalid options. Close it
// when the server is closed.
func New(opts ...Option) (*Limiter, error) {
	l := &Limiter{o: options{methods: make(map[string]Rate), maxCallers: 10_000, instances: 1}}
	if err := l.o.apply(opts); err != nil {
		return nil, err
	}
	l.instances.Store(int64(l.o.instances))
	l.ctx, l.stop = context.WithCancel(context.Background())
	if l.o.all.Burst > 0 {
		l.all = l.newBucket("server", "the server", "Server", l.o.all)
	}
	l.methods = make(map[string]*bucket, len(l.o.methods))
	for name, r := range l.o.methods {
		l.methods[name] = l.newBucket("method/"+name, "the method "+name, "Method", r)
	}
	if l.o.key != nil {
		l.callers = newCallers(l, l.o.caller, l.o.maxCallers)
	}
	if l.o.resolver != nil {
		l.work.Go(l.watch)
	}
	return l, nil
}

// Close stops following the registry and asking a bank, and waits for this work. The limits stay
// in force in their present state. It may be called more than once.
func (l *Limiter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.work.Wait()
	return nil
}

// spawn runs f in the background, unless the limiter is closed.
func (l *Limiter) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.work.Go(f)
	return true
}

// Observer returns the observer that enforces the limits on a server: anser.Observe(l.Observer()).
// An observer refuses calls before they are decoded, which an interceptor cannot do. A stream
// counts once, when it opens, and the methods of every server (Anser.Methods) count, too. Calls of
// a client are not limited.
func (l *Limiter) Observer() anser.Observer {
	return anser.Observer{Request: func(ctx context.Context, m anser.MessageInfo) error {
		if !m.Server {
			return nil
		}
		if e := l.take(ctx, m.Method, time.Now()); e != nil {
			return e
		}
		return nil
	}}
}

// take checks the narrowest limit first: a call refused by its caller's limit takes no tokens from
// the others.
func (l *Limiter) take(ctx context.Context, method string, now time.Time) *anser.Error {
	if l.callers != nil {
		if e := l.callers.bucket(l.o.key(ctx), now).take(now); e != nil {
			return e
		}
	}
	if b := l.methods[method]; b != nil {
		if e := b.take(now); e != nil {
			return e
		}
	}
	if l.all != nil {
		return l.all.take(now)
	}
	return nil
}

// Stats holds the counters of a limiter.
type Stats struct {
	// Instances is the number of instances that share the limits.
	Instances int
	// Callers is the number of callers that have a bucket of their own now.
	Callers int
	// Refused counts the refused calls by limit: "server", "caller", or "method/" with the
	// method's name.
	Refused map[string]int64
	// BankAnswers and BankFailures count the results of withdrawals.
	BankAnswers, BankFailures int64
}

// Stats returns the counters.
func (l *Limiter) Stats() Stats {
	st := Stats{Instances: int(l.instances.Load()), Refused: make(map[string]int64), BankAnswers: l.banking.Load(), BankFailures: l.alone.Load()}
	if l.all != nil {
		st.Refused["server"] = l.all.refused.Load()
	}
	for name, b := range l.methods {
		st.Refused["method/"+name] = b.refused.Load()
	}
	if l.callers != nil {
		st.Callers, st.Refused["caller"] = l.callers.count()
	}
	return st
}

// watch follows the number of instances of the service. While the registry is down the number
// stays.
func (l *Limiter) watch() {
	err := l.o.resolver.Watch(l.ctx, l.o.service, l.found, nil)
	if err != nil && !errors.Is(err, l.ctx.Err()) {
		l.o.log.Error("the rate limits no longer follow the registry", "service", l.o.service, "instances", l.instances.Load(), "err", err)
	}
}
