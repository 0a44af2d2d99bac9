package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/follow"
)

// FollowOption configures how files on disk are followed.
type FollowOption func(*followOptions)

type followOptions struct {
	poll time.Duration
	log  *slog.Logger
}

// Poll sets the interval at which the files are read; the default is 5 s.
func Poll(every time.Duration) FollowOption { return func(o *followOptions) { o.poll = every } }

// Logger sets the logger for changes and errors; the default is slog.Default(). Secrets are never
// logged.
func Logger(l *slog.Logger) FollowOption { return func(o *followOptions) { o.log = l } }

// follower reads files periodically.
type follower struct {
	files  []string
	o      followOptions
	take   func(contents [][]byte) error // receives a change; after an error the old content stays in force
	poller *follow.Poller

	mu  sync.Mutex // held while files are read; guards the fields below
	sum follow.Digest
	err string // last error logged
}

// open reads the files and follows them until close. It fails if they are not usable now.
func open(files []string, opts []FollowOption, take func([][]byte) error) (*follower, error) {
	f := &follower{files: files, o: followOptions{poll: 5 * time.Second, log: slog.Default()}, take: take}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("auth: an option is nil")
		}
		opt(&f.o)
	}
	switch {
	case len(files) == 0:
		return nil, errors.New("auth: no file is given")
	case f.o.poll <= 0:
		return nil, fmt.Errorf("auth.Poll(%v): want a time above 0", f.o.poll)
	case f.o.log == nil:
		return nil, errors.New("auth.Logger: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)")
	}
	if err := f.look(); err != nil {
		return nil, err
	}
	f.poller = follow.Every(f.o.poll, f.relook)
	return f, nil
}

// relook looks, and logs each error once.
func (f *follower) relook() {
	before := f.sum
	err := f.look()
	switch text := fmt.Sprint(err); {
	case err == nil && f.sum != before:
		f.o.log.Info("auth: the files have changed and are in use", "files", f.files)
		f.err = ""
	case err == nil:
		f.err = ""
	case text != f.err:
		f.err = text
		f.o.log.Error("auth: the files have changed and cannot be used: their previous contents stay in force", "err", err)
	}
}

// look reads the files and applies a change.
func (f *follower) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	contents, sum, err := follow.Read(f.files)
	if err != nil {
		return fmt.Errorf("auth: %w", err)
	}
	if sum == f.sum {
		return nil
	}
	if err := f.take(contents); err != nil {
		return err
	}
	f.sum = sum
	return nil
}

// close stops the follower. A nil follower follows nothing.
func (f *follower) close() error {
	if f != nil {
		f.poller.Close()
	}
	return nil
}

// decode decodes JSON without unknown keys or trailing data. Its errors contain no values.
func decode(name string, b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if _, more := d.Token(); err == nil && more != io.EOF {
		err = errors.New("there is data after the document")
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s cannot be a %s", t.Field, t.Value)
	}
	if err != nil {
		return fmt.Errorf("auth: %s, after %d bytes: %w", name, d.InputOffset(), err)
	}
	return nil
}
