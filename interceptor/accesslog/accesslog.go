// Package accesslog writes a structured log line per call, on either side.
package accesslog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/anser-rpc/anser"
)

// Option configures the interceptor.
type Option func(*options) error

type options struct {
	log      *slog.Logger
	share    float64
	slow     time.Duration
	messages bool
	standard bool
}

// Sample sets the fraction of successful calls that are logged, from 0 for none to 1 for all,
// which is the default. Calls that fail or are slow are always logged.
func Sample(share float64) Option {
	return func(o *options) error {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("accesslog.Sample(%v): want a share from 0 to 1", share)
		}
		o.share = share
		return nil
	}
}

// Slow makes calls that take d or longer count as slow: they are always logged, as warnings. The
// default is 1 s.
func Slow(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("accesslog.Slow(%v): want a time above 0", d)
		}
		o.slow = d
		return nil
	}
}

// Messages includes the messages of errors. By default they are left out: the error of a handler
// may contain parts of the request.
func Messages() Option {
	return func(o *options) error {
		o.messages = true
		return nil
	}
}

// New returns an interceptor that writes a line to l at the end of a call; nil means
// slog.Default(). New fails for invalid options. On a server make it the first interceptor, so
// that it sees the calls that others reject.
//
// The line has the message "call" with the attributes side (server or client), method, peer (the
// caller's address, or the instance that answered; left out if there is none), code, duration,
// attempt (from 0) and trace (the ID of a trace context, if there is one). A failed call also has
// the attribute outcome, and oneway and slow appear if they are true. Requests, replies, metadata
// and credentials are never logged.
//
// With [Conventions] the attributes are instead rpc.system.name ("anser"), rpc.side, rpc.method,
// network.peer.address, network.peer.port, rpc.status_code (such as "NOT_FOUND"), error.type (the
// same, for a call that failed), anser.outcome, rpc.call.duration in seconds, anser.attempt,
// trace_id, span_id, anser.oneway, anser.slow and error.message. What the conventions do not define
// has a name of the same form.
//
// The level tells whether the call needs attention. The first matching line applies:
//
//	Error  the code is Internal, Unknown or DataLoss, or the handler panicked
//	Warn   the call was slow
//	Info   the call succeeded
//	Info   the outcome is Executed and the code is one with which a handler answers a request on purpose: Canceled,
//	       InvalidArgument, NotFound, AlreadyExists, PermissionDenied, FailedPrecondition, Aborted, OutOfRange
//	       or Unauthenticated
//	Warn   the call failed otherwise: it was refused or not sent, its outcome is unknown, or the handler
//	       returned DeadlineExceeded, ResourceExhausted, Unimplemented, Unavailable or a code of its own
//
// If the logger is not enabled for the level, nothing is written.
func New(l *slog.Logger, opts ...Option) (anser.Interceptor, error) {
	o := &options{log: l, share: 1, slow: time.Second}
	if l == nil {
		o.log = slog.Default()
	}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("accesslog.New: an option is nil"))
			continue
		}
		errs = append(errs, opt(o))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return o.intercept, nil
}

// errPanicked is the error of a call whose handler panics, or ends its goroutine; the caller gets
// its error from an outer layer.
var errPanicked = anser.Errorf(anser.Internal, "it panicked")

func (o *options) intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) (err error) {
		began := time.Now()
		method, err := inv.Method, errPanicked // until it has returned
		defer func() { o.note(ctx, inv, method, err, time.Since(began)) }()
		return next(ctx, inv)
	}
}

// note writes the line of a call, if its level and the sampling permit.
func (o *options) note(ctx context.Context, inv *anser.Invocation, method string, err error, took time.Duration) {
	slow := took >= o.slow
	if err == nil && !slow && o.share < 1 && rand.Float64() >= o.share {
		return
	}
	code, outcome := anser.CodeOf(err), anser.Executed
	if err != nil {
		outcome = outcomeOf(inv, err)
	}
	level := levelOf(code, outcome, slow)
	if !o.log.Enabled(ctx, level) {
		return
	}
	if o.standard {
		o.log.LogAttrs(ctx, level, "call", o.conventional(ctx, inv, method, err, took, outcome)...)
		return
	}
	var room [11]slog.Attr
	attrs := append(room[:0], slog.String("side", sideOf(inv)), slog.String("method", method))
	peer, attempt := where(ctx, inv, err)
	if peer != "" {
		attrs = append(attrs, slog.String("peer", peer))
	}
	attrs = append(attrs, slog.String("code", code.String()))
	if err != nil {
		attrs = append(attrs, slog.String("outcome", outcome.String()))
	}
	attrs = append(attrs, slog.Duration("duration", took), slog.Int("attempt", attempt))
	if t, ok := anser.TraceFrom(ctx); ok {
		attrs = append(attrs, slog.String("trace", hex.EncodeToString(t.TraceID[:])))
	}
	if inv.Oneway {
		attrs = append(attrs, slog.Bool("oneway", true))
	}
	if slow {
		attrs = append(attrs, slog.Bool("slow", true))
	}
	if err != nil && o.messages {
		attrs = append(attrs, slog.String("message", messageOf(err)))
	}
	o.log.LogAttrs(ctx, level, "call", attrs...)
}

// levelOf implements the table in the comment of New.
func levelOf(code anser.Code, outcome anser.Outcome, slow bool) slog.Level {
	switch {
	case code == anser.Internal, code == anser.Unknown, code == anser.DataLoss:
		return slog.LevelError
	case slow:
		return slog.LevelWarn
	case code == anser.OK, outcome == anser.Executed && answers(code):
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// answers reports whether a handler that returns the code probably works correctly: the error lies
// in the request, or in a concurrent change.
func answers(code anser.Code) bool {
	switch code {
	case anser.Canceled, anser.InvalidArgument, anser.NotFound, anser.AlreadyExists, anser.PermissionDenied,
		anser.FailedPrecondition, anser.Aborted, anser.OutOfRange, anser.Unauthenticated:
		return true
	}
	return false
}

func sideOf(inv *anser.Invocation) string {
	if inv.Server {
		return "server"
	}
	return "client"
}

// where returns the other side of a call, and the number of its attempt.
func where(ctx context.Context, inv *anser.Invocation, err error) (peer string, attempt int) {
	if inv.Server {
		if p, ok := anser.PeerFrom(ctx); ok {
			peer = p.Addr.String()
		}
		return peer, anser.AttemptFrom(ctx)
	}
	if e, ok := errors.AsType[*anser.Error](err); ok {
		return e.Address, e.Attempt
	}
	return inv.Address, inv.Attempt
}

// outcomeOf returns the outcome of a failed call: on a server the one that its caller will
// receive.
func outcomeOf(inv *anser.Invocation, err error) anser.Outcome {
	if !inv.Server {
		return anser.OutcomeOf(err)
	}
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Method == "" && e.Outcome == anser.Refused {
		return anser.Refused
	}
	return anser.Executed
}

// messageOf removes the parts that the line already contains.
func messageOf(err error) string {
	if e, ok := errors.AsType[*anser.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
