package embedded

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure holds the fatal error of a member. etcd exits the process if it cannot continue, for
// example when a write to its log fails. The application works without its registry for a while,
// so here only the goroutine ends, and the member counts as failed.
type failure struct {
	done chan struct{} // closed by the first error
	once sync.Once
	// closing is set before the member stops: etcd logs the expected effects of that as errors.
	closing atomic.Bool

	mu  sync.Mutex // guards err
	err error
}

func newFailure() *failure { return &failure{done: make(chan struct{})} }

func (f *failure) error() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// OnWrite implements zapcore.CheckWriteHook for entries after which zap would panic or exit.
func (f *failure) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New("etcd failed: " + describe(entry.Message, fields))
	f.once.Do(func() {
		f.mu.Lock()
		f.err = err
		f.mu.Unlock()
		close(f.done)
	})
	runtime.Goexit()
}

func describe(message string, fields []zapcore.Field) string {
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			return message + ": " + err.Error()
		}
	}
	return message
}

// zapTo returns a zap logger that writes to log.
func zapTo(log *slog.Logger, f *failure) *zap.Logger {
	return zap.New(&slogCore{handler: log.Handler(), muted: &f.closing}, zap.WithFatalHook(f), zap.WithPanicHook(f))
}

// slogCore writes zap's entries to a slog handler, one level lower: what etcd logs at every start
// is not news to an application, and half of its warnings are about being embedded.
type slogCore struct {
	handler slog.Handler
	muted   *atomic.Bool
	attrs   []slog.Attr
}

func slogLevel(level zapcore.Level) slog.Level {
	switch {
	case level >= zapcore.ErrorLevel:
		return slog.LevelError
	case level == zapcore.WarnLevel:
		return slog.LevelInfo
	case level == zapcore.InfoLevel:
		return slog.LevelDebug
	}
	return slog.LevelDebug - 4
}

// Enabled implements zapcore.LevelEnabler.
func (c *slogCore) Enabled(level zapcore.Level) bool {
	return !c.muted.Load() && c.handler.Enabled(context.Background(), slogLevel(level))
}

// With implements zapcore.Core.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{c.handler, c.muted, append(c.attrs[:len(c.attrs):len(c.attrs)], attrs(fields)...)}
}

// Check implements zapcore.Core.
func (c *slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, c)
}

// Write implements zapcore.Core.
func (c *slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(entry.Time, slogLevel(entry.Level), "etcd: "+entry.Message, 0)
	record.AddAttrs(c.attrs...)
	record.AddAttrs(attrs(fields)...)
	return c.handler.Handle(context.Background(), record)
}

// Sync implements zapcore.Core.
func (c *slogCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []slog.Attr {
	var all []slog.Attr
	for _, field := range fields {
		object := zapcore.NewMapObjectEncoder()
		field.AddTo(object)
		for key, value := range object.Fields {
			all = append(all, slog.Any(key, value))
		}
	}
	return all
}
