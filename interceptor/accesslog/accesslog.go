// Package accesslog writes a line of structured log for calls, on either side.
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
}

// Sample logs only a part of the calls that succeed, from 0 for none to 1 for all, which is the default.
// Calls that fail or are slow are always logged.
func Sample(share float64) Option {
	return func(o *options) error {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("accesslog.Sample(%v): want a share from 0 to 1", share)
		}
		o.share = share
		return nil
	}
}

// Slow logs calls that took d or longer always, as warnings. The default is 1 s.
func Slow(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("accesslog.Slow(%v): want a time above 0", d)
		}
		o.slow = d
		return nil
	}
}

// Messages adds the messages of errors. Without it they are left out: what a handler says about a request
// may have parts of it.
func Messages() Option {
	return func(o *options) error {
		o.messages = true
		return nil
	}
}

// New returns an interceptor that writes a line to l when a call is over; nil is slog.Default(). New fails
// for options that cannot work. On a server give it first, so that it sees what the others refuse.
//
// The line has the message "call" with the attributes side (server or client), method, peer (the caller's
// address, or the instance that answered; left out where there is none), code, duration, attempt (from
// 0) and trace (the id of a trace context, if there is one). For a call that failed there is the outcome,
// and where they hold, oneway and slow are true. Requests, replies, metadata and credentials are never logged.
//
// The level says whether the call needs attention. The first line that fits holds:
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
// Where the logger does not want a level, nothing is written.
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

// errPanicked stands for a call whose handler panics, or ends its goroutine, which is told to the caller
// further out.
var errPanicked = anser.Errorf(anser.Internal, "it panicked")

func (o *options) intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) (err error) {
		began := time.Now()
		method, err := inv.Method, errPanicked // until it has returned
		defer func() { o.note(ctx, inv, method, err, time.Since(began)) }()
		return next(ctx, inv)
	}
}

// note writes the line of a call, if it is to be written.
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

// levelOf is the table in the comment of New.
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

// answers reports whether a handler that returns the code has most likely done what it should: something is wrong
// with the request, or has changed in the meantime.
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

// outcomeOf says what becomes of a call that failed: on a server what its caller will be told.
func outcomeOf(inv *anser.Invocation, err error) anser.Outcome {
	if !inv.Server {
		return anser.OutcomeOf(err)
	}
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Method == "" && e.Outcome == anser.Refused {
		return anser.Refused
	}
	return anser.Executed
}

// messageOf leaves out what the line says already.
func messageOf(err error) string {
	if e, ok := errors.AsType[*anser.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
