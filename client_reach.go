package anser

import (
	"context"
	"strconv"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

// awaitView returns the cluster's view as soon as there is one.
func (c *Client) awaitView(ctx context.Context) (*view, *Error) {
	v, absence := c.cluster.Wait(ctx)
	switch {
	case absence == nil:
		return v, nil
	case absence.Closed && absence.Reason != "":
		return nil, failure(Unavailable, NotSent, PhaseResolve, nil, "%s", absence.Reason)
	case absence.Closed:
		return nil, failure(Canceled, NotSent, PhaseResolve, nil, "the client is closed")
	}
	e := contextFailure(ctx, NotSent, PhaseResolve)
	switch {
	case absence.Trouble == nil:
		e.Message = "no list of instances yet: " + e.Message
	case e.Code == Canceled:
		e.Message += ", before the registry could be reached: " + absence.Trouble.Error()
	default:
		e.Code = Unavailable
		e.Message = "the registry cannot be reached, and there is no snapshot of its last list: " + absence.Trouble.Error()
	}
	return nil, e
}

// reach returns a connected endpoint for a call that may use another one than was picked for it. It
// waits until there is one. Endpoints in tried are used only if there is no other.
func (c *Client) reach(ctx context.Context, k *call, m *clientMethod, tried []*balance.Endpoint) (*endpoint, *Error) {
	for {
		v, fault := c.awaitView(ctx)
		if fault != nil {
			return nil, fault
		}
		v = v.ForCall(&m.health, k.route)
		if v.Total == 0 {
			return nil, c.noInstance(k.route)
		}
		k.pick.Method = m.name
		if e := c.cluster.Connected(&k.pick, v, k.route, tried); e != nil {
			return e, nil
		}
		switch s := c.cluster.Hunt(ctx, k.route); {
		case s == nil: // look again
		case s.Cut:
			return nil, notReached(ctx, s)
		default:
			return nil, noneReached(s)
		}
	}
}

// move reports whether a call of the route that waits at a silent host can be made elsewhere, and
// takes it from the budget if so.
func (c *Client) move(route *Route, from *host, now mono.Time) bool {
	if c.o.ejection.Off {
		return false
	}
	v := c.cluster.View()
	if v != nil && route != nil {
		v = v.ForRoute(route)
	}
	return v != nil && v.Any(func(e *endpoint) bool { return e.Host != from && e.Host.Connected() && !e.Host.Silent() }) &&
		c.budget.Withdraw(now)
}

// noneReached is the error of a call for which no instance can be reached.
func noneReached(s *survey) *Error {
	if s.Why == nil {
		e := failure(Unavailable, NotSent, PhaseDial, nil, "none of %d instances can be reached", s.Total)
		e.nowhere = true
		return e
	}
	e := failure(dialCode(s.Why), NotSent, PhaseDial, s.Why, "%v", s.Why)
	if s.Total > 1 {
		e.Message = "none of " + strconv.Itoa(s.Total) + " instances can be reached; the last one: " + e.Message
	}
	e.obstacle, e.nowhere, e.Address = obstacle(s.Obstacle), true, s.Last.Instance().Address
	return e
}

// notReached is the error of a call that timed out or was cancelled before an instance was reached.
func notReached(ctx context.Context, s *survey) *Error {
	e := contextFailure(ctx, NotSent, PhaseDial)
	e.Message = "none of " + strconv.Itoa(s.Total) + " instances can be reached yet: " + e.Message
	if s.Dialing > 0 {
		e.Message += "; " + strconv.Itoa(s.Dialing) + " do not answer"
	}
	if s.Why != nil {
		e.Message += "; the last one that failed, " + s.Last.Instance().Address + ": " + s.Why.Error()
	}
	return e
}
