package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Option configures a transfer or another operation of a client. What an operation has no use for it
// ignores: [List] has nothing to resume.
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

// Resume has a transfer go on where an earlier one of the same file ended, also one of another process; the bytes
// that are there already are compared by their checksum, and where they differ the transfer begins at
// the start. A transfer that fails then leaves its unfinished file for the next one. Without Resume a
// transfer goes on after its own connection broke, and nothing else.
//
// For Put the same file is the same source, by its absolute path, size and time, and the same path on the server;
// for Get the same path on the server and here.
func Resume() Option { return option(func(o *options) { o.resume = true }) }

// Parents makes the folders above the target that are missing.
func Parents() Option { return option(func(o *options) { o.parents = true }) }

// NoReplace fails with [anser.AlreadyExists] where the target is there already, also if it came to be during the
// transfer. Without it the target is replaced.
func NoReplace() Option { return option(func(o *options) { o.noReplace = true }) }

// Patience bounds how long a transfer goes on trying without moving a byte; its error then is that of the last
// attempt. The default, 0, is as long as its context lives. What fails before the server has answered once is
// an error at once.
func Patience(d time.Duration) Option {
	return option(func(o *options) {
		if d < 0 {
			o.fault("the patience of %v is negative", d)
		}
		o.patience = d
	})
}

// AnyStore lets a transfer whose connection broke go on with an instance that has other files: sending begins at
// the start there, and fetching goes on if the bytes are the same. Without it the transfer looks for an instance
// with the same files; see [Store].
func AnyStore() Option { return option(func(o *options) { o.anyStore = true }) }

// OnProgress has f called during a transfer, about ten times a second and once at its end, on the goroutine that
// transfers: f must not block.
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

// Named gives the service another name than "File", as a server with several folders needs it.
func Named(service string) SharedOption { return named(service) }

type serveOption func(s *Service)

func (f serveOption) applyServe(s *Service) { f(s) }

// ReadOnly serves Get, Stat and List only.
func ReadOnly() ServeOption { return serveOption(func(s *Service) { s.readOnly = true }) }

// WriteOnly serves Put only.
func WriteOnly() ServeOption { return serveOption(func(s *Service) { s.writeOnly = true }) }

// AllowRemove lets clients remove files and empty folders, which they may not otherwise.
func AllowRemove() ServeOption { return serveOption(func(s *Service) { s.removes = true }) }

// MaxSize bounds the size of a file that is sent, in bytes. The default is no bound but the disk's.
func MaxSize(bytes int64) ServeOption {
	return serveOption(func(s *Service) {
		if bytes <= 0 {
			s.fault("a file of at most %d bytes is none: give MaxSize a positive number", bytes)
		}
		s.maxSize = bytes
	})
}

// MaxTransfers bounds how many transfers and listings run at once, each of which has one file open. More than
// that wait and try again by themselves. The default is 100.
func MaxTransfers(n int) ServeOption {
	return serveOption(func(s *Service) {
		if n <= 0 {
			s.fault("with %d transfers nothing can be done: give MaxTransfers a positive number", n)
		}
		s.maxTransfers = int64(n)
	})
}

// Authorize asks f before each operation. ctx is that of the handler, from which [anser.PeerFrom] and
// [anser.MetadataFrom] tell who asks. An error refuses the operation: as it is if it is an [anser.Error], else with
// the code PermissionDenied. The path was checked for its form, and "." is the root. f is called by several
// goroutines at once.
func Authorize(f func(ctx context.Context, op Op, path string) error) ServeOption {
	return serveOption(func(s *Service) {
		if f == nil {
			s.fault("the function of Authorize is nil: leave it out to allow every operation")
		}
		s.authorize = f
	})
}

// OnComplete has f called after a file was sent and stands under its name. It holds up the answer to the client. ctx
// is that of the handler. f is called by several goroutines at once.
func OnComplete(f func(ctx context.Context, r Result)) ServeOption {
	return serveOption(func(s *Service) {
		if f == nil {
			s.fault("the function of OnComplete is nil")
		}
		s.complete = f
	})
}

// KeepPartial sets for how long the unfinished file of a transfer is kept after it was last written. The default is
// 24 hours. Older ones are removed when something is sent to their folder, and by [Service.Clean].
func KeepPartial(age time.Duration) ServeOption {
	return serveOption(func(s *Service) {
		if age <= 0 {
			s.fault("unfinished files cannot be kept for %v: give KeepPartial a positive time", age)
		}
		s.keep = age
	})
}

// Store names the files of this server: servers with the same name must have the same files, for a transfer may go
// on with one after it began with another. The default is made from the name of the host and the path of the
// folder, and so stays the same when the server is started again.
func Store(name string) ServeOption {
	return serveOption(func(s *Service) {
		if name == "" {
			s.fault("the name of the store is empty")
		}
		s.store = name
	})
}
