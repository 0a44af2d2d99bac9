package share

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/interceptor/internal/flight"
)

// Result is the result of a shared call. It is immutable.
type Result struct {
	// Alone means that the messages cannot be copied, so that each caller must make its own call.
	Alone bool
	Err   error

	Type    reflect.Type // of the reply; nil if there was none
	Reply   []byte
	codec   codec.Codec
	trailer anser.Metadata
	address string
	attempt int
}

// NewResult returns a cached reply of the type t, encoded by the given codec. Its caller gets no
// trailers.
func NewResult(t reflect.Type, reply []byte, cd codec.Codec) Result {
	return Result{Type: t, Reply: reply, codec: cd}
}

// Sharable reports whether the messages of a call can be copied, and whether it has a reply.
func Sharable(inv *anser.Invocation) bool {
	return !inv.Oneway && fillable(inv.Request) && (inv.Server || fillable(inv.Reply))
}

// Prepare returns the work that makes a call like inv, but independent of it. request holds inv's
// request.
func Prepare(inv *anser.Invocation, cd codec.Codec, request []byte, next anser.Func) flight.Work[*Result] {
	in, err := duplicate(cd, request, inv.Request)
	if err != nil {
		return func(context.Context) *Result { return &Result{Alone: true} }
	}
	r := &Result{codec: cd}
	var out any
	if !inv.Server {
		out = reflect.New(reflect.TypeOf(inv.Reply).Elem()).Interface()
	}
	d := inv.Detach(in, out, &r.trailer)
	return func(ctx context.Context) *Result {
		if r.Err = next(ctx, d); r.Err == nil {
			r.take(d)
		}
		r.address, r.attempt = d.Address, d.Attempt
		return r
	}
}

// take stores the encoded reply.
func (r *Result) take(d *anser.Invocation) {
	if d.Reply == nil {
		return
	}
	if r.Alone = !fillable(d.Reply); r.Alone {
		return
	}
	reply, err := Append(nil, r.codec, d.Reply)
	if err == nil {
		_, err = duplicate(r.codec, reply, d.Reply)
	}
	if r.Alone = err != nil; !r.Alone {
		r.Type, r.Reply = reflect.TypeOf(d.Reply), reply
	}
}

// Give answers a call with a copy of the reply.
func (r *Result) Give(inv *anser.Invocation) error {
	inv.SetTrailer(maps.Clone(r.trailer))
	inv.Address, inv.Attempt = r.address, r.attempt
	if r.Err != nil || r.Type == nil {
		return r.Err
	}
	var err error
	if inv.Server {
		inv.Reply, err = decode(r.codec, r.Reply, r.Type)
	} else {
		err = r.codec.Unmarshal(r.Reply, inv.Reply)
	}
	if err != nil {
		return fail(inv, anser.Internal, anser.Executed, anser.PhaseDecode, fmt.Sprintf("decode the shared reply with %s: %v", r.codec.Name(), err))
	}
	return nil
}

// Do waits for the call in flight for the key, or starts it. The result is nil if the caller must
// make its own call: the group is closed, or the call in flight ended without a result. joined
// means that another caller had started it.
func Do[K comparable](ctx context.Context, g *flight.Group[K, *Result], key K, inv *anser.Invocation, prepare func() flight.Work[*Result]) (r *Result, joined bool, err error) {
	ctx, cancel, bound := times(ctx, inv)
	defer cancel()
	for {
		r, ride, err := g.Do(ctx, key, bound, prepare)
		switch {
		case err == nil && ride.Joined && r != nil && r.Err != nil && ctx.Err() == nil &&
			(ride.Cut || anser.CodeOf(r.Err) == anser.DeadlineExceeded): // here or, a moment earlier, on the server
			// It was already in flight when this call joined it, and reached its own deadline.
			// This call's deadline is later.
			continue
		case err == nil:
			return r, ride.Joined, nil
		case errors.Is(err, flight.ErrClosed):
			return nil, false, nil
		case errors.Is(err, flight.ErrExited):
			return nil, ride.Joined, fail(inv, anser.Internal, anser.OutcomeUnknown, anser.PhaseNone, err.Error())
		}
		return nil, ride.Joined, fail(inv, anser.CodeOf(err), anser.OutcomeUnknown, anser.PhaseWait, "the call ended while it waited for an equal one that was in flight: "+err.Error())
	}
}

// times applies the deadline of the call to the waiting, and returns the timeout of the shared
// call: that of this one, but not less than that of a call without a deadline, so that a short
// deadline does not fail the other callers.
func times(ctx context.Context, inv *anser.Invocation) (context.Context, context.CancelFunc, time.Duration) {
	normal := inv.Timeout()
	if inv.Server {
		normal = serverBound
	}
	deadline, ok := ctx.Deadline()
	switch {
	case normal == 0 || inv.Server && !ok:
		return ctx, func() {}, 0
	case ok:
		return ctx, func() {}, max(normal, time.Until(deadline), 1)
	}
	ctx, cancel := context.WithTimeout(ctx, normal)
	return ctx, cancel, max(normal, 1)
}

// serverBound is the minimum timeout of a shared call on a server if its first caller has a
// deadline.
const serverBound = 10 * time.Second

// fail returns a local error.
func fail(inv *anser.Invocation, code anser.Code, outcome anser.Outcome, phase anser.Phase, message string) error {
	e := anser.Errorf(code, "%s", message)
	if !inv.Server {
		e.Outcome, e.Phase, e.Method = outcome, phase, inv.Method
	}
	return e
}
