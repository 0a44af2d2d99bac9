package command

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// registryLog prints the log of a registry. Some entries that etcd logs as errors are expected,
// such as the end of its listeners when it is stopped; these appear only with --verbose.
type registryLog struct {
	slog.Handler
	verbose bool
	ending  func() bool // reports whether the registry is being stopped
}

// etcdPrefix marks the log entries of etcd.
const etcdPrefix = "etcd: "

func newRegistryLog(ending func() bool, w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	return slog.New(&registryLog{slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), verbose, ending})
}

// Handle implements slog.Handler.
func (l *registryLog) Handle(ctx context.Context, r slog.Record) error {
	if !l.verbose && (strings.HasPrefix(r.Message, etcdPrefix) || l.ending()) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *registryLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &registryLog{l.Handler.WithAttrs(attrs), l.verbose, l.ending}
}

// WithGroup implements slog.Handler.
func (l *registryLog) WithGroup(name string) slog.Handler {
	return &registryLog{l.Handler.WithGroup(name), l.verbose, l.ending}
}
