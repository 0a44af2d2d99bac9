package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/wire"
)

// Option configures a Cache.
type Option func(*options) error

type options struct {
	methods   map[string]*method
	stale     time.Duration
	negative  time.Duration
	codes     []anser.Code
	jitter    float64
	entries   int
	bytes     int64
	entry     int64
	vary      []string
	partition func(ctx context.Context) (string, bool)
	log       *slog.Logger
}

func defaults() options {
	return options{methods: make(map[string]*method), jitter: 0.1, entries: 10_000, bytes: 64 << 20, entry: 1 << 20, log: slog.Default()}
}

func (o *options) apply(opts []Option) error {
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("cache.New: an option is nil"))
			continue
		}
		errs = append(errs, opt(o))
	}
	if len(o.methods) == 0 {
		errs = append(errs, errors.New("cache.New: no method is named: add cache.Method(\"Service.Method\", time.Minute)"))
	}
	o.entry = min(o.entry, o.bytes)
	return errors.Join(errs...)
}

// Method lets replies of the method be kept for ttl, by its canonical name on a server, and by the
// name that is called on a client. Only methods that are named here are cached: that running a method
// twice does no harm (see [anser.Idempotent]) does not mean that it need not be run.
func Method(name string, ttl time.Duration) Option {
	return func(o *options) error {
		if err := wire.CheckMethodName(name); err != nil {
			return fmt.Errorf("cache.Method: %w", err)
		}
		if ttl <= 0 {
			return fmt.Errorf("cache.Method(%q, %v): want a time above 0", name, ttl)
		}
		if o.methods[name] != nil {
			return fmt.Errorf("cache.Method: %q is named twice", name)
		}
		o.methods[name] = &method{name: name, ttl: ttl}
		return nil
	}
}

// Stale lets a reply be given out for d beyond its time, while one call in the background gets a new
// one. The default is 0: a reply whose time is over is got anew first.
func Stale(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("cache.Stale(%v): want at least 0", d)
		}
		o.stale = d
		return nil
	}
}

// Negative lets errors with one of the codes be kept for ttl: those that a handler returned, not those
// of calls that were refused or lost. The default is to keep none.
func Negative(ttl time.Duration, codes ...anser.Code) Option {
	return func(o *options) error {
		if ttl <= 0 || len(codes) == 0 {
			return fmt.Errorf("cache.Negative(%v, %d codes): want a time above 0 and at least one code, such as anser.NotFound", ttl, len(codes))
		}
		for _, c := range codes {
			if c == anser.OK || c == anser.Canceled || c == anser.DeadlineExceeded {
				return fmt.Errorf("cache.Negative: the code %q says nothing about other calls: leave it out", c)
			}
		}
		o.negative, o.codes = ttl, slices.Clone(codes)
		return nil
	}
}

// Jitter shortens the time of each entry by a random part of it, up to share, so that entries made
// together do not end together. The default is 0.1.
func Jitter(share float64) Option {
	return func(o *options) error {
		if !(share >= 0 && share < 1) {
			return fmt.Errorf("cache.Jitter(%v): want a share of at least 0 and below 1", share)
		}
		o.jitter = share
		return nil
	}
}

// MaxEntries sets how many entries are kept; the default is 10,000. The one that was not used for the
// longest time gives way.
func MaxEntries(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("cache.MaxEntries(%d): want at least 1", n)
		}
		o.entries = n
		return nil
	}
}

// MaxBytes sets how much memory the entries take, keys included; the default is 64 MiB.
func MaxBytes(n int64) Option {
	return func(o *options) error {
		if n < minBytes {
			return fmt.Errorf("cache.MaxBytes(%d): want at least %d", n, minBytes)
		}
		o.bytes = n
		return nil
	}
}

// MaxEntry sets how large a single entry may be, request and reply together; the default is 1 MiB. What
// is larger is not kept.
func MaxEntry(n int64) Option {
	return func(o *options) error {
		if n < minBytes {
			return fmt.Errorf("cache.MaxEntry(%d): want at least %d", n, minBytes)
		}
		o.entry = n
		return nil
	}
}

// minBytes is a little more than the least that an entry takes.
const minBytes = 1024

// Vary adds keys of metadata on which replies depend: calls with different values get different entries.
// Without it metadata does not matter, with one exception: a call that carries authorization,
// proxy-authorization or cookie is not cached unless the key is named here.
func Vary(keys ...string) Option {
	return func(o *options) error {
		for _, k := range keys {
			if k = strings.ToLower(k); !slices.Contains(o.vary, k) {
				o.vary = append(o.vary, k)
			}
		}
		return nil
	}
}

// credentials are the keys of metadata that make a reply somebody's own.
var credentials = [...]string{"authorization", "proxy-authorization", "cookie"}

// Partition divides the cache by what f returns for a call's context, for replies that depend on more
// than the request and metadata: on the caller's certificate, say. ok false keeps a call away from the
// cache. f is called by many goroutines at once.
func Partition(f func(ctx context.Context) (part string, ok bool)) Option {
	return func(o *options) error {
		if f == nil {
			return errors.New("cache.Partition: the function is nil: leave the option out")
		}
		o.partition = f
		return nil
	}
}

// Logger sets where a panic of a call in the background is logged; the default is slog.Default().
func Logger(l *slog.Logger) Option {
	return func(o *options) error {
		if l == nil {
			return errors.New("cache.Logger: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)")
		}
		o.log = l
		return nil
	}
}
