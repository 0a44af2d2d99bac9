package anser

import (
	"context"
	"fmt"
	"time"

	"github.com/anser-rpc/anser/codec"
)

// CallOption configures one call.
type CallOption interface{ applyCall(*callOptions) }

type callOption func(*callOptions)

func (f callOption) applyCall(o *callOptions) { f(o) }

type callOptions struct {
	codec       codec.Codec
	compression *compression // nil: none
	timeout     time.Duration
	bounded     bool // timeout was given to the call, and bounds it along with the deadline of its context
	mode        FailMode
	attempts    int
	idempotent  bool
	oneway      bool
	atOnce      bool // whether a oneway call fails rather than wait
	retryOn     []Code
	trailer     *Metadata
	inv         *Invocation // gets the instance that answered; nil without interceptors
	traced      traced      // a call with interceptors of which observers learn; else nil
	hashKey     uint64      // from balance.Hash; 0: none
	key         string      // idempotency key, if keyed
	keyed       bool
	at          string // key of the only instance to call, if pinned
	pinned      bool
	forks       int
	sides       sides         // of a stream
	backupAfter time.Duration // 0: learned
	earlier     uint8         // attempts of the same call that were sent before
	hashBy      func(ctx context.Context, method string, request any) string
	mistake     error // the first invalid option; the call or Dial returns it
}

// wants returns ok, and records a mistake if it is false.
func (o *callOptions) wants(ok bool, format string, args ...any) bool {
	if !ok && o.mistake == nil {
		o.mistake = fmt.Errorf(format, args...)
	}
	return ok
}

// add applies the options of a call.
func (o *callOptions) add(opts []CallOption) {
	for _, opt := range opts {
		if o.wants(opt != nil, "an option of the call is nil") {
			opt.applyCall(o)
		}
	}
}

func (o *callOptions) setMode(name string, m FailMode) {
	if o.wants(int(m) < len(failModeNames), "%s(%d): want one of the fail modes, anser.Failover (0) to anser.Fork (%d)", name, m, Fork) {
		o.mode = m
	}
}

func (o *callOptions) setAttempts(name string, n int) {
	if o.wants(n >= 1 && n <= maxAttempts, "%s(%d): want 1 to %d", name, n, maxAttempts) {
		o.attempts = n
	}
}

const maxAttempts = 5

const defaultForks = 2

// with returns the options of a call with opts applied on top.
func (o *callOptions) with(opts []CallOption) *callOptions {
	own := *o
	own.add(opts)
	return &own
}

// special reports whether the first attempt of a call differs from an ordinary one; see
// invokeApart.
func (o *callOptions) special() bool { return o.mode >= Backup || o.pinned }
