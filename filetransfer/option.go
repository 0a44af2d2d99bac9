package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Option configures a transfer or another operation of a client. An operation ignores options that
// do not apply to it: [List] cannot resume.
type Option interface{ apply(o *options) }

// ServeOption configures [Serve].
type ServeOption interface{ applyServe(s *Service) }

// SharedOption is valid on both sides.
type SharedOption interface {
	Option
	ServeOption
}

type options struct {
	name      string
	checksum  Checksum
	resume    bool
	parents   bool
	noReplace bool
	anyStore  bool
	patience  time.Duration
	progress  func(Progress)
	err       error
}

func (o *options) fault(format string, args ...any) {
	o.err = errors.Join(o.err, fmt.Errorf("filetransfer: "+format, args...))
}

func newOptions(opts []Option) (options, error) {
	o := options{name: defaultName}
	for _, opt := range opts {
		if opt == nil {
			o.fault("an option is nil")
			continue
		}
		opt.apply(&o)
	}
	return o, o.err
}

type option func(o *options)

func (f option) apply(o *options) { f(o) }

// Resume makes a transfer continue an earlier one of the same file, even of another process; the
// existing bytes are compared by their checksum, and if they differ the transfer starts from the
// beginning. A transfer that fails then leaves its unfinished file for the next one. Without
// Resume a transfer only continues after its own connection broke.
//
// For Put, the same file means the same source, by its absolute path, size and time, and the same
// path on the server; for Get, the same paths on the server and on the client.
func Resume() Option { return option(func(o *options) { o.resume = true }) }

// Parents creates missing folders above the target.
func Parents() Option { return option(func(o *options) { o.parents = true }) }

// NoReplace makes the transfer fail with [anser.AlreadyExists] if the target exists, even if it is
// created during the transfer. By default the target is replaced.
func NoReplace() Option { return option(func(o *options) { o.noReplace = true }) }

// Patience bounds how long a transfer retries without transferring a byte; its error is then that
// of the last attempt. The default, 0, means until its context ends. A failure before the server
// has answered once is an immediate error.
func Patience(d time.Duration) Option {
	return option(func(o *options) {
		if d < 0 {
			o.fault("the patience of %v is negative", d)
		}
		o.patience = d
	})
}

// AnyStore lets a transfer whose connection broke continue with an instance that has other files:
// sending restarts from the beginning there, and fetching continues if the bytes are the same.
// Without it the transfer looks for an instance with the same files; see [Store].
func AnyStore() Option { return option(func(o *options) { o.anyStore = true }) }

// OnProgress makes a transfer call f about ten times per second and once at its end, on the
// goroutine of the transfer: f must not block.
func OnProgress(f func(Progress)) Option { return option(func(o *options) { o.progress = f }) }

const defaultName = "File"

type named string

func (n named) apply(o *options) {
	if n == "" {
		o.fault("the name of the service is empty")
	}
	o.name = string(n)
}

func (n named) applyServe(s *Service) {
	if n == "" {
		s.fault("the name of the service is empty")
	}
	s.name = string(n)
}

// Named sets the name of the service, "File" by default, for servers with several folders.
func Named(service string) SharedOption { return named(service) }

type serveOption func(s *Service)

func (f serveOption) applyServe(s *Service) { f(s) }

// ReadOnly serves Get, Stat and List only.
func ReadOnly() ServeOption { return serveOption(func(s *Service) { s.readOnly = true }) }

// WriteOnly serves Put only.
func WriteOnly() ServeOption { return serveOption(func(s *Service) { s.writeOnly = true }) }

// AllowRemove allows clients to remove files and empty folders. By default they may not.
func AllowRemove() ServeOption { return serveOption(func(s *Service) { s.removes = true }) }

// MaxSize bounds the size of a file sent to the server in bytes. The default is no limit but the
// disk's.
func MaxSize(bytes int64) ServeOption {
	return serveOption(func(s *Service) {
		if bytes <= 0 {
			s.fault("MaxSize(%d): give it a positive number", bytes)
		}
		s.maxSize = bytes
	})
}

// MaxTransfers bounds the number of concurrent transfers and listings, each of which has one file
// open. Further ones wait and retry by themselves. The default is 100.
func MaxTransfers(n int) ServeOption {
	return serveOption(func(s *Service) {
		if n <= 0 {
			s.fault("MaxTransfers(%d): give it a positive number", n)
		}
		s.maxTransfers = int64(n)
	})
}

// Authorize makes the server call f before each operation. ctx is the handler's, from which
// [anser.PeerFrom] and [anser.MetadataFrom] identify the caller. An error rejects the operation:
// unchanged if it is an [anser.Error], otherwise with the code PermissionDenied. The form of the
// path has been checked, and "." is the root. f must be safe for concurrent use.
func Authorize(f func(ctx context.Context, op Op, path string) error) ServeOption {
	return serveOption(func(s *Service) {
		if f == nil {
			s.fault("the function of Authorize is nil: leave it out to allow every operation")
		}
		s.authorize = f
	})
}

// OnComplete makes the server call f after a file was received and is available under its name. It
// delays the answer to the client. ctx is the handler's. f must be safe for concurrent use.
func OnComplete(f func(ctx context.Context, r Result)) ServeOption {
	return serveOption(func(s *Service) {
		if f == nil {
			s.fault("the function of OnComplete is nil")
		}
		s.complete = f
	})
}

// KeepPartial sets how long the unfinished file of a transfer is kept after the last write to it.
// The default is 24 hours. Older ones are removed when a file is sent to their folder, and by
// [Service.Clean].
func KeepPartial(age time.Duration) ServeOption {
	return serveOption(func(s *Service) {
		if age <= 0 {
			s.fault("unfinished files cannot be kept for %v: give KeepPartial a positive time", age)
		}
		s.keep = age
	})
}

// Store names the files of this server: servers with the same name must have the same files,
// because a transfer may continue on another one of them. The default is derived from the host
// name and the path of the folder, and is therefore the same after a restart.
func Store(name string) ServeOption {
	return serveOption(func(s *Service) {
		if name == "" {
			s.fault("the name of the store is empty")
		}
		s.store = name
	})
}
