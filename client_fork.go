package anser

import (
	"context"

	"github.com/anser-rpc/anser/balance"
)

// fork makes several attempts at once. It returns the attempt that answered first, or the one that
// failed last; the other failures are noted. The call that it returns is k, or replaces it.
func (c *Client) fork(ctx context.Context, k *call, a *attempts) (*call, *endpoint, *Error) {
	if a.o.keyed {
		return k, nil, failure(InvalidArgument, NotSent, PhaseEncode, nil,
			"the fail mode fork runs a call several times, and one with an anser.IdempotencyKey runs once: leave the key out, or use another mode")
	}
	if !a.m.mayRunTwice(a.o) {
		return k, nil, failure(InvalidArgument, NotSent, PhasePick, nil,
			"the fail mode fork runs a call several times, and this method is not known to be idempotent: give the call or the client anser.Idempotent")
	}
	waiting, cancel := k.bound(ctx)
	v, fault := c.awaitView(waiting)
	cancel()
	if fault != nil {
		return k, nil, fault
	}
	forks := a.o.forks
	if parentRetried(ctx) {
		forks = 1 // forks would multiply from tier to tier
	}
	endpoints := v.ForCall(&a.m.health, k.route).PickSeveral(&k.pick, forks)
	if len(endpoints) == 0 {
		return k, nil, nil
	}
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	ended := make(chan forkResult, len(endpoints))
	all := make([]*call, len(endpoints))
	all[0] = k
	for i := 1; i < len(all); i++ {
		all[i] = c.pool.getCall()
		all[i].cloneForAttempt(k, i) // before k is sent, which may change it
	}
	for i, e := range endpoints {
		all[i].pick.Reason = balance.PickedForFork
		go func() { ended <- forkResult{e, all[i], all[i].attempt(ctx, e, a.m)} }()
	}
	return a.race(c.pool, ended, len(endpoints), cancel)
}

// forkResult is an attempt that is over.
type forkResult struct {
	e     *endpoint
	k     *call
	fault *Error
}

// race waits for the first of n attempts that answers, cancels the others, and waits for those
// too, which takes no longer than to write a cancel. Their buffers are theirs alone, so a late
// reply is written nowhere.
func (a *attempts) race(p *pool, ended <-chan forkResult, n int, cancel context.CancelFunc) (*call, *endpoint, *Error) {
	var last forkResult
	for i := range n {
		f := <-ended
		if f.fault == nil {
			if fault := f.k.decode(f.e, a.codec, a.out); fault != nil {
				f.fault = fault
			}
			cancel()
			for range n - i - 1 {
				p.putCall((<-ended).k)
			}
			if last.k != nil {
				a.note(last.k, last.e, last.fault)
				p.putCall(last.k)
			}
			return f.k, f.e, f.fault
		}
		if last.k == nil {
			last = f
			continue
		}
		if last.fault.Outcome == Executed { // an error from a handler says more than an unreachable instance
			last, f = f, last
		}
		a.note(last.k, last.e, last.fault)
		p.putCall(last.k)
		last = f
	}
	return last.k, last.e, last.fault
}
