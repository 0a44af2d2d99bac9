package route

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
)

// Intercept applies the rules about methods: limits first, then faults, mocks and the call itself.
func (r *router) Intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		sample, sampled := r.recorder.begin()
		err := r.call(ctx, inv, next)
		if sampled {
			r.recorder.end(sample, r, ctx, inv, err)
		}
		return err
	}
}

func (r *router) call(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
	if !r.begun.Load() {
		r.await(ctx)
	}
	p := r.plan.Load()
	m := p.method(inv.Method)
	if !m.intercepts() {
		return next(ctx, inv)
	}
	matches := func(w *Match) bool {
		for k, patterns := range w.Metadata {
			if !patterns.match(anser.OutgoingValue(ctx, k)) {
				return false
			}
		}
		return true
	}
	for i := range m.policies {
		o := &m.policies[i]
		if !matches(&o.rule.When) {
			continue
		}
		if o.limit != nil {
			if err := o.limit.enter(); err != nil {
				return named(err, inv)
			}
			defer o.limit.leave()
		}
		cancel := o.apply(&ctx, inv)
		defer cancel()
		break
	}
	now := time.Now()
	for _, f := range m.faults {
		if now.Before(f.Until) && matches(&f.When) && rand.Float64()*100 < f.Percent {
			if err := f.strike(ctx); err != nil {
				return named(err, inv)
			}
		}
	}
	for _, o := range m.mocks {
		if matches(&o.When) && !inv.Stream {
			return o.answer(ctx, inv, next)
		}
	}
	return next(ctx, inv)
}

// named completes the error of a rule.
func named(err error, inv *anser.Invocation) error {
	if e, ok := err.(*anser.Error); ok {
		e.Method = inv.Method
	}
	return err
}

// apply sets the values of the client's options. If the call has a deadline, the earlier one
// applies.
func (o *policy) apply(ctx *context.Context, inv *anser.Invocation) context.CancelFunc {
	if o.rule.Attempts > 0 {
		inv.SetAttempts(o.rule.Attempts)
	}
	if o.rule.Mode != "" {
		inv.SetMode(o.mode)
	}
	if d := time.Duration(o.rule.Timeout); d > 0 && !inv.Stream {
		inv.SetTimeout(d)
		if end, ok := (*ctx).Deadline(); ok && time.Until(end) > d {
			bounded, cancel := context.WithTimeout(*ctx, d)
			*ctx = bounded
			return cancel
		}
	}
	return func() {}
}

// strike injects the fault. The delay ends with the context.
func (f *FaultRule) strike(ctx context.Context) error {
	if f.Delay > 0 {
		t := time.NewTimer(time.Duration(f.Delay))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil // the call itself returns the error
		}
	}
	switch {
	case f.Error != nil:
		return f.Error.error("a fault of the rules")
	case f.Abort:
		e := anser.Errorf(anser.Unavailable, "the connection was lost, by a fault of the rules")
		e.Outcome = anser.OutcomeUnknown
		return e
	}
	return nil
}

func (e *ErrorSpec) error(message string) *anser.Error {
	if e.Message != "" {
		message = e.Message
	}
	return refusal(codes()[codeKey(e.Code)], "%s", message)
}

// answer replies in place of the call, or of a call that failed.
func (o *MockRule) answer(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
	if o.Failing {
		err := next(ctx, inv)
		if err == nil || !failing(err) || ctx.Err() == context.Canceled {
			return err // the service has answered, or the caller has given up
		}
	}
	if o.Error != nil {
		return named(o.Error.error("the rules answer in place of the service"), inv)
	}
	if inv.Reply == nil { // oneway
		return nil
	}
	if err := setReply(inv.Reply, o.Reply); err != nil {
		return named(refusal(anser.Internal, "the reply of the rule %q does not fit: %v", o.Name, err), inv)
	}
	return nil
}

// failing distinguishes a service that does not work from one that rejects the call.
func failing(err error) bool {
	if anser.OutcomeOf(err) != anser.Executed {
		return true
	}
	switch anser.CodeOf(err) {
	case anser.DeadlineExceeded, anser.ResourceExhausted, anser.Unavailable, anser.Internal, anser.DataLoss:
		return true
	}
	return false
}

// setReply decodes JSON into a reply, which may already hold parts of a reply that could not be
// decoded.
func setReply(reply any, data []byte) error {
	if m, ok := reply.(proto.Message); ok {
		return protojson.Unmarshal(data, m)
	}
	v := reflect.ValueOf(reply)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("the reply is a %T: want a pointer", reply)
	}
	v.Elem().SetZero()
	return json.Unmarshal(data, reply)
}
