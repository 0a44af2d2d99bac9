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

// Method enables caching of the method's replies for ttl. The name is the canonical one on a
// server, and the one that is called on a client. Only methods named here are cached: a method
// that may safely run twice (see [anser.Idempotent]) may still need to run every time.
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

// Stale allows the use of a reply for d after it has expired, while one call in the background
// fetches a new one. The default is 0: an expired reply is not used.
func Stale(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("cache.Stale(%v): want at least 0", d)
		}
		o.stale = d
		return nil
	}
}

// Negative enables caching of errors with one of the codes for ttl: errors that a handler
// returned, not those of calls that were refused or lost. By default none are cached.
func Negative(ttl time.Duration, codes ...anser.Code) Option {
	return func(o *options) error {
		if ttl <= 0 || len(codes) == 0 {
			return fmt.Errorf("cache.Negative(%v, %d codes): want a time above 0 and at least one code, such as anser.NotFound", ttl, len(codes))
		}
		for _, c := range codes {
			if c == anser.OK || c == anser.Canceled || c == anser.DeadlineExceeded {
				return fmt.Errorf("cache.Negative: the code %q does not apply to other calls: leave it out", c)
			}
		}
		o.negative, o.codes = ttl, slices.Clone(codes)
		return nil
	}
}

// Jitter shortens the time of each entry by a random fraction, up to share, so that entries
// created at the same time do not expire together. The default is 0.1.
func Jitter(share float64) Option {
	return func(o *options) error {
		if !(share >= 0 && share < 1) {
			return fmt.Errorf("cache.Jitter(%v): want a share of at least 0 and below 1", share)
		}
		o.jitter = share
		return nil
	}
}

// MaxEntries sets the maximum number of entries; the default is 10,000. The least recently used
// entry is evicted.
func MaxEntries(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("cache.MaxEntries(%d): want at least 1", n)
		}
		o.entries = n
		return nil
	}
}

// MaxBytes sets the maximum memory of the entries in bytes, including keys; the default is 64 MiB.
func MaxBytes(n int64) Option {
	return func(o *options) error {
		if n < minBytes {
			return fmt.Errorf("cache.MaxBytes(%d): want at least %d", n, minBytes)
		}
		o.bytes = n
		return nil
	}
}

// MaxEntry sets the maximum size of an entry in bytes, request and reply together; the default is
// 1 MiB. Larger replies are not cached.
func MaxEntry(n int64) Option {
	return func(o *options) error {
		if n < minBytes {
			return fmt.Errorf("cache.MaxEntry(%d): want at least %d", n, minBytes)
		}
		o.entry = n
		return nil
	}
}

// minBytes is slightly more than the smallest entry.
const minBytes = 1024

// Vary adds metadata keys on which replies depend: calls with different values get different
// entries. By default metadata is ignored, with one exception: a call with authorization,
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

// credentials lists the metadata keys that make a reply specific to a user.
var credentials = [...]string{"authorization", "proxy-authorization", "cookie"}

// Partition divides the cache by the result of f for a call's context, for replies that depend on
// more than the request and metadata, for example on the caller's certificate. If ok is false, the
// call is not cached. f must be safe for concurrent use.
func Partition(f func(ctx context.Context) (part string, ok bool)) Option {
	return func(o *options) error {
		if f == nil {
			return errors.New("cache.Partition: the function is nil: leave the option out")
		}
		o.partition = f
		return nil
	}
}

// Logger sets the logger for panics of calls in the background; the default is slog.Default().
func Logger(l *slog.Logger) Option {
	return func(o *options) error {
		if l == nil {
			return errors.New("cache.Logger: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)")
		}
		o.log = l
		return nil
	}
}
